"""Which GPUs were rejected for their hardware, and which of them came back. Pure; the file is ``unit_file.py``'s.

A unit is known by its UUID alone. The serial does not do: the two GPUs of a GB200 board share one (capture of a
p6e-gb200.36xlarge, driver 580.173.02). An all-zero UUID (scrubbed), a MIG slice's and a virtual GPU's belong to no
board, so they are never a key.

What makes a unit bad: one FAIL of class ``replace-now``, or a ``reboot-once`` FAIL of one check in two boots. A unit
with one ``reboot-once`` FAIL is a suspect, and none any more once its host opens the gate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from profiles.errors import ParseError
from profiles.models import KnownBad
from validation.facts.gpu import Gpu, GpuInventory, known
from validation.facts.store import Facts
from validation.report.model import GpuUnit, HostReport, StackReport
from validation.verdict import FaultClass, Finding, Verdict

SCHEMA = "kiln/bad-units/v1"
KEPT = 5_000  # records; the oldest leave first

# Checks whose FAIL accuses the hardware, whatever the host was declared to be.
ACCUSING = frozenset(
    {
        "burnin.copy",
        "burnin.gemm",
        "ecc.corrected",
        "ecc.uncorrected",
        "fabric.state",
        "gpu.lost",
        "gpu.pci_bus",
        "gpu.readable",
        "gpu.recovery_action",
        "kernel.fallen_off_bus",
        "kernel.sxid",
        "kernel.xid",
        "memory.row_remap",
        "pcie.replays",
    }
)
# Checks whose FAIL accuses the hardware only if the machine is what it was declared to be: a wrong instance type must
# brand nobody. Not here: temperature and throttling (the place's cooling, not the unit), what is absent (gpu.count:
# there is no unit to remember), the machine's wiring, disks and NICs.
ACCUSING_IF_AS_DECLARED = frozenset(
    {
        "burnin.bandwidth",
        "burnin.peers",
        "burnin.speed",
        "gpu.memory",
        "nvlink.links_active",
        "nvlink.rate",
        "pcie.width",
    }
)
_DECLARED = ("gpu.name", "gpu.count")
_UUID = re.compile(r"^GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_GPU = re.compile(r"GPU(\d+)")


@dataclass(frozen=True)
class BadUnit:
    """A GPU that was rejected, or is suspected: on which host, when (UTC ISO time), by which check, with what words.

    ``boots`` are the boot ids in which the check failed. ``whole_host``: the check accused no single GPU.
    """

    uuid: str
    serial: str
    board: str
    host: str
    instance_id: str
    check: str
    message: str
    date: str
    fault_class: FaultClass
    boots: tuple[str, ...] = ()
    whole_host: bool = False

    @property
    def bad(self) -> bool:
        """Whether it is to be refused; else it is a suspect, remembered only to see whether its fault repeats."""
        return self.fault_class is FaultClass.REPLACE_NOW or len(self.boots) > 1

    @property
    def key(self) -> tuple[str, str]:
        return self.uuid, self.check

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "fault_class": self.fault_class.value, "boots": list(self.boots)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BadUnit:
        """Raises KeyError, TypeError or ValueError where it is not one."""
        unit = cls(
            **{**data, "fault_class": FaultClass(data["fault_class"]), "boots": tuple(map(str, data.get("boots", ())))}
        )
        texts = (unit.uuid, unit.serial, unit.board, unit.host, unit.instance_id, unit.check, unit.message, unit.date)
        if not all(isinstance(text, str) for text in texts) or not is_key(unit.uuid):
            raise ValueError(f"not a unit: {unit.uuid!r}")
        return unit


def is_key(uuid: str) -> bool:
    """Whether a UUID names one board for good: a GPU's own, and not a scrubbed one (one digit repeated).

    >>> is_key("GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d1")
    True
    >>> is_key("GPU-00000000-0000-0000-0000-000000000000")
    False
    >>> is_key("MIG-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d1")
    False
    """
    return bool(_UUID.match(uuid)) and len(set(uuid[4:].replace("-", "").lower())) > 1


def is_virtual(gpu: Gpu) -> bool:
    """Whether this is a virtual GPU, whose UUID the hypervisor made up."""
    mode = gpu.virtualization
    return isinstance(mode, str) and mode.lower().replace(" ", "") == "vgpu"


def units_of(facts: Facts) -> tuple[GpuUnit, ...]:
    """The GPUs of a host as units; none where the inventory could not be read. Virtual ones keep no UUID."""
    if GpuInventory not in facts:
        return ()
    return tuple(
        GpuUnit(
            index=gpu.index,
            uuid="" if is_virtual(gpu) else known(gpu.uuid) or "",
            serial=known(gpu.serial) or "",
            board=known(gpu.name) or "",
            pci_address=known(gpu.pci_address) or "",
        )
        for gpu in facts.need(GpuInventory).gpus
    )


def updated(units: Sequence[BadUnit], report: StackReport) -> tuple[BadUnit, ...]:
    """The memory after a report: what it rejected is added, suspects whose host is good again are dropped."""
    merged = {unit.key: unit for unit in units}
    for host in report.hosts:
        if host.verdict.opens_gate:
            cleared = {unit.uuid.lower() for unit in host.units}
            merged = {k: unit for k, unit in merged.items() if unit.bad or unit.uuid.lower() not in cleared}
        for unit in rejected(host, report.started):
            merged[unit.key] = _merged(merged.get(unit.key), unit)
    return tuple(sorted(merged.values(), key=lambda unit: unit.date))[-KEPT:]


def _merged(old: BadUnit | None, new: BadUnit) -> BadUnit:
    """One record of both: where it was first rejected, every boot, and the graver class."""
    if old is None:
        return new
    boots = (*old.boots, *(boot for boot in new.boots if boot not in old.boots))
    grave = FaultClass.REPLACE_NOW in (old.fault_class, new.fault_class)
    return replace(
        old if old.bad else new,
        boots=boots,
        fault_class=FaultClass.REPLACE_NOW if grave else FaultClass.REBOOT_ONCE,
        whole_host=old.whole_host and new.whole_host,
    )


def rejected(host: HostReport, date: str) -> Iterator[BadUnit]:
    """The units that a host's findings accuse. A finding that names no single GPU accuses the host with all of them."""
    uuids = [unit.uuid.lower() for unit in host.units]
    keys = [unit for unit in host.units if is_key(unit.uuid) and uuids.count(unit.uuid.lower()) == 1]
    for finding in host.findings:
        if not _accuses(finding, host.findings):
            continue
        boots = (host.identity.boot_id,) if host.identity else ()
        if finding.fault_class is FaultClass.REBOOT_ONCE and not boots:
            continue  # whether it repeats after a reboot cannot be told without the boot
        one = [unit for unit in keys if unit.index == _accused(finding, host)]
        for unit in one or keys:
            yield BadUnit(
                uuid=unit.uuid,
                serial=unit.serial,
                board=unit.board,
                host=host.host,
                instance_id=_instance(host),
                check=finding.check,
                message=finding.message,
                date=date,
                fault_class=finding.fault_class or FaultClass.REPLACE_NOW,
                boots=boots,
                whole_host=not one,
            )


