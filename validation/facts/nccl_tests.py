"""nccl-tests (``all_reduce_perf`` and others): the bandwidth by message size, and whether results were checked.

Formats: NVIDIA/nccl-tests src/common.cu and src/util.cu, read from 2.0 (2018) to 2.18 (2026-08), and runs of users: the
tables with ``res``, ``error`` and ``#wrong``, with and without redop and root, with timestamps, CPU time and statistics
per iteration, below the labels of mpirun and srun; the JSON of ``-J`` (2.17 and newer).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.launcher import LABEL, unlabelled
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import clean

TOOL = "nccl-tests"
_SIGN = re.compile(
    rf"^\s*(?:{LABEL})*\s*#?\s*(?:nThread .*nGpus|(?:size|bytes)\s+(?:count|N)\s+type|Out of bounds values *:)"
    r'|^\s*\{(?s:.*)"(?:average_bus_bandwidth|nccl_version)"',
    re.M,
)
_RANK = re.compile(
    r"^#?\s+Rank\s+(?P<rank>\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+(?P<pid>\d+) )?on\s+(?P<host>\S+) device\s+\d+ "
    r"\[[^\]]*\] (?P<board>.+?)\s*$"
)
_HEAD = re.compile(r"^#?\s+(?:size|bytes)\s+(?:count|N)\s+type(?P<rest>.*)$")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+[a-z]\w*\s")
_FLOAT = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?nan|inf)"
_BOUNDS = re.compile(r"^#?\s*Out of bounds values\s*: (\d+) (OK|FAILED)")
_AVERAGE = re.compile(rf"^#?\s*Avg bus bandwidth\s*: {_FLOAT}\s*(OK|FAILED)?")
_VALIDATION = re.compile(r"\bvalidation: (\d+)|\bcheck: (\d+)", re.I)
_FAILURE = re.compile(r"Test (?:NCCL|CUDA) failure .*|Invalid number of GPUs: .*")
_TIMES = ("time", "cputime")
_COUNTED = "#wrong"  # older tables give an error of floating point, which rounding alone explains


@dataclass(frozen=True)
class NcclSize:
    """One message size in bytes: bus bandwidth in GB/s, and wrong values (Missing where results were not checked)."""

    size_bytes: int
    out_of_place_gbps: float
    in_place_gbps: float
    wrong: int | Missing


@dataclass(frozen=True)
class NcclResult:
    """A whole run. ``average_gbps`` is over all sizes, small ones too: never to be compared with a floor.

    ``below_minimum``: the average is under what the caller set as NCCL_TESTS_MIN_BW. ``failures`` are the sentences of
    a run that broke off. ``apart``: processes that call themselves rank 0, more than one where MPI was not built in.
    """

    ranks: tuple[tuple[str, str], ...]  # host, GPU name
    sizes: tuple[NcclSize, ...]
    average_gbps: float
    out_of_bounds: int
    failed: bool
    checked: bool
    below_minimum: bool = False
    failures: tuple[str, ...] = ()
    apart: int = 1

    @property
    def peak(self) -> NcclSize:
        """The size with the highest bus bandwidth, in or out of place; one of nothing for a run that broke off."""
        nothing = NcclSize(0, 0.0, 0.0, ABSENT)
        return max(self.sizes, key=lambda size: max(size.out_of_place_gbps, size.in_place_gbps), default=nothing)

    @property
    def peak_gbps(self) -> float:
        return max(self.peak.out_of_place_gbps, self.peak.in_place_gbps)


def is_it(text: str) -> bool:
    """Told by what a run begins with, the head of its table, or its closing line, below a launcher's label or none."""
    return _SIGN.search(text) is not None


def parse(text: str) -> NcclResult:
    """The tables; NCCL's own log lines between rows are skipped. Of several runs in one text, all must be whole.

    Raises ParseError where closing lines are missing: the run did not end.
    """
    if clean(text).lstrip().startswith("{"):
        return _document(text)
    if '"average_bus_bandwidth"' in text:
        raise ParseError(TOOL, 0, "a table and a JSON document in one text", "Show one output at a time.")
    reader = _Reader()
    for number, line in enumerate(unlabelled(text), start=1):
        reader.read(number, line)
    return reader.result()


