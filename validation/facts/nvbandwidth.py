"""nvbandwidth: one matrix a test, the tests it waived, and the ones that ended in an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "nvbandwidth"
_VERSION = re.compile(r"^nvbandwidth Version: (\S+)")
_DEVICE = re.compile(r"^Device (\d+): (.+?)(?: \(([0-9A-Fa-f:.]+)\))?\s*$")
_RUNNING = re.compile(r"^Running (\S+?)\.?\s*$")
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")
_ROW = re.compile(r"^\s*(\d+)((?:\s+(?:\d+\.\d+|N/A))+)\s*$")
_COLUMNS = re.compile(r"^\s+\d+(?:\s+\d+)*\s*$")
_SUM = re.compile(r"^SUM (\S+) ([\d.]+)")
_ERROR = re.compile(r"^(?:ERROR|\[ERROR\]|CUDA_ERROR|.*Encountered an error).*", re.I)


@dataclass(frozen=True)
class BandwidthTest:
    """One test: its matrix in ``unit`` by (row, column); a cell that is not measured (N/A) is left out."""

    name: str
    unit: str
    values: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class NvBandwidth:
    """A whole run. ``waived`` tests could not run on this machine: neither a pass nor a failure."""

    version: str
    devices: tuple[str, ...]
    tests: tuple[BandwidthTest, ...]
    waived: int
    errors: tuple[str, ...]


def parse(text: str) -> NvBandwidth:
    """Every test with its matrix. Raises ParseError where a test ends without its SUM line: the text is cut short."""
    reader = _Reader()
    for number, line in enumerate(lines(text), start=1):
        reader.read(number, line)
    reader.end_test(0)
    if not reader.version and not reader.tests:
        raise ParseError(TOOL, 1, "no line 'nvbandwidth Version'")
    return NvBandwidth(
        version=reader.version,
        devices=tuple(reader.devices),
        tests=tuple(reader.tests),
        waived=reader.waived,
        errors=tuple(reader.errors),
    )


class _Reader:
    """Reads line by line; between "Running" and "SUM" it is inside a test's matrix."""

    def __init__(self) -> None:
        self.version = ""
        self.waived = 0
        self.devices: list[str] = []
        self.errors: list[str] = []
        self.tests: list[BandwidthTest] = []
        self._start("")

    def _start(self, name: str) -> None:
        self._name, self._unit, self._width = name, "", 0
        self._cells: list[tuple[int, int, float]] = []

    def end_test(self, number: int) -> None:
        if self._name:
            raise ParseError(TOOL, number, f"{self._name} has no SUM line: the text is cut short")

    def read(self, number: int, line: str) -> None:
        if match := _RUNNING.match(line):
            self.end_test(number)
            self._start(match[1])
        elif match := _SUM.match(line):
            self.tests.append(BandwidthTest(match[1], self._unit, tuple(self._cells)))
            self._start("")
        elif line.startswith("Waived"):
            self.waived += 1
            self._start("")
        elif _ERROR.match(line):
            self.errors.append(line.strip())
            self._start("")
        elif self._name:
            self._matrix(number, line)
        elif match := _VERSION.match(line):
            self.version = match[1]
        elif match := _DEVICE.match(line):
            self.devices.append(match[2])

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