def _instance(host: HostReport) -> str:
    return host.instance_id or (host.identity.instance_id if host.identity else "")


def _accuses(finding: Finding, all_findings: Sequence[Finding]) -> bool:
    grave = finding.fault_class in (FaultClass.REPLACE_NOW, FaultClass.REBOOT_ONCE)
    if finding.verdict is not Verdict.FAIL or not finding.required or not grave:
        return False
    if finding.check in ACCUSING:
        return True
    as_declared = {f.check for f in all_findings if f.verdict is Verdict.PASS} >= set(_DECLARED)
    return finding.check in ACCUSING_IF_AS_DECLARED and as_declared


def _accused(finding: Finding, host: HostReport) -> int | None:
    """The index of the one GPU that a finding is about; None where it is about several, or about none."""
    subject = finding.subject.removeprefix(host.host).removeprefix("/")
    by_address = [unit.index for unit in host.units if unit.pci_address and unit.pci_address == subject]
    named = {int(number) for number in _GPU.findall(subject)} or set(by_address)
    return named.pop() if len(named) == 1 else None


def known_bad(units: Iterable[BadUnit]) -> tuple[KnownBad, ...]:
    """The bad units as an expectation has them; suspects are not told."""
    return tuple(
        KnownBad(
            uuid=unit.uuid,
            serial=unit.serial,
            board=unit.board,
            host=unit.host,
            instance_id=unit.instance_id,
            check=unit.check,
            date=unit.date,
            whole_host=unit.whole_host,
        )
        for unit in units
        if unit.bad
    )


def told_to(known: tuple[KnownBad, ...], *, host: str, instance_id: str) -> tuple[KnownBad, ...]:
    """The same for one host: ``here`` where the instance is the same, or, without ids, the name.

    The very same tuple where nothing is: a thousand hosts share one memory.
    """

    def here(unit: KnownBad) -> bool:
        return unit.instance_id == instance_id and (bool(instance_id) or unit.host == host)

    if not any(here(unit) for unit in known):
        return known
    return tuple(unit.model_copy(update={"here": True}) if here(unit) else unit for unit in known)


def forget(units: Sequence[BadUnit], uuid: str) -> tuple[BadUnit, ...]:
    """The memory without a unit."""
    return tuple(unit for unit in units if unit.uuid.lower() != uuid.lower())


def dump(units: Sequence[BadUnit]) -> str:
    """As JSON, schema ``kiln/bad-units/v1``."""
    return json.dumps({"schema": SCHEMA, "units": [unit.to_dict() for unit in units]}, indent=2) + "\n"


def parse(text: str) -> tuple[BadUnit, ...]:
    """Read what :func:`dump` wrote. Raises ParseError; a memory that is half read is none."""
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, not {SCHEMA!r}")
        return tuple(BadUnit.from_dict(unit) for unit in data["units"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError("bad units", 0, f"{type(error).__name__}: {error}") from error