class _Reader:
    """Reads line by line. Rows open a table, its closing lines close it."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._sizes: list[NcclSize] = []
        self._ranks: list[tuple[str, str]] = []
        self._first: set[tuple[str, str]] = set()
        self._failures: list[str] = []
        self._average: float | None = None
        self._wrong, self._apart = 0, 1
        self._failed = self._below = self._open = self._unasked = False

    def read(self, number: int, line: str) -> None:
        if head := _HEAD.match(line):
            if self._open:
                raise ParseError(TOOL, number, "the table above has no closing line: that run did not end")
            self._columns = ["size", "count", "type", *head["rest"].split()]
        elif rank := _RANK.match(line):
            self._ranks.append((rank["host"], rank["board"]))
            self._first |= {(rank["host"], rank["pid"])} if rank["rank"] == "0" else set()
            self._apart = max(self._apart, len(self._first))
        elif bounds := _BOUNDS.match(line):
            self._wrong += int(bounds[1])
            self._failed = self._failed or bounds[2] == "FAILED"
        elif average := _AVERAGE.match(line):
            self._average, self._open = float(average[1]), False
            self._first = set()  # what follows is a run of its own
            self._below = self._below or average[2] == "FAILED"
        elif failure := _FAILURE.search(line):
            self._failures.append(failure[0].strip())
        elif line.startswith("#") or line.lstrip().startswith("nThread"):
            asked = _VALIDATION.search(line)
            self._unasked = self._unasked or (asked is not None and (asked[1] or asked[2]) == "0")
        elif self._columns and _ROW.match(line):
            self._sizes.append(_row(line.split(), self._columns, number))
            self._open = True

    def result(self) -> NcclResult:
        if not self._failures:
            self._check()
        return NcclResult(
            ranks=tuple(self._ranks),
            sizes=tuple(self._sizes),
            average_gbps=self._average if self._average is not None else 0.0,
            out_of_bounds=self._wrong,
            failed=self._failed,
            checked=bool(self._sizes)
            and not self._unasked
            and all(not isinstance(size.wrong, Missing) for size in self._sizes),
            below_minimum=self._below,
            failures=tuple(dict.fromkeys(self._failures)),
            apart=self._apart,
        )

    def _check(self) -> None:
        if not self._columns:
            raise ParseError(TOOL, 0, "no line with the column names")
        if self._average is None or self._open:
            reason = "no closing line 'Avg bus bandwidth': the run did not end, or the text is cut short"
            raise ParseError(TOOL, 0, reason)
        if not self._sizes:
            raise ParseError(TOOL, 0, "a table without a row")


def _row(cells: list[str], columns: list[str], number: int) -> NcclSize:
    stamped = columns[-1] == "timestamp"  # "2026-01-05 10:00:00": two cells under one name
    if len(cells) != len(columns) + stamped:
        raise ParseError(TOOL, number, f"{len(cells)} cells under {len(columns)} columns")
    starts = [
        at for at, name in enumerate(columns) if name in _TIMES and columns[at + 1 : at + 3] == ["algbw", "busbw"]
    ]
    if len(starts) != 2:
        raise ParseError(TOOL, number, f"columns {columns}: not time, algbw, busbw twice")
    wrongs = [_wrong(cells[start + 3], counted=columns[start + 3] == _COUNTED) for start in starts]
    try:
        rates = [float(cells[start + 2]) for start in starts]
        size = int(cells[0])
    except ValueError as error:
        raise ParseError(TOOL, number, f"not a number: {error}") from error
    return NcclSize(size, rates[0], rates[1], _both(wrongs))


def _both(wrongs: list[int | Missing]) -> int | Missing:
    """Wrong values out of place and in place. Some collectives have no check in place: then one is enough."""
    counts = [wrong for wrong in wrongs if not isinstance(wrong, Missing)]
    return sum(counts) if counts else wrongs[0]


def _wrong(cell: str, *, counted: bool) -> int | Missing:
    """Wrong values: a count; 0 for an error of floating point, which the closing line judges to be in bounds or not."""
    try:
        value = float(cell)
    except ValueError:
        return Missing(Reason.NOT_APPLICABLE, cell) if cell.upper() == "N/A" else ABSENT
    return int(value) if counted else 0


def _document(text: str) -> NcclResult:
    """The JSON of ``-J``. A run that broke off has no ``out_of_bounds``."""
    try:
        data = json.loads(clean(text))
        sizes = tuple(_json_size(item) for item in data["results"])
        if not sizes or "out_of_bounds" not in data:
            raise ParseError(TOOL, 0, "no closing 'out_of_bounds': the run did not end")
        devices = data["config"]["devices"]
        average = data["average_bus_bandwidth"]
        return NcclResult(
            ranks=tuple((str(item["hostname"]), str(item["device_info"])) for item in devices),
            sizes=sizes,
            average_gbps=float(average["bandwidth"]),
            out_of_bounds=int(data["out_of_bounds"]["count"]),
            failed=str(data["out_of_bounds"]["okay"]).lower() != "true",
            checked=bool(data["config"]["validation"]) and all(not isinstance(size.wrong, Missing) for size in sizes),
            below_minimum=str(average["okay"]).lower() == "false",
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole result: {error!r}") from error


def _json_size(item: dict[str, Any]) -> NcclSize:
    ways = [item[way] for way in ("out_of_place", "in_place") if item.get(way) is not None]
    absent = Missing(Reason.NOT_APPLICABLE, "null")
    wrongs: list[int | Missing] = [absent if way["nwrong"] is None else int(float(way["nwrong"])) for way in ways]
    rates = [float(way["bus_bw"]) for way in ways]
    return NcclSize(int(item["size"]), rates[0], rates[-1], _both(wrongs))
