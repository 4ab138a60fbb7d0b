"""``nvidia-smi -q`` as text, whole or one section of it (``-d PAGE_RETIREMENT``): drivers 460 to 590."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from profiles.errors import ParseError
from validation.facts import driver_fault
from validation.facts.fields import RawGpu, gpu, lost_gpus, parts_of
from validation.facts.gpu import GpuInventory
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import integer, short_lines, word

TOOL = "nvidia-smi -q"
_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_FIELD = re.compile(r"^(\s*)(\S.*?)\s*(?: : |\s:$)\s*(.*)$")
_ABRIDGED = re.compile(r"^\s*\[?(?:\.\.\.|…)\]?\s*$")  # a paste with its middle left out

# Our key: the path of headings and key as the driver prints them, lower case, newest wording first.
_PATHS = {
    "name": ("product name",),
    "uuid": ("gpu uuid",),
    "serial": ("serial number",),
    "pci_address": ("pci/bus id",),
    "brand": ("product brand",),
    "architecture": ("product architecture",),
    "memory_total_mib": ("fb memory usage/total",),
    "memory_used_mib": ("fb memory usage/used",),
    "vbios": ("vbios version",),
    "gsp_firmware": ("gsp firmware version",),
    "persistence": ("persistence mode",),
    "mig_enabled": ("mig mode/current",),
    "mig_pending": ("mig mode/pending",),
    "compute_mode": ("compute mode",),
    "virtualization": ("gpu virtualization mode/virtualization mode",),
    "vgpu_license": ("vgpu software licensed product/license status", "grid licensed product/license status"),
    "ecc.enabled": ("ecc mode/current",),
    "ecc.enabled_next": ("ecc mode/pending",),
    "ecc.sram_threshold_exceeded": ("ecc errors/aggregate/sram threshold exceeded",),
    "remapped_rows.correctable": ("remapped rows/correctable error",),
    "remapped_rows.uncorrectable": ("remapped rows/uncorrectable error",),
    "remapped_rows.pending": ("remapped rows/pending",),
    "remapped_rows.failure": ("remapped rows/remapping failure occurred",),
    "retired_pages.single_bit": ("retired pages/single bit ecc",),
    "retired_pages.double_bit": ("retired pages/double bit ecc",),
    "retired_pages.pending": (
        "retired pages/pending page blacklist",
        "retired pages/pending page blocklist",
        "retired pages/pending page",
        "retired pages/pending",
    ),
    "repairs.channel_pending": ("ecc errors/channel repair pending",),
    "repairs.tpc_pending": ("ecc errors/tpc repair pending",),
    "repairs.unrepairable_memory": ("ecc errors/unrepairable memory",),
    "fabric.state": ("fabric/state",),
    "fabric.status": ("fabric/status",),
    "fabric.clique_id": ("fabric/cliqueid",),
    "fabric.cluster_uuid": ("fabric/clusteruuid",),
    "pcie.generation": ("pci/gpu link info/pcie generation/current",),
    "pcie.generation_max": ("pci/gpu link info/pcie generation/max",),
    "pcie.width": ("pci/gpu link info/link width/current",),
    "pcie.width_max": ("pci/gpu link info/link width/max",),
    "pcie.replays": ("pci/replays since reset",),
    "temperature_c": ("temperature/gpu current temp",),
    "tlimit_margin_c": ("temperature/gpu t.limit temp",),
    "slowdown_c": ("temperature/gpu slowdown temp",),
    "power_draw_w": (
        "gpu power readings/instantaneous power draw",
        "gpu power readings/power draw",
        "gpu power readings/average power draw",
        "power readings/power draw",
    ),
    "power_limit_w": ("gpu power readings/current power limit", "power readings/power limit"),
    "power_limit_default_w": ("gpu power readings/default power limit", "power readings/default power limit"),
    "sm_clock_mhz": ("clocks/sm",),
    "sm_clock_max_mhz": ("max clocks/sm",),
    "memory_clock_mhz": ("clocks/memory",),
    "recovery_action": ("gpu recovery action",),
    "reset_required": ("gpu reset status/reset required",),
    "drain_and_reset": ("gpu reset status/drain and reset recommended",),
}
_NO_GPU = "no line 'GPU <PCI address>' says which GPU this is: the text's beginning is missing"
_CORRECTED = ("sram correctable", "dram correctable")
_UNCORRECTED = (
    "sram uncorrectable", "sram uncorrectable parity", "sram uncorrectable sec-ded", "dram uncorrectable",
)  # fmt: skip
_SUMS = {
    f"ecc.{scope}_{kind}": (f"ecc errors/{scope}/{bits}/total", tuple(f"ecc errors/{scope}/{part}" for part in parts))
    for scope in ("volatile", "aggregate")
    for kind, bits, parts in (("corrected", "single bit", _CORRECTED), ("uncorrected", "double bit", _UNCORRECTED))
}
_SLICE_ERRORS = "mig device/ecc errors/volatile/sram uncorrectable"
_REASONS = {
    "idle": "gpu_idle",
    "applications clocks setting": "applications_clocks_setting",
    "sw power cap": "sw_power_cap",
    "hw slowdown": "hw_slowdown",
    "hw thermal slowdown": "hw_thermal_slowdown",
    "hw power brake slowdown": "hw_power_brake_slowdown",
    "hw power brake": "hw_power_brake_slowdown",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal_slowdown",
    "display clock setting": "display_clocks_setting",
}


@dataclass
class _Block:
    """One GPU's lines: the value of each path, and the paths of headings without a value."""

    address: str
    line: int
    values: dict[str, str] = field(default_factory=dict)
    processes: int | Missing = ABSENT
    slices: list[str] = field(default_factory=list)  # uncorrectable errors of each MIG device


