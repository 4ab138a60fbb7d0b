"""``nvidia-smi --query-gpu=... --format=csv``: the inventory by column name, never by position."""

from __future__ import annotations

import re

from profiles.errors import ParseError
from validation.facts import driver_fault
from validation.facts.fields import RawGpu, gpu, lost_gpus
from validation.facts.gpu import GpuInventory
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import integer, lines, word

TOOL = "nvidia-smi --query-gpu"
_UNIT = re.compile(r"(?<!\s)\s*\[[^\[\]]*\]$")  # "memory.total [MiB]"

# Our key: the column as --query-gpu names it, newest name first. Old drivers say clocks_throttle_reasons.
_COLUMNS = {
    "name": ("name", "gpu_name"),
    "uuid": ("uuid", "gpu_uuid"),
    "serial": ("serial", "gpu_serial"),
    "pci_address": ("pci.bus_id", "gpu_bus_id"),
    "memory_total_mib": ("memory.total",),
    "memory_used_mib": ("memory.used",),
    "vbios": ("vbios_version",),
    "persistence": ("persistence_mode",),
    "mig_enabled": ("mig.mode.current",),
    "mig_pending": ("mig.mode.pending",),
    "compute_mode": ("compute_mode",),
    "ecc.enabled": ("ecc.mode.current",),
    "ecc.volatile_corrected": ("ecc.errors.corrected.volatile.total",),
    "ecc.volatile_uncorrected": ("ecc.errors.uncorrected.volatile.total",),
    "ecc.aggregate_corrected": ("ecc.errors.corrected.aggregate.total",),
    "ecc.aggregate_uncorrected": ("ecc.errors.uncorrected.aggregate.total",),
    "ecc.sram_threshold_exceeded": ("ecc.errors.uncorrected.aggregate.sram.thresholdexceeded",),
    "remapped_rows.correctable": ("remapped_rows.correctable",),
    "remapped_rows.uncorrectable": ("remapped_rows.uncorrectable",),
    "remapped_rows.pending": ("remapped_rows.pending",),
    "remapped_rows.failure": ("remapped_rows.failure",),
    "retired_pages.single_bit": ("retired_pages.single_bit_ecc.count", "retired_pages.sbe"),
    "retired_pages.double_bit": ("retired_pages.double_bit.count", "retired_pages.dbe"),
    "retired_pages.pending": ("retired_pages.pending",),
    "fabric.state": ("fabric.state",),
    "fabric.status": ("fabric.status",),
    "fabric.clique_id": ("fabric.cliqueid",),
    "fabric.cluster_uuid": ("fabric.clusteruuid",),
    "pcie.generation": ("pcie.link.gen.current", "pcie.link.gen.gpucurrent"),
    "pcie.generation_max": ("pcie.link.gen.max",),
    "pcie.width": ("pcie.link.width.current",),
    "pcie.width_max": ("pcie.link.width.max",),
    "temperature_c": ("temperature.gpu",),
    "tlimit_margin_c": ("temperature.gpu.tlimit",),
    "power_draw_w": ("power.draw.instant", "power.draw"),
    "power_limit_w": ("power.limit",),
    "power_limit_default_w": ("power.default_limit",),
    "sm_clock_mhz": ("clocks.current.sm", "clocks.sm"),
    "sm_clock_max_mhz": ("clocks.max.sm",),
    "memory_clock_mhz": ("clocks.current.memory", "clocks.mem"),
    "recovery_action": ("gpu_recovery_action",),
}
_KNOWN = {name for names in _COLUMNS.values() for name in names} | {"index", "driver_version", "count", "timestamp"}
_REASONS = re.compile(r"^clocks_(?:event|throttle)_reasons\.(?!supported$|active$)(\w+)$")
_LABELLED = re.compile(r"^(?:state|status)\s+(?=\S)")  # drivers 535 and 550: "state  Completed", "status Success"
_HEALTH = re.compile(r"^fabric\.health\.(\w+)$")


def parse(text: str) -> GpuInventory:
    """The GPUs of the rows. Raises ParseError without a header (columns cannot be known) or where a row is ragged."""
    rows = [(number, line) for number, line in enumerate(lines(text), start=1) if line.strip()]
    named = driver_fault.find(text, TOOL)
    rows = [(number, line) for number, line in rows if not driver_fault.find(line, TOOL)]
    if not rows:
        raise ParseError(TOOL, 1, f"no table; the tool said: {named[0].text}" if named else "the output is empty")
    columns = [_UNIT.sub("", cell).lower() for cell in _cells(rows[0][1])]
    if len(set(columns)) != len(columns):
        raise ParseError(TOOL, rows[0][0], "a column is named twice")
    if not set(columns) & _KNOWN:
        raise ParseError(TOOL, rows[0][0], "no header, so no column can be told: name the fields asked for (--fields)")
    gpus, versions = [], set()
    for at, (number, line) in enumerate(rows[1:]):
        cells = _cells(line)
        if len(cells) != len(columns):
            raise ParseError(TOOL, number, f"{len(cells)} cells under {len(columns)} columns")
        row = dict(zip(columns, cells, strict=True))
        gpus.append(gpu(_raw(at, row)))
        versions.add(row.get("driver_version"))
    if not gpus:
        raise ParseError(TOOL, rows[0][0], "a header and no row")
    if len({one.index for one in gpus}) != len(gpus):
        raise ParseError(TOOL, 0, "two rows have the same index")
    counts = set(_column(columns, rows, "count"))
    attached = integer(counts.pop(), TOOL, "count") if len(counts) == 1 else ABSENT
    lost = lost_gpus(gpus, [fault.gpu or fault.text for fault in named if fault.kind == "gpu-lost"])
    short = not isinstance(attached, Missing) and attached > len(gpus) + len(lost)
    return GpuInventory(
        source="nvidia-smi-csv",
        gpus=tuple(gpus),
        driver_version=word(versions.pop()) if len(versions) == 1 else word(None),
        attached=attached,
        lost=lost,
        omitted=(f"{attached} GPUs are attached, {len(gpus)} are shown",) if short else (),
    )


def is_header(line: str) -> bool:
    """Whether a first line is a header of this tool: every cell a field name, at least one of them known."""
    cells = [_UNIT.sub("", cell).lower() for cell in _cells(line)]
    return all(re.fullmatch(r"[a-z][\w.]*", cell) for cell in cells) and bool(set(cells) & _KNOWN)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _column(columns: list[str], rows: list[tuple[int, str]], name: str) -> list[str]:
    return [_cells(line)[columns.index(name)] for _, line in rows[1:]] if name in columns else []


def _raw(at: int, row: dict[str, str]) -> RawGpu:
    values = {}
    for key, names in _COLUMNS.items():
        found = [row[name] for name in names if name in row]
        real = [cell for cell in found if not isinstance(word(cell), Missing)]
        if found:
            cell = (real or found)[0]
            values[key] = (_LABELLED.sub("", cell) if key in ("fabric.state", "fabric.status") else cell,)
    index = integer(row.get("index"), TOOL, "index")
    return RawGpu(
        tool=TOOL,
        index=at if isinstance(index, Missing) else index,
        values=values,
        throttle={match[1]: cell for name, cell in row.items() if (match := _REASONS.match(name))},
        health={match[1]: cell for name, cell in row.items() if (match := _HEALTH.match(name))},
    )
