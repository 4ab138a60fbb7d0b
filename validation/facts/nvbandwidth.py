"""nvbandwidth: one matrix a test, the tests it waived, and the ones that ended in an error; as text and as JSON.

Formats: NVIDIA/nvbandwidth output.cpp, json_output.cpp and their forerunners, read from v0.1 (2023) to v0.10 (2026-08),
and runs of users: many nodes, several runs in one text, "Waiving" and "Waived:", three matrices in one test (v0.10).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.launcher import unlabelled
from validation.facts.text import clean

TOOL = "nvbandwidth"
_SIGN = re.compile(
    r'^\s*nvbandwidth Version:|^\s*\{(?s:.*)"nvbandwidth"|^\s*memcpy (?:CE|SM) [CG]PU'
    r"|^\s*(?:Running|Waiving) \w+_(?:memcpy|latency|copy)\w*\.?\s*$",
    re.M,
)
_VERSION = re.compile(r"^nvbandwidth Version: (\S+)")
_DEVICE = re.compile(r"^(?:Device|Process \d+ \([^)]*\): device) (\d+): (.+?)(?: \(([0-9A-Fa-f:.]+)\))?\s*$")
_RUNNING = re.compile(r"^Running (\S+?)\.?\s*$")
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")
_ROW = re.compile(r"^\s*(\d+)((?:\s+(?:\d+\.\d+|N/A))+)\s*$")
_COLUMNS = re.compile(r"^\s*\d+(?:\s+\d+)*\s*$")
_SUM = re.compile(r"^SUM (\S+) ([\d.]+)")
_WAIVED = re.compile(r"^Waiv(?:ed:|ing \S)")
_ERROR = re.compile(
    r"^\s*(?:ERROR\b|Error:|\[ERROR\]|NVML_ERROR\b|ASSERT in expression|\[cuda\w+\]|\[?CUDA_ERROR_\w+|Not Found:).*"
    r"|^(?:Aborted|Segmentation fault|Killed|Bus error)\b.*|.*Encountered an error.*"
)
_CORRUPT = re.compile(r"Invalid value when checking the pattern.*")
_ONE_WAY = re.compile(r"_(?:read|write)[12]$")
_HEADING = re.compile(r"^\s*(?:memcpy|memory latency) .*\((?:GB/s|ns)\)\s*$")
_STARTS = re.compile(r"^\s*\d")
_ROUNDING = 0.006  # of one cell, printed with two digits


@dataclass(frozen=True)
class BandwidthTest:
    """One test: its matrix in ``unit`` by (row, column); a cell that is not measured (N/A) is left out."""

    name: str
    unit: str
    values: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class NvBandwidth:
    """A whole run. ``waived`` tests could not run on this machine: neither a pass nor a failure.

    ``devices`` are the boards' names; v0.10 prints none. ``corrupt`` are the sentences on data that came back wrong.
    """

    version: str
    devices: tuple[str, ...]
    tests: tuple[BandwidthTest, ...]
    waived: int
    errors: tuple[str, ...]
    corrupt: tuple[str, ...] = ()


def is_it(text: str) -> bool:
    """Told by its version, or by the name of a test or a matrix."""
    return _SIGN.search(text) is not None


def parse(text: str) -> NvBandwidth:
    """Every test with its matrix.

    Raises ParseError where a test ends without its SUM line, or its cells do not add up to it: the text is cut short.
    """
    if clean(text).lstrip().startswith("{"):
        return _document(text)
    reader = _Reader()
    for number, line in enumerate(unlabelled(text), start=1):
        reader.read(number, line)
    reader.end_test(0)
    if not reader.version and not reader.tests:
        raise ParseError(TOOL, 1, "no line 'nvbandwidth Version'")
    return NvBandwidth(
        version=reader.version,
        devices=tuple(reader.devices.values()),
        tests=tuple(reader.tests),
        waived=reader.waived,
        errors=tuple(dict.fromkeys(reader.errors)),
        corrupt=tuple(dict.fromkeys(reader.corrupt)),
    )


class _Reader:
    """Reads line by line; between "Running" and "SUM" it is inside a test. A test of v0.10 may have three SUM lines."""

    def __init__(self) -> None:
        self.version = ""
        self.waived = 0
        self.devices: dict[str, str] = {}
        self.errors: list[str] = []
        self.corrupt: list[str] = []
        self.tests: list[BandwidthTest] = []
        self._name = ""
        self._matrix_starts()

    def _matrix_starts(self) -> None:
        self._unit, self._width = "", 0
        self._cells: list[tuple[int, int, float]] = []

    def end_test(self, number: int) -> None:
        if self._unit or self._width or (self._name and not self._summed()):
            name = self._name or "a matrix"
            raise ParseError(TOOL, number, f"{name} has no SUM line: the text is cut short")
        self._name = ""

    def _summed(self) -> bool:
        """Each way of a copy in both directions has its own matrix since v0.10; the last is that of their total."""
        last = self.tests[-1].name if self.tests else ""
        return last.startswith(self._name) and not _ONE_WAY.search(last)

    def _broken_off(self) -> None:
        self._name = ""
        self._matrix_starts()

    def read(self, number: int, line: str) -> None:
        if match := _RUNNING.match(line):
            self.end_test(number)
            self._name = match[1]
        elif match := _SUM.match(line):
            self._sum(number, match[1], float(match[2]))
        elif _WAIVED.match(line):
            self.waived += 1
            self._broken_off()
        elif match := _CORRUPT.search(line):
            self.corrupt.append(f"{self._name or 'a test'}: {match[0].strip()}")
            self._broken_off()
        elif _ERROR.match(line):
            self.errors.append(f"{self._name}: {line.strip()}" if self._name else line.strip())
            self._broken_off()
        elif match := _VERSION.match(line):
            self.end_test(number)
            self.version = match[1]
        elif match := _DEVICE.match(line):
            self.devices[match[1] if line.startswith("Device") else line] = match[2]
        elif self._name or self._unit or _HEADING.match(line):  # a paste may leave "Running" out
            self._matrix(number, line)

    def _sum(self, number: int, name: str, total: float) -> None:
        found = sum(value for _, _, value in self._cells)
        if abs(found - total) > _ROUNDING * (len(self._cells) + 1) + 1e-6 * total:
            raise ParseError(
                TOOL, number, f"{name}: the cells add up to {found:.2f}, SUM says {total:.2f}: a row is lost"
            )
        self.tests.append(BandwidthTest(name, self._unit, tuple(self._cells)))
        self._matrix_starts()

    def _matrix(self, number: int, line: str) -> None:
        if match := _UNIT.search(line):
            self._unit = match[1]
        elif not self._width and _COLUMNS.match(line):
            self._width = len(line.split())
        elif match := _ROW.match(line):
            cells = match[2].split()
            if len(cells) != self._width:
                raise ParseError(TOOL, number, f"{len(cells)} cells under {self._width} columns")
            row = int(match[1])
            self._cells += [(row, column, float(cell)) for column, cell in enumerate(cells) if cell != "N/A"]
        elif self._width and _STARTS.match(line):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not a row of numbers")


def _document(text: str) -> NvBandwidth:
    """The JSON of ``-j``. A status that is neither Passed nor Waived is an error."""
    try:
        root = json.loads(clean(text))["nvbandwidth"]
        cases = root.get("testcases") or []
        errors = [str(root["error"])] if root.get("error") else []
        errors += [
            _json_error(case) for case in cases if case["status"] not in ("Passed", "Waived") or case.get("error")
        ]
        if not cases and not errors:
            raise ParseError(TOOL, 0, "no test in the document")
        return NvBandwidth(
            version=str(root.get("version") or root.get("git_version") or ""),
            devices=tuple(_board(str(device)) for device in root.get("GPU Device list") or ()),
            tests=tuple(_json_test(case) for case in cases if case["status"] == "Passed"),
            waived=sum(case["status"] == "Waived" for case in cases),
            errors=tuple(dict.fromkeys(errors)),
            corrupt=tuple(error for error in errors if _CORRUPT.search(error)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole result: {error!r}") from error


def _json_error(case: dict[str, Any]) -> str:
    return f"{case['name']}: {case.get('error') or case['status']}"


def _board(device: str) -> str:
    """The name in ``0: NVIDIA GB200 (00000008:06:00): (host)``."""
    match = re.match(r"^\d+: (.+?)(?: \([0-9A-Fa-f:.]+\))?(?:: \(.*\))?$", device)
    return match[1] if match else device


def _json_test(case: dict[str, Any]) -> BandwidthTest:
    unit = _UNIT.search(str(case["bandwidth_description"]))
    cells = tuple(
        (row, column, float(cell))
        for row, cells in enumerate(case["bandwidth_matrix"])
        for column, cell in enumerate(cells)
        if cell != "N/A"
    )
    return BandwidthTest(str(case["name"]), unit[1] if unit else "", cells)
