"""The table that ``nvidia-smi`` prints by itself: drivers 320 to 615, Linux, Windows and WSL, with MIG or without.

Names longer than their column are cut by the driver (``...``): they are kept as printed, and no GPU is told by one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from profiles.errors import ParseError
from validation.facts import driver_fault, merge
from validation.facts.fields import lost_gpus, not_shown
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.missing import ABSENT, Missing
from validation.facts.smi_cells import BANNER, TOOL, MigSlice, Reading, Row, read
from validation.facts.smi_rows import GpuProcess
from validation.facts.text import short_lines, word

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_GPU_LINE = re.compile(rf"^[ \t]*\|[ \t]+\d+ [^|\n]*\|[ \t]+{_ADDRESS}\b", re.MULTILINE)
_MIG_HEAD = re.compile(r"^[ \t]*\|[ \t]*MIG devices:", re.MULTILINE)


@dataclass(frozen=True)
class SmiTable:
    """What the table shows. ``errors`` names, per GPU, the cells that print ``ERR!``.

    ``names`` are as printed, where one is cut.
    """

    inventory: GpuInventory
    smi: str | Missing = ABSENT  # nvidia-smi's own version
    names: tuple[str, ...] = ()
    errors: tuple[tuple[int, tuple[str, ...]], ...] = ()
    mig_slices: tuple[MigSlice, ...] = ()
    processes: tuple[GpuProcess, ...] | Missing = ABSENT


def is_table(text: str) -> bool:
    """Whether a line is the table's banner, the first line of a GPU's row, or the head of the MIG devices."""
    return any(pattern.search(text) for pattern in (BANNER, _GPU_LINE, _MIG_HEAD))


def parse_table(text: str) -> SmiTable:
    """The table; of several (``-l``) each GPU as it was last, with what any of them found broken.

    Raises ParseError where no GPU has a row, a cell is not what its column holds, or two tables are of other GPUs.
    """
    tables = []
    for lines in _tables(short_lines(text, TOOL)):
        reading = Reading()
        *before, final = [entry for entry in lines if entry[1]] or [(0, "")]
        for at, line in before:
            read(reading, at, line)
        with contextlib.suppress(ParseError):  # the last line may be cut in its middle: then its row is not closed
            read(reading, *final)
        tables.append(_table(reading))
    faults = driver_fault.find(text, TOOL)
    named = [fault.gpu or fault.text for fault in faults if fault.kind == "gpu-lost"]
    warned = tuple(fault.gpu or fault.text for fault in faults if fault.kind == "inforom-corrupt")
    table = tables[-1]
    for older in reversed(tables[:-1]):
        table = _joined(table, older)
    gpus = table.inventory.gpus
    if not gpus:
        raise ParseError(TOOL, 0, "no whole row of a GPU")
    lost = lost_gpus(gpus, named)
    omitted = (*table.inventory.omitted, *not_shown([gpu.index for gpu in gpus], lost))
    return replace(table, inventory=replace(table.inventory, lost=lost, warned=warned, omitted=omitted))


def _tables(lines: list[str]) -> list[list[tuple[int, str]]]:
    """The lines of each table: every banner after the first begins another."""
    tables: list[list[tuple[int, str]]] = [[]]
    seen = False
    for at, line in enumerate(lines, start=1):
        banner = BANNER.search(line) is not None
        if banner and seen:
            tables.append([])
        seen = seen or banner
        tables[-1].append((at, " ".join(line.replace("\t", " ").split())))
    return tables


def _table(reading: Reading) -> SmiTable:
    omitted = list(reading.omitted)
    rows = reading.rows
    if rows and (not rows[-1].whole or (not reading.closed and reading.place == "gpus")):
        omitted.append(f"it ends within the row of GPU {rows[-1].gpu.index}")
    elif rows and reading.place == "processes" and not reading.closed:
        omitted.append("it ends within its table of processes")
    elif rows and reading.place != "processes":
        omitted.append("it ends before its table of processes: further GPUs may be cut off")
    if rows and not rows[-1].whole:
        rows = rows[:-1]
    _in_order(rows)
    banner, listed = reading.banner, reading.place == "processes"
    processes = tuple(reading.processes) if reading.no_processes is None else reading.no_processes
    gpus = tuple(_counted(row.gpu, reading, listed=listed) for row in rows)
    return SmiTable(
        inventory=GpuInventory(
            source="nvidia-smi",
            gpus=gpus,
            driver_version=word(banner["driver"]) if banner else ABSENT,
            cuda_driver_version=word(banner["cuda"]) if banner else ABSENT,
            omitted=tuple(omitted),
        ),
        smi=banner["smi"] if banner else ABSENT,
        names=tuple(row.name for row in rows) if any(isinstance(row.gpu.name, Missing) for row in rows) else (),
        errors=tuple((row.gpu.index, tuple(row.errors)) for row in rows if row.errors),
        mig_slices=tuple(reading.slices),
        processes=processes if listed else ABSENT,
    )


def _in_order(rows: list[Row]) -> None:
    indices = [row.gpu.index for row in rows]
    if indices != sorted(set(indices)):
        raise ParseError(TOOL, 0, f"GPU indices {indices} are not in order")


def _counted(gpu: Gpu, reading: Reading, *, listed: bool) -> Gpu:
    """The GPU with its processes, and, in MIG mode, with the errors of all its slices."""
    slices = [one for one in reading.slices if one.gpu == gpu.index]
    counts = [one.uncorrected for one in slices if not isinstance(one.uncorrected, Missing)]
    if gpu.mig_enabled is True and slices and len(counts) == len(slices):
        gpu = replace(gpu, ecc=replace(gpu.ecc, volatile_uncorrected=sum(counts)))
    if not listed:
        return gpu
    mine = sum(one.gpu == gpu.label for one in reading.processes)
    return replace(gpu, processes=mine if mine or reading.no_processes is None else reading.no_processes)


def _joined(newer: SmiTable, older: SmiTable) -> SmiTable:
    """Two tables of one machine: the newer, with what the older found broken."""
    mine, theirs = newer.inventory.gpus, older.inventory.gpus
    if [(gpu.index, gpu.pci_address) for gpu in mine] != [(gpu.index, gpu.pci_address) for gpu in theirs]:
        raise ParseError(TOOL, 0, "several tables, of different GPUs: give them one at a time")
    gpus = tuple(merge.fill(gpu, other) for gpu, other in zip(mine, theirs, strict=True))
    errors = dict(_gathered(newer.errors, older.errors))
    return replace(newer, inventory=replace(newer.inventory, gpus=gpus), errors=tuple(sorted(errors.items())))


def _gathered(*tables: tuple[tuple[int, tuple[str, ...]], ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    every = [entry for table in tables for entry in table]
    for index in sorted({index for index, _ in every}):
        yield index, tuple(dict.fromkeys(cell for at, cells in every if at == index for cell in cells))
