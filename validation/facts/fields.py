"""One GPU from raw words: the single place where NVIDIA's fields become typed values.

``nvidia-smi -q -x``, ``-q`` and ``--query-gpu`` print the same fields under different names. Each of their modules maps
its own names to the keys below and leaves units, sentinels and sums to this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from validation.facts.gpu import Ecc, Fabric, Gpu, PcieLink, RemappedRows, Repairs, RetiredPages
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import flag, integer, number, pci_value, word

# NVML's names for what holds the clocks down, by bit of nvmlDeviceGetCurrentClocksEventReasons.
# Source: nvml.h of driver 595, nvmlClocksEventReasons.
THROTTLE_BITS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clocks_setting",
}


@dataclass(frozen=True)
class RawGpu:
    """The words a tool printed for one GPU, by our key. A key that the tool did not print is not there.

    ``values`` holds one word a key, or several where a count is printed in parts (SRAM, DRAM). ``throttle`` and
    ``health`` hold the driver's words by NVML's names.
    """

    tool: str
    index: int
    values: Mapping[str, Sequence[str]]
    throttle: Mapping[str, str] = field(default_factory=dict)
    health: Mapping[str, str] = field(default_factory=dict)
    processes: int | Missing = ABSENT

    @property
    def where(self) -> str:
        return f"GPU{self.index}"

    def one(self, key: str) -> str | None:
        found = self.values.get(key)
        return found[0] if found else None

    def word(self, key: str) -> str | Missing:
        return word(self.one(key))

    def flag(self, key: str) -> bool | Missing:
        return flag(self.one(key), self.tool, f"{self.where} {key}")

    def number(self, key: str, unit: str) -> float | Missing:
        return number(self.one(key), unit, self.tool, f"{self.where} {key}")

    def integer(self, key: str, unit: str = "") -> int | Missing:
        return integer(self.one(key), self.tool, f"{self.where} {key}", unit)

    def total(self, key: str) -> int | Missing:
        """The sum of a count printed in parts; see :func:`add`."""
        return add([integer(part, self.tool, f"{self.where} {key}") for part in self.values.get(key, ())])


def add(parts: Sequence[int | Missing]) -> int | Missing:
    """The sum of the parts that are known.

    Where one part is a fault or could not be read, the sum is only known to be too small: it stands if it is not
    zero, since more errors than none were counted, and is that Missing otherwise. A part that does not apply to the
    board counts nothing.
    """
    known = [part for part in parts if not isinstance(part, Missing)]
    missing = [part for part in parts if isinstance(part, Missing)]
    grave = [part for part in missing if part.reason in (Reason.FAULT, Reason.COULD_NOT_LOOK)]
    if grave and not sum(known):
        return grave[0]
    if known:
        return sum(known)
    return missing[0] if missing else ABSENT


def parts_of(printed: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a count printed in parts (``sram_uncorrectable_parity``, ...), with one more where a part lacks.

    Every driver prints DRAM and SRAM, SRAM as one number or as two. With a part gone the sum cannot be told.
    """
    names = set(printed)
    split = {name for name in names if name.endswith(("_parity", "_secded"))}
    sram = any(name.startswith("sram") for name in names - split) or len(split) == 2
    dram = any(name.startswith("dram") for name in names)
    words = tuple(printed.values())
    return words if (sram and dram) or not words else (*words, "[a part is not printed]")


def throttle_reasons(raw: RawGpu) -> frozenset[str] | Missing:
    """The active reasons. Missing where the driver prints none of them, or could not read one.

    Every driver prints ``gpu_idle`` and ``hw_slowdown``; without them the list is not the driver's.
    """
    if not {"gpu_idle", "hw_slowdown"} <= set(raw.throttle):
        return ABSENT
    active = set()
    missing: list[Missing] = []
    for name, printed in raw.throttle.items():
        value = flag(printed, raw.tool, f"{raw.where} clock reason {name}")
        if isinstance(value, Missing):
            missing.append(value)
        elif value:
            active.add(name)
    grave = [value for value in missing if value.reason in (Reason.FAULT, Reason.COULD_NOT_LOOK)]
    if grave and not active:
        return grave[0]
    if len(missing) == len(raw.throttle):
        return missing[0]
    return frozenset(active)