def parse(text: str) -> GpuInventory:
    """The GPUs shown. ``omitted`` names what the text itself says it left out: rows of dots, GPUs not shown.

    Raises ParseError where there is no GPU block, or a line is neither heading nor field.
    """
    head: dict[str, str] = {}
    blocks: list[_Block] = []
    headings: list[tuple[int, str]] = []
    omitted: list[str] = []
    for number, line in enumerate(short_lines(text, TOOL), start=1):
        gpu_line = _GPU.match(line)
        if gpu_line:
            blocks.append(_Block(gpu_line[1], number))
            headings = []
        elif _ABRIDGED.match(line):
            omitted.append(f"line {number} says that lines were left out")
        elif line.strip() and not line.startswith("="):
            _read_line(head, blocks, headings, line)
    if not blocks:
        fault = driver_fault.first(text, TOOL)
        raise ParseError(TOOL, 1, f"no GPU; the tool said: {fault.text}" if fault else _NO_GPU)
    addresses = [block.address.lower() for block in blocks]
    if len(set(addresses)) != len(addresses):
        raise ParseError(TOOL, 0, "a GPU is listed twice")
    gpus = tuple(gpu(_raw(index, block)) for index, block in enumerate(blocks))
    lost = lost_gpus(
        gpus, [fault.gpu for fault in driver_fault.find(text, TOOL) if fault.kind == "gpu-lost" and fault.gpu]
    )
    attached = integer(head.get("attached gpus"), TOOL, "Attached GPUs")
    if not isinstance(attached, Missing) and attached > len(gpus) + len(lost):
        omitted.append(f"{attached} GPUs are attached, {len(gpus)} are shown")
    omitted += [f"GPU{at}: the block ends before its processes" for at, one in enumerate(blocks) if _cut(one)]
    return GpuInventory(
        source="nvidia-smi-q",
        gpus=gpus,
        driver_version=word(head.get("driver version")),
        cuda_driver_version=word(head.get("cuda version")),
        attached=attached,
        lost=lost,
        omitted=tuple(omitted),
    )


def _cut(block: _Block) -> bool:
    """Whether a full block (not one of ``-d SECTION``) ends early: every driver prints the processes last or nearly."""
    return "product name" in block.values and isinstance(block.processes, Missing)


def _read_line(head: dict[str, str], blocks: list[_Block], headings: list[tuple[int, str]], line: str) -> None:
    """A field goes under the headings that are indented less; a line without a value is a heading itself."""
    match = _FIELD.match(line)
    indent = len(line) - len(line.lstrip())
    while headings and headings[-1][0] >= indent:
        headings.pop()
    key = " ".join((match[2] if match else line).split()).lower()
    path = "/".join([*(name for _, name in headings), key])
    if not blocks:
        if match:
            head[key] = match[3]
        return
    block = blocks[-1]
    if match and match[3]:
        if key == "processes":
            block.processes = 0 if match[3].strip().lower() == "none" else _process_word(match[3])
        elif path == "processes/process id":
            block.processes = 1 if isinstance(block.processes, Missing) else block.processes + 1
        if path == _SLICE_ERRORS:
            block.slices.append(match[3])
        block.values.setdefault(path, match[3])
    # "HW Slowdown : Not Active" is a field with fields below it.
    headings.append((indent, key))


def _process_word(text: str) -> int | Missing:
    value = word(text)
    return value if isinstance(value, Missing) else 1


def _first(values: dict[str, str], paths: Iterable[str]) -> tuple[str, ...]:
    found = [values[path] for path in paths if path in values]
    real = [value for value in found if not isinstance(word(value), Missing)]
    return tuple((real or found)[:1])


def _part(path: str) -> str:
    """``sram uncorrectable sec-ded`` as the XML names it."""
    return path.rpartition("/")[2].replace("sec-ded", "secded").replace(" ", "_")


def _raw(index: int, block: _Block) -> RawGpu:
    values = {key: _first(block.values, paths) for key, paths in _PATHS.items()}
    for key, (total, parts) in _SUMS.items():
        whole = block.values.get(total)
        printed = {_part(path): block.values[path] for path in parts if path in block.values}
        values[key] = (whole,) if whole else parts_of(printed)
    for key, paths in (*_PATHS.items(), *((key, parts) for key, (_, parts) in _SUMS.items())):
        section = block.values.get(paths[0].partition("/")[0])
        if not values[key] and section:
            values[key] = (section,)  # "Remapped Rows : N/A" gives that word to each of its fields
    values["pci_address"] = values["pci_address"] or (block.address,)
    values["ecc.slices"] = tuple(block.slices)
    return RawGpu(
        tool=TOOL,
        index=index,
        values=values,
        throttle={
            name: printed
            for path, printed in block.values.items()
            if path.startswith(("clocks event reasons/", "clocks throttle reasons/"))
            and (name := _REASONS.get(path.rpartition("/")[2]))
        },
        health={
            path.rpartition("/")[2].replace(" ", "_"): printed
            for path, printed in block.values.items()
            if path.startswith("fabric/health/")
        },
        processes=block.processes,
    )
