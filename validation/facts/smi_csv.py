"""``nvidia-smi --query-gpu=... --format=csv``: the inventory by column name, never by position."""

from __future__ import annotations

import re

from profiles.errors import ParseError
from validation.facts import driver_fault, merge
from validation.facts.fields import THROTTLE_BITS, RawGpu, gpu, lost_gpus, not_shown, throttle_mask
from validation.facts.gpu import DriverFault, Gpu, GpuInventory
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import integer, lines, word

TOOL = "nvidia-smi --query-gpu"
_REFUSED = re.compile(r'^Field "(?P<field>[^"]*)" is not a valid field to query')
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
    "ecc.enabled_next": ("ecc.mode.pending",),
    "inforom": ("inforom.checksum_validation",),
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
    "reset_required": ("reset_status.reset_required",),
    "drain_and_reset": ("reset_status.drain_and_reset_recommended",),
}
# A count of ECC errors may be asked for in parts; without both of these the sum is not known, unless it is not zero.
_PARTS = ("dram", "sram")
_ECC_PARTS = {
    f"ecc.{scope}_{kind}": tuple(f"ecc.errors.{kind}.{scope}.{part}" for part in _PARTS)
    for scope in ("volatile", "aggregate")
    for kind in ("corrected", "uncorrected")
}
_MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_KNOWN = {name for names in (*_COLUMNS.values(), *_ECC_PARTS.values(), _MASKS) for name in names}
_KNOWN |= {"index", "driver_version", "count", "timestamp"}
_IDENTITY = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
_REASONS = re.compile(r"^clocks_(?:event|throttle)_reasons\.(?!supported$|active$)(\w+)$")
_LABELLED = re.compile(r"^(?:state|status)\s+(?=\S)")  # drivers 535 and 550: "state  Completed", "status Success"
_HEALTH = re.compile(r"^fabric\.health\.(\w+)$")


def parse(text: str) -> GpuInventory:
    """The GPUs of the rows; of a loop (``-l``) each GPU as it was last, with what any round found broken.

    Raises ParseError without a header (columns cannot be known) or where a row is ragged.
    """
    rows = [(number, line) for number, line in enumerate(lines(text), start=1) if line.strip()]
    rows, named = _messages_apart(rows)
    if not rows:
        raise ParseError(TOOL, 1, f"no table; the tool said: {named[0].text}" if named else "the output is empty")
    columns = _columns(*rows[0])
    cells = []
    for number, line in rows[1:]:
        found = _cells(line)
        if [_UNIT.sub("", cell).lower() for cell in found] == columns:
            continue  # a loop prints its header again
        if len(found) != len(columns):
            raise ParseError(TOOL, number, f"{len(found)} cells under {len(columns)} columns")
        cells.append(dict(zip(columns, found, strict=True)))
    if not cells:
        raise ParseError(TOOL, rows[0][0], "a header and no row")
    gpus = _gpus(columns, cells)
    counts = {row["count"] for row in cells if "count" in row}
    versions = {row.get("driver_version") for row in cells}
    attached = integer(counts.pop(), TOOL, "count") if len(counts) == 1 else ABSENT
    lost = lost_gpus(gpus, [fault.gpu or fault.text for fault in named if fault.kind == "gpu-lost"])
    short = not isinstance(attached, Missing) and attached > len(gpus) + len(lost)
    omitted = [f"{attached} GPUs are attached, {len(gpus)} are shown"] if short else []
    if "index" in columns and not short:
        omitted += not_shown([one.index for one in gpus], lost)
    return GpuInventory(
        source="nvidia-smi-csv",
        gpus=gpus,
        driver_version=word(versions.pop()) if len(versions) == 1 else word(None),
        attached=attached,
        lost=lost,
        omitted=tuple(omitted),
    )


def _messages_apart(rows: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], list[DriverFault]]:
    """The rows of the table, and what the driver said between them. A cell in brackets is a row's, not the driver's."""
    table: list[tuple[int, str]] = []
    said: list[DriverFault] = []
    for number, line in rows:
        faults = () if "[" in line else driver_fault.find(line, TOOL)
        said += faults
        table += [] if faults else [(number, line)]
    return table, said


