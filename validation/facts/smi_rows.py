"""The CSV of nvidia-smi whose rows are no GPUs: ``--query-compute-apps`` and ``--query-retired-pages``."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts import driver_fault
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import integer, lines, number, pci_address, word

APPS_TOOL = "nvidia-smi --query-compute-apps"
PAGES_TOOL = "nvidia-smi --query-retired-pages"
_UNIT = re.compile(r"(?<!\s)\s*\[[^\[\]]*\]$")
_HEAD_MAX = 65536  # characters in which the header must stand: a log of 50 MB is asked whether it is such a list too
_GPU = ("gpu_uuid", "gpu_bus_id", "gpu_serial", "gpu_name")  # what a row may name its GPU by, the best first
_MEMORY = ("used_gpu_memory", "used_memory")
_ADDRESS, _CAUSE = "retired_pages.address", "retired_pages.cause"


@dataclass(frozen=True)
class GpuProcess:
    """A process on a GPU. ``gpu`` as the row names it: UUID, address or name; memory in MiB."""

    pid: int | Missing
    name: str | Missing = ABSENT
    gpu: str | Missing = ABSENT
    memory_mib: float | Missing = ABSENT


@dataclass(frozen=True)
class GpuProcesses:
    """Every process with a CUDA context that the caller may see: a container sees none of its neighbours'."""

    processes: tuple[GpuProcess, ...]


@dataclass(frozen=True)
class RetiredPageCount:
    """Retired pages of one GPU by cause, as the driver words it (``Single Bit ECC``, ``Double Bit ECC``)."""

    gpu: str
    single_bit: int
    double_bit: int

    @property
    def total(self) -> int:
        return self.single_bit + self.double_bit


@dataclass(frozen=True)
class RetiredPageList:
    """The GPUs that have retired pages. Whether one is pending is not told here (``-q -d PAGE_RETIREMENT``)."""

    gpus: tuple[RetiredPageCount, ...]


def is_apps(text: str) -> bool:
    """Whether the first row is the header of a list of processes."""
    return "pid" in _header(text)


def is_pages(text: str) -> bool:
    """Whether the first row is the header of a list of retired pages."""
    return _ADDRESS in _header(text)


def parse_apps(text: str) -> GpuProcesses:
    """The processes; none under a header alone. Raises ParseError where a row is ragged or no process id."""
    found = []
    for row in _rows(text, APPS_TOOL, "pid"):
        memory = next((row[name] for name in _MEMORY if name in row), None)
        found.append(
            GpuProcess(
                pid=integer(row["pid"], APPS_TOOL, "pid"),
                name=word(row.get("process_name", row.get("name"))),
                gpu=_gpu(row),
                memory_mib=number(memory, "MiB", APPS_TOOL, "used memory"),
            )
        )
    return GpuProcesses(tuple(found))


def parse_pages(text: str) -> RetiredPageList:
    """Pages by GPU and cause; none under a header alone. Raises ParseError where a row has no GPU or no known cause."""
    counts: dict[str, Counter[str]] = {}
    for row in _rows(text, PAGES_TOOL, _ADDRESS):
        gpu, cause, page = _gpu(row), row.get(_CAUSE, ""), word(row[_ADDRESS])
        if isinstance(page, Missing):
            continue  # a GPU that has none, or cannot have any, has a row of N/A
        bits = next((bits for bits in ("single", "double") if cause.lower().startswith(bits)), "")
        if isinstance(gpu, Missing) or not bits:
            raise ParseError(PAGES_TOOL, 0, f"page {row[_ADDRESS]}: no GPU, or {cause!r} is no cause known here")
        counts.setdefault(gpu, Counter())[bits] += 1
    return RetiredPageList(tuple(RetiredPageCount(gpu, by["single"], by["double"]) for gpu, by in counts.items()))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _header(text: str) -> list[str]:
    first = next((line for line in lines(text[:_HEAD_MAX]) if line.strip() and not driver_fault.find(line, "")), "")
    columns = [_UNIT.sub("", cell).lower() for cell in _cells(first)]
    return columns if all(re.fullmatch(r"[a-z][\w.]*", cell) for cell in columns) else []


def _rows(text: str, tool: str, needed: str) -> list[dict[str, str]]:
    columns = _header(text)
    if needed not in columns:
        raise ParseError(tool, 1, f"no header with a column {needed}")
    if len(set(columns)) != len(columns):
        raise ParseError(tool, 1, "a column is named twice")
    rows, headed = [], False
    for at, line in enumerate(lines(text), start=1):
        if not line.strip() or driver_fault.find(line, tool):
            continue
        cells = _cells(line)
        if not headed or [_UNIT.sub("", cell).lower() for cell in cells] == columns:
            headed = True
            continue
        if len(cells) > len(columns) and "process_name" in columns:
            cells = _joined(cells, columns.index("process_name"), len(columns))
        if len(cells) != len(columns):
            raise ParseError(tool, at, f"{len(cells)} cells under {len(columns)} columns")
        rows.append(dict(zip(columns, cells, strict=True)))
    return rows


def _joined(cells: list[str], at: int, wide: int) -> list[str]:
    """A command line with commas in it is one cell."""
    more = len(cells) - wide
    return [*cells[:at], ", ".join(cells[at : at + more + 1]), *cells[at + more + 1 :]]


def _gpu(row: dict[str, str]) -> str | Missing:
    named = next((row[name] for name in _GPU if name in row), None)
    return pci_address(named or "") or word(named)
