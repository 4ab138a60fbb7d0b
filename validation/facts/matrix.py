"""The labelled matrices of ``nvidia-smi topo``: a header of column labels, then one row a device.

Read by tab position where the tool printed tabs, since header cells may be empty and names cut short; by white space
where a terminal or a paste turned them into blanks. A row that does not fit the header is an error, never shifted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

GPU_LABEL = re.compile(r"^(?:GPU|PPU)(\d+)$")
# Two labels printed without a blank between them ("NIC28NIC29"): the columns after them cannot be told apart.
_GLUED = re.compile(r"^(?:GPU|PPU|NIC)\d+\S*(?:GPU|PPU|NIC|mlx5_)\d+|^mlx5_\d+\S*(?:mlx5_|NIC|GPU)\d+")
_BLANK = "\ue000"  # stands for the blank inside a label of two words while a line is split
AFFINITY = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


@dataclass(frozen=True)
class Row:
    """One row: its line number, its label ("" where the tool left it out) and its cells by column."""

    line: int
    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """``columns`` are the header's labels, "" where the tool printed an empty one. ``gpus``: rows by GPU index."""

    columns: tuple[str, ...]
    gpus: dict[int, Row]
    others: tuple[Row, ...]

    @functools.cached_property  # asked for every cell
    def gpu_columns(self) -> tuple[int, ...]:
        """For each GPU index in the header, in order of the index, the position of its column."""
        found = {int(match[1]): at for at, label in enumerate(self.columns) if (match := GPU_LABEL.match(label))}
        return tuple(found[index] for index in sorted(found))


def read(text: str, tool: str, cell: re.Pattern[str]) -> Matrix:
    """The matrix in a text; ``cell`` is what a cell between two devices may be.

    Raises ParseError where there is no header, where labels run together, where GPU columns and rows are not the same
    GPUs 0..n-1, where a row is shorter or longer than the header, and where the diagonal is not X.
    """
    numbered = [(number, line.rstrip("\n")) for number, line in enumerate(lines(text), start=1)]
    at, columns, tabbed = _header(numbered, tool, cell)
    _check_header(columns, tool, numbered[at - 1][0])
    gpus: dict[int, Row] = {}
    others: list[Row] = []
    for number, line in numbered[at:]:
        if not line.strip():
            if gpus or others:
                break
            continue
        row = _row(number, line, columns, tabbed=tabbed, tool=tool)
        match = GPU_LABEL.match(row.label)
        if match is None:
            others.append(row)
            continue
        if int(match[1]) in gpus:
            raise ParseError(tool, number, f"a second row for {row.label}")
        gpus[int(match[1])] = row
    matrix = Matrix(tuple(columns), gpus, tuple(others))
    _check_rows(matrix, tool, cell)
    return matrix


def _split(line: str, *, tabbed: bool) -> list[str]:
    if tabbed:
        return [part.strip() for part in line.split("\t")]
    marked = line
    for label in AFFINITY:
        marked = re.sub(re.escape(label).replace(r"\ ", r"\s+"), label.replace(" ", _BLANK), marked)
    return [part.replace(_BLANK, " ") for part in marked.split()]


def _header(numbered: Sequence[tuple[int, str]], tool: str, cell: re.Pattern[str]) -> tuple[int, list[str], bool]:
    """Where the rows begin, the column labels, and whether the text is separated by tabs.

    A header line holds labels only, the first of them GPU0. A terminal may have wrapped it over several lines.
    """
    for at, (_, line) in enumerate(numbered):
        tabbed = "\t" in line
        labels = _split(line, tabbed=tabbed)
        if tabbed:
            labels = labels[1:] if labels and not labels[0] else labels
        while tabbed and labels and not labels[-1]:
            labels.pop()  # drivers 535 and 550 end every line of topo -p2p with a tab
        if not labels or not _is_header(labels, cell) or GPU_LABEL.match(labels[0]) is None or int(labels[0][3:]) != 0:
            continue
        at += 1
        while at < len(numbered) and not tabbed:
            more = _split(numbered[at][1], tabbed=False)
            if not _is_header(more, cell):
                break
            labels += more
            at += 1
        return at, labels, tabbed
    raise ParseError(tool, 0, "no matrix: no header line that begins with GPU0")


def _is_header(labels: Sequence[str], cell: re.Pattern[str]) -> bool:
    if not labels or GPU_LABEL.match(labels[0]) is None:
        return False
    known = (GPU_LABEL.match(label) or label.startswith(("NIC", "mlx", "rdma", "roce", "ib")) for label in labels)
    return all(not cell.match(label) and label != "X" for label in labels if label) and (
        len(labels) == 1 or any(list(known)[1:]) or any(label in AFFINITY for label in labels)
    )


def _check_header(columns: Sequence[str], tool: str, line: int) -> None:
    for label in columns:
        if _GLUED.match(label):
            raise ParseError(tool, line, f"column labels run together in {label!r}: columns cannot be told apart")
    indices = [int(match[1]) for label in columns if (match := GPU_LABEL.match(label))]
    if sorted(indices) != list(range(len(indices))):
        raise ParseError(tool, line, f"GPU columns are {indices}, not 0 to {len(indices) - 1}")
    places = [at for at, label in enumerate(columns) if label in AFFINITY]
    if places and places != list(range(places[0], len(columns))):
        raise ParseError(tool, line, "the affinity columns are not the last ones")


def _row(number: int, line: str, columns: Sequence[str], *, tabbed: bool, tool: str) -> Row:
    parts = _split(line, tabbed=tabbed)
    label, cells = parts[0], parts[1:]
    width = len(columns)
    if GPU_LABEL.match(label):
        if tabbed and columns[-1] == AFFINITY[2] and len(cells) == width + 1 and not cells[-2]:
            del cells[-2]  # drivers 535 to 590 print two tabs before the cell of GPU NUMA ID
        if tabbed and len(cells) == width + 1 and not cells[-1]:
            cells.pop()
        if len(cells) != width:
            raise ParseError(tool, number, f"{label}: {len(cells)} cells under {width} columns")
        return Row(number, label, tuple(cells))
    devices = len([name for name in columns if name not in AFFINITY])
    if len(cells) < devices or any(cells[devices:]):
        raise ParseError(tool, number, f"{label or 'unnamed'}: {len(cells)} cells for {devices} devices")
    return Row(number, label, tuple(cells[:devices]))


def _check_rows(matrix: Matrix, tool: str, cell: re.Pattern[str]) -> None:
    expected = len(matrix.gpu_columns)
    if sorted(matrix.gpus) != list(range(expected)):
        missing = sorted(set(range(expected)) - set(matrix.gpus))
        extra = sorted(set(matrix.gpus) - set(range(expected)))
        what = f"no row for GPU {missing}" if missing else f"no column for GPU {extra}"
        raise ParseError(
            tool, 0, f"{expected} GPU columns but {len(matrix.gpus)} GPU rows: {what}; the text is cut short"
        )
    devices = [at for at, name in enumerate(matrix.columns) if name not in AFFINITY]
    for index, row in matrix.gpus.items():
        for at in devices:
            own = matrix.gpu_columns[index] == at
            if own != (row.cells[at] == "X"):
                raise ParseError(
                    tool, row.line, f"{row.label}: column {at} holds {row.cells[at]!r}; X must be on the diagonal"
                )
            if not own and not cell.match(row.cells[at]):
                raise ParseError(tool, row.line, f"{row.label}: {row.cells[at]!r} is no link that this tool prints")