def _columns(number: int, header: str) -> list[str]:
    columns = [_UNIT.sub("", cell).lower() for cell in _cells(header)]
    if len(set(columns)) != len(columns):
        raise ParseError(TOOL, number, "a column is named twice")
    refused = _REFUSED.match(header.strip())
    if refused:
        field = refused["field"]
        remedy = f"Ask again without {field}, or on a newer driver; nvidia-smi --help-query-gpu lists what it knows."
        raise ParseError(TOOL, number, f"this driver knows no field {field!r}, and printed no table", remedy=remedy)
    if not set(columns) & _KNOWN:
        raise ParseError(
            TOOL,
            number,
            "no header, so no column can be told: name the fields asked for (--fields)",
            remedy="Say what --query-gpu was asked for, in that order: kiln explain --fields index,name,...",
        )
    return columns


def _gpus(columns: list[str], rows: list[dict[str, str]]) -> tuple[Gpu, ...]:
    """One GPU a row; where the rows are of several rounds, one for all rows of the same index, UUID, address."""
    names = [name for name in _IDENTITY if name in columns]
    rounds = len({row["timestamp"] for row in rows}) if "timestamp" in columns else 1
    if rounds > 1 and not names:
        why = f"{len(rows)} rows of a loop, and no column (index, uuid) that tells the GPUs apart"
        raise ParseError(TOOL, 0, why, remedy="Ask for index or uuid too, or show one round (without -l).")
    seen: dict[tuple[str, ...], Gpu] = {}
    for at, row in enumerate(rows):
        key = tuple(row[name] for name in names) if rounds > 1 else (str(at),)
        one = gpu(_raw(len(seen) if key not in seen else seen[key].index, row))
        seen[key] = merge.fill(one, seen[key]) if key in seen else one
    if len({one.index for one in seen.values()}) != len(seen):
        raise ParseError(TOOL, 0, "two rows have the same index")
    return tuple(seen.values())


def is_refusal(line: str) -> bool:
    """Whether nvidia-smi prints no table since it does not know a field that was asked for."""
    return _REFUSED.match(line.strip()) is not None


def is_header(line: str) -> bool:
    """Whether a first line is a header of this tool: every cell a field name, at least one of them known."""
    cells = [_UNIT.sub("", cell).lower() for cell in _cells(line)]
    return all(re.fullmatch(r"[a-z][\w.]*", cell) for cell in cells) and bool(set(cells) & _KNOWN)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _raw(at: int, row: dict[str, str]) -> RawGpu:
    values: dict[str, tuple[str, ...]] = {}
    for key, names in _COLUMNS.items():
        found = [row[name] for name in names if name in row]
        real = [cell for cell in found if not isinstance(word(cell), Missing)]
        if found:
            cell = (real or found)[0]
            values[key] = (_LABELLED.sub("", cell) if key in ("fabric.state", "fabric.status") else cell,)
    for key, names in _ECC_PARTS.items():
        parts = [row[name] for name in names if name in row]
        if key not in values and (len(parts) == len(_PARTS) or any(part not in ("0", "") for part in parts)):
            values[key] = tuple(parts)
    index = integer(row.get("index"), TOOL, "index")
    return RawGpu(
        tool=TOOL,
        index=at if isinstance(index, Missing) else index,
        values=values,
        throttle=_throttle(row),
        health={match[1]: cell for name, cell in row.items() if (match := _HEALTH.match(name))},
    )


def _throttle(row: dict[str, str]) -> dict[str, str]:
    """The reasons by name, from a column each or from the mask of all (``0x0000000000000004``)."""
    words = {match[1]: cell for name, cell in row.items() if (match := _REASONS.match(name))}
    mask = next((row[name] for name in _MASKS if name in row), None)
    if mask is None or isinstance(word(mask), Missing):
        return words or {name: mask for name in ("gpu_idle", "hw_slowdown") if mask is not None}
    if not re.fullmatch(r"0x[0-9a-fA-F]+", mask):
        raise ParseError(TOOL, 0, f"clock reasons: {mask!r} is not a mask")
    active = throttle_mask(int(mask, 16))
    every = {*THROTTLE_BITS.values(), *active}
    return {**{name: "Active" if name in active else "Not Active" for name in every}, **words}