def throttle_mask(mask: int) -> frozenset[str]:
    """The names of the bits set; a bit nobody knows is kept by its value."""
    names = {name for bit, name in THROTTLE_BITS.items() if mask & bit}
    rest = mask & ~sum(THROTTLE_BITS)
    return frozenset(names | ({f"bit_0x{rest:x}"} if rest else set()))


def _fabric(raw: RawGpu) -> Fabric:
    health = []
    summary: str | Missing = ABSENT
    for key, printed in raw.health.items():
        value = word(printed)
        if key == "summary":
            summary = value
        elif not isinstance(value, Missing) or value.reason is Reason.FAULT:
            health.append((key, printed.strip()))
    return Fabric(
        state=raw.word("fabric.state"),
        status=raw.word("fabric.status"),
        clique_id=raw.integer("fabric.clique_id"),
        cluster_uuid=raw.word("fabric.cluster_uuid"),
        health_summary=summary,
        health=tuple(health),
    )


def _uncorrected(raw: RawGpu) -> int | Missing:
    """Since driver load. In MIG mode each slice counts its own (``ecc.slices``), and the GPU may say 0 all along."""
    whole, slices = raw.total("ecc.volatile_uncorrected"), raw.total("ecc.slices")
    if isinstance(slices, Missing) or not slices:
        return whole
    return slices if isinstance(whole, Missing) else max(whole, slices)


def _ecc(raw: RawGpu) -> Ecc:
    return Ecc(
        enabled=raw.flag("ecc.enabled"),
        enabled_next=raw.flag("ecc.enabled_next"),
        volatile_corrected=raw.total("ecc.volatile_corrected"),
        volatile_uncorrected=_uncorrected(raw),
        aggregate_corrected=raw.total("ecc.aggregate_corrected"),
        aggregate_uncorrected=raw.total("ecc.aggregate_uncorrected"),
        sram_threshold_exceeded=raw.flag("ecc.sram_threshold_exceeded"),
    )


def _inforom_corrupt(raw: RawGpu) -> bool | Missing:
    """``valid`` is good, and the only other word known is ``invalid``; any further one was not read."""
    said = raw.word("inforom")
    if isinstance(said, Missing):
        return said
    known = {"valid": False, "invalid": True}
    return known.get(said.lower(), Missing(Reason.COULD_NOT_LOOK, said))


def _recovery(raw: RawGpu) -> str | Missing:
    """The driver's own verdict. Drivers 530 to 570 said it as two answers: reset required, drain and reset advised."""
    action = raw.word("recovery_action")
    if not isinstance(action, Missing) or action.reason is Reason.FAULT:
        return action
    required, advised = raw.flag("reset_required"), raw.flag("drain_and_reset")
    if required is True:
        return "GPU Reset"
    if advised is True:
        return "Drain and Reset"
    return "None" if required is False else action


def _remapped_rows(raw: RawGpu) -> RemappedRows:
    return RemappedRows(
        correctable=raw.integer("remapped_rows.correctable"),
        uncorrectable=raw.integer("remapped_rows.uncorrectable"),
        pending=raw.flag("remapped_rows.pending"),
        failure=raw.flag("remapped_rows.failure"),
    )


def _retired_pages(raw: RawGpu) -> RetiredPages:
    return RetiredPages(
        single_bit=raw.integer("retired_pages.single_bit"),
        double_bit=raw.integer("retired_pages.double_bit"),
        pending=raw.flag("retired_pages.pending"),
    )


