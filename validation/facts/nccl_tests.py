"""nccl-tests (``all_reduce_perf`` and others): the bandwidth by message size, and whether results were checked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import lines

TOOL = "nccl-tests"
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[[^\]]*\] (.+?)\s*$")
_HEAD = re.compile(r"^#\s+size\s+count\s+type(?P<rest>.*)$")
_BOUNDS = re.compile(r"^# Out of bounds values : (\d+) (OK|FAILED)")
_AVERAGE = re.compile(r"^# Avg bus bandwidth\s*: (\d+(?:\.\d+)?)")
_VALIDATION = re.compile(r"\bvalidation: (\d+)|\bcheck: (\d+)", re.I)
_TRIPLE = ("time", "algbw", "busbw")


@dataclass(frozen=True)
class NcclSize:
    """One message size in bytes: bus bandwidth in GB/s, and wrong values (Missing where results were not checked)."""

    size_bytes: int
    out_of_place_gbps: float
    in_place_gbps: float
    wrong: int | Missing


@dataclass(frozen=True)
class NcclResult:
    """A whole run. ``average_gbps`` is over all sizes, small ones too: never to be compared with a floor."""

    ranks: tuple[tuple[str, str], ...]  # host, GPU name
    sizes: tuple[NcclSize, ...]
    average_gbps: float
    out_of_bounds: int
    failed: bool
    checked: bool

    @property
    def peak(self) -> NcclSize:
        """The size with the highest bus bandwidth, in or out of place."""
        return max(self.sizes, key=lambda size: max(size.out_of_place_gbps, size.in_place_gbps))

    @property
    def peak_gbps(self) -> float:
        return max(self.peak.out_of_place_gbps, self.peak.in_place_gbps)


def parse(text: str) -> NcclResult:
    """The table, old form (``error``, no root) and new (``#wrong``). NCCL's own log lines between rows are skipped.

    Raises ParseError where the closing lines are missing: the run did not end.
    """
    columns: list[str] = []
    sizes: list[NcclSize] = []
    ranks: list[tuple[str, str]] = []
    bounds, average, validation = None, None, None
    for number, line in enumerate(lines(text), start=1):
        head, rank = _HEAD.match(line), _RANK.match(line)
        if head:
            columns = ["size", "count", "type", *head["rest"].split()]
        elif rank:
            ranks.append((rank[2], rank[3]))
        elif line.startswith("#"):
            bounds = _BOUNDS.match(line) or bounds
            average = _AVERAGE.match(line) or average
            validation = _VALIDATION.search(line) or validation
        elif columns and re.match(r"^\s+\d+\s+\d+\s+\w", line):
            sizes.append(_row(line.split(), columns, number))
    if not columns:
        raise ParseError(TOOL, 0, "no line with the column names")
    if bounds is None or average is None:
        raise ParseError(TOOL, 0, "no closing line 'Avg bus bandwidth': the run did not end, or the text is cut short")
    if not sizes:
        raise ParseError(TOOL, 0, "a table without a row")
    asked = validation is None or (validation[1] or validation[2]) != "0"
    return NcclResult(
        ranks=tuple(ranks),
        sizes=tuple(sizes),
        average_gbps=float(average[1]),
        out_of_bounds=int(bounds[1]),
        failed=bounds[2] == "FAILED",
        checked=asked and all(not isinstance(size.wrong, Missing) for size in sizes),
    )


def _row(cells: list[str], columns: list[str], number: int) -> NcclSize:
    if len(cells) != len(columns):
        raise ParseError(TOOL, number, f"{len(cells)} cells under {len(columns)} columns")
    starts = [at for at in range(len(columns)) if tuple(columns[at : at + 3]) == _TRIPLE]
    if len(starts) != 2:
        raise ParseError(TOOL, number, f"columns {columns}: not time, algbw, busbw twice")
    wrongs = [_wrong(cells[start + 3]) for start in starts]
    try:
        rates = [float(cells[start + 2]) for start in starts]
        size = int(cells[0])
    except ValueError as error:
        raise ParseError(TOOL, number, f"not a number: {error}") from error
    unchecked = next((wrong for wrong in wrongs if isinstance(wrong, Missing)), None)
    counted = sum(wrong for wrong in wrongs if not isinstance(wrong, Missing))
    return NcclSize(size, rates[0], rates[1], counted if unchecked is None else unchecked)


def _wrong(cell: str) -> int | Missing:
    """Wrong values: a count, an error of floating point in the old form, or N/A where nothing was checked."""
    try:
        value = float(cell)
    except ValueError:
        return Missing(Reason.NOT_APPLICABLE, cell) if cell.upper() == "N/A" else ABSENT
    return int(value) if value.is_integer() else (0 if value < 1e-2 else 1)