def gpu(raw: RawGpu) -> Gpu:
    """The typed GPU. Raises ParseError naming GPU and field where a word is neither value nor sentinel."""
    return Gpu(
        index=raw.index,
        name=raw.word("name"),
        uuid=raw.word("uuid"),
        serial=raw.word("serial"),
        pci_address=pci_value(raw.one("pci_address"), raw.tool, f"{raw.where} bus id"),
        brand=raw.word("brand"),
        architecture=raw.word("architecture"),
        memory_total_mib=raw.number("memory_total_mib", "MiB"),
        memory_used_mib=raw.number("memory_used_mib", "MiB"),
        vbios=raw.word("vbios"),
        gsp_firmware=raw.word("gsp_firmware"),
        persistence=raw.flag("persistence"),
        mig_enabled=raw.flag("mig_enabled"),
        mig_pending=raw.flag("mig_pending"),
        compute_mode=raw.word("compute_mode"),
        virtualization=raw.word("virtualization"),
        vgpu_license=raw.word("vgpu_license"),
        ecc=_ecc(raw),
        remapped_rows=_remapped_rows(raw),
        retired_pages=_retired_pages(raw),
        repairs=Repairs(
            channel_pending=raw.flag("repairs.channel_pending"),
            tpc_pending=raw.flag("repairs.tpc_pending"),
            unrepairable_memory=raw.flag("repairs.unrepairable_memory"),
            inforom_corrupt=_inforom_corrupt(raw),
        ),
        fabric=_fabric(raw),
        pcie=PcieLink(
            generation=raw.integer("pcie.generation"),
            generation_max=raw.integer("pcie.generation_max"),
            width=raw.integer("pcie.width", "x"),
            width_max=raw.integer("pcie.width_max", "x"),
            replays=raw.integer("pcie.replays"),
        ),
        temperature_c=raw.number("temperature_c", "C"),
        tlimit_margin_c=raw.number("tlimit_margin_c", "C"),
        slowdown_c=raw.number("slowdown_c", "C"),
        power_draw_w=raw.number("power_draw_w", "W"),
        power_limit_w=raw.number("power_limit_w", "W"),
        power_limit_default_w=raw.number("power_limit_default_w", "W"),
        sm_clock_mhz=raw.number("sm_clock_mhz", "MHz"),
        sm_clock_max_mhz=raw.number("sm_clock_max_mhz", "MHz"),
        memory_clock_mhz=raw.number("memory_clock_mhz", "MHz"),
        throttle_reasons=throttle_reasons(raw),
        recovery_action=_recovery(raw),
        processes=raw.processes,
    )


def not_shown(indices: Sequence[int], lost: Sequence[str] = ()) -> tuple[str, ...]:
    """What a list without some GPUs leaves out: the driver numbers them from 0. As many as are lost, it names itself.

    >>> not_shown([2, 3]), not_shown([0, 1, 3], lost=["0000:5f:00.0"])
    (('GPUs 0 to 1 are not shown',), ())
    """
    gaps = sorted(set(range(max(indices, default=-1) + 1)) - set(indices))
    if len(gaps) <= len(lost):
        return ()
    if len(gaps) == 1:
        return (f"GPU {gaps[0]} is not shown",)
    run = gaps == list(range(gaps[0], gaps[-1] + 1))
    names = f"{gaps[0]} to {gaps[-1]}" if run else ", ".join(map(str, gaps[:8])) + (" and more" if gaps[8:] else "")
    return (f"GPUs {names} are not shown",)


def lost_gpus(gpus: Sequence[Gpu], named: Sequence[str] = ()) -> tuple[str, ...]:
    """GPUs that the driver lists but has lost: the ones an error text names, and the ones whose own fields say so."""
    lost = list(named)
    for one in gpus:
        fields = (
            one.name, one.uuid, one.serial, one.vbios, one.memory_total_mib, one.memory_used_mib, one.temperature_c,
            one.power_draw_w, one.ecc.volatile_uncorrected,
        )  # fmt: skip
        if any(isinstance(value, Missing) and "lost" in value.text.lower() for value in fields):
            who = one.label if isinstance(one.pci_address, Missing) else one.pci_address
            lost.append(who)
    return tuple(dict.fromkeys(lost))
