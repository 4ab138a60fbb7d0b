"""The labelled matrices of ``nvidia-smi topo``: a header of column labels, then one row a device.

Read by tab position where the tool printed tabs, since header cells may be empty and names cut short; by white space
where a terminal or a paste turned them into blanks. A row that does not fit the header is an error, never shifted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from profiles.errors import ParseError
from validation.facts.text import lines

GPU_LABEL = re.compile(r"^(?:GPU|PPU)(\d{1,4})$")
# Labels that a terminal's line break or a paste ran together ("GPU0GPU1", "NIC28NIC29").
_DEVICE = re.compile(r"(?:GPU|PPU|NIC)\d+|mlx5_\d+")
_BLANK = "\ue000"  # stands for the blank inside a label of two words while a line is split
_ROW_OUTSIDE = re.compile(r"^[\s>|]{0,40}(?:GPU|PPU)\d{1,4}\s{1,200}(?P<cells>\S.{0,200})")
_REST = re.compile(r"^[\d,-]+$|^N/A$")  # what follows the last cell of a row: CPUs, NUMA nodes
_NETWORK = ("NIC", "mlx", "rdma", "roce", "ib")
AFFINITY = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


class Words:
    """What a cell between two devices may be: patterns of which none begins another, so that joined ones come apart."""

    def __init__(self, *patterns: str) -> None:
        self._one = re.compile("|".join(("X", *patterns)))

    def knows(self, cell: str) -> bool:
        """Whether the cell is one of the words, or the X of the diagonal."""
        return self._one.fullmatch(cell) is not None

    def apart(self, cell: str) -> list[str]:
        """``NODEPIX`` as two cells; a cell that is not made of words alone stays one."""
        found = self._one.findall(cell)
        return found if "".join(found) == cell else [cell]


@dataclass(frozen=True)
class Row:
    """One row: its line number, its label ("" where the tool left it out) and its cells by column."""

    line: int
    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """``columns`` are the header's labels, "" where the tool printed an empty one. ``gpus``: rows by GPU index.

    ``affinity`` is false where the affinity cells cannot be told apart, because some are empty and the tabs are gone.
    """

    columns: tuple[str, ...]
    gpus: dict[int, Row]
    affinity: bool = True

    @functools.cached_property  # asked for every cell
    def gpu_columns(self) -> tuple[int, ...]:
        """For each GPU index in the header, in order of the index, the position of its column."""
        found = {int(match[1]): at for at, label in enumerate(self.columns) if (match := GPU_LABEL.match(label))}
        return tuple(found[index] for index in sorted(found))


@dataclass(frozen=True)
class _Header:
    """``line``: its number, from 1. ``end``: how many lines stand before the rows. ``glued``: labels run together."""

    line: int
    end: int
    columns: tuple[str, ...]
    tabbed: bool
    glued: tuple[str, ...] = ()

    @functools.cached_property
    def devices(self) -> int:
        return sum(name not in AFFINITY for name in self.columns)


def read(text: str, tool: str, words: Words) -> Matrix:
    """The matrix in a text.

    Raises ParseError where there is no header or a second one, where rows of another matrix stand around it, where GPU
    columns and rows are not the same GPUs 0..n-1, where a row is shorter or longer than the header, and where the
    diagonal is not X.
    """
    numbered = [(number, line.rstrip("\n")) for number, line in enumerate(lines(text), start=1)]
    header = _header(numbered, tool, words)
    gpus: dict[int, Row] = {}
    outside = [one for one in numbered if one[0] < header.line]
    for number, line in _unwrapped(numbered[header.end :], header, words):
        if not line.strip():
            if gpus:
                outside += numbered[number:]
                break
            continue
        label, cells = _cells(line, header, words)
        match = GPU_LABEL.match(label)
        if match is None and not _is_row(label, cells, header, words):
            outside += numbered[number - 1 :]
            break
        row = Row(number, label, tuple(cells)) if match else _other(number, label, cells, header, tool)
        if match and int(match[1]) in gpus:
            raise ParseError(tool, number, f"a second row for {label}")
        if match:
            gpus[int(match[1])] = row
    _check_outside(outside, tool, words)
    matrix = _filled(Matrix(header.columns, gpus), header, tool)
    _check_rows(matrix, tool, words)
    return matrix


def _check_outside(numbered: Sequence[tuple[int, str]], tool: str, words: Words) -> None:
    """Raises ParseError where rows stand outside the matrix: of another one, whose header is gone or was not read."""
    for number, line in numbered:
        match = _ROW_OUTSIDE.match(line)
        cells = match["cells"].split()[:2] if match else []
        if cells[:1] == ["X"] or (len(cells) > 1 and all(map(words.knows, cells))):
            raise ParseError(tool, number, f"{line.strip()[:80]!r} is a row of another matrix; give one at a time")


def _split(line: str, *, tabbed: bool) -> list[str]:
    if tabbed:
        return [part.strip() for part in line.split("\t")]
    marked = line
    for label in AFFINITY:
        marked = re.sub(re.escape(label).replace(r"\ ", r"\s+"), label.replace(" ", _BLANK), marked)
    return [part.replace(_BLANK, " ") for part in marked.split()]


def _header(numbered: Sequence[tuple[int, str]], tool: str, words: Words) -> _Header:
    """The one header. A header line holds labels only, the first of them GPU0; a terminal may have wrapped it."""
    found: list[_Header] = []
    for at, (number, line) in enumerate(numbered):
        labels, glued = _labels(line) if "PU0" in line else ([], [])  # of GPU0 or PPU0: no other line is one
        if not _is_header(labels, words):
            continue
        end, tabbed = at + 1, "\t" in line
        while end < len(numbered) and not tabbed:
            more, wrapped = _labels(numbered[end][1])
            if not more or more[0] == labels[0] or not all(_is_label(label) for label in more):
                break
            labels, glued, end = [*labels, *more], [*glued, *wrapped], end + 1
        found.append(_Header(number, end, tuple(labels), tabbed, tuple(glued)))
    if not found:
        raise ParseError(tool, 0, "no matrix: no header line that begins with GPU0")
    if len(found) > 1:
        raise ParseError(
            tool, found[1].line, f"a second matrix begins here (the first: line {found[0].line}); give one at a time"
        )
    _check_header(found[0], tool)
    return found[0]


def _labels(line: str) -> tuple[list[str], list[str]]:
    """The labels of a line, were it a header's, and those of its parts in which several are run together."""
    tabbed = "\t" in line
    parts = _split(line, tabbed=tabbed)
    if tabbed and not parts[0]:
        parts = parts[1:]
    while tabbed and parts and not parts[-1]:
        parts.pop()  # drivers 535 and 550 end every line of topo -p2p with a tab
    apart = {part: _apart(part) for part in parts}
    return [label for part in parts for label in (apart[part] or [part])], [part for part in parts if apart[part]]


def _apart(label: str) -> list[str]:
    """``NIC28NIC29`` as its two labels; nothing for one that is not several."""
    found = _DEVICE.findall(label) if len(label) > len("GPU0GPU") else []  # most are short, and nearly all asked for
    return found if len(found) > 1 and "".join(found) == label else []


def _is_label(label: str) -> bool:
    return GPU_LABEL.match(label) is not None or label.startswith(_NETWORK) or label in AFFINITY


def _is_header(labels: Sequence[str], words: Words) -> bool:
    """Whether these are a header's labels: GPU0 first, no cell among them, and another label after it."""
    match = GPU_LABEL.match(labels[0]) if labels else None
    if match is None or int(match[1]) != 0 or any(words.knows(label) for label in labels):
        return False
    return len(labels) == 1 or any(_is_label(label) for label in labels[1:])


def _check_header(header: _Header, tool: str) -> None:
    columns = header.columns
    indices = [int(match[1]) for label in columns if (match := GPU_LABEL.match(label))]
    if sorted(indices) != list(range(len(indices))):
        raise ParseError(tool, header.line, f"GPU columns are {indices}, not 0 to {len(indices) - 1}")
    places = [at for at, label in enumerate(columns) if label in AFFINITY]
    if places and places != list(range(places[0], len(columns))):
        raise ParseError(tool, header.line, "the affinity columns are not the last ones")


def _unwrapped(body: Sequence[tuple[int, str]], header: _Header, words: Words) -> Iterator[tuple[int, str]]:
    """The lines below the header, with those joined that a narrow terminal broke: a rest of cells without a label."""
    pending: tuple[int, str] | None = None
    for number, line in body:
        parts = [] if header.tabbed else line.split()
        rest = (
            parts and parts[0] not in header.columns and all(words.knows(part) or _REST.match(part) for part in parts)
        )
        if pending and rest and len(pending[1].split()) <= len(header.columns):
            pending = pending[0], f"{pending[1]} {line.strip()}"
            continue
        if pending:
            yield pending
        pending = number, line
    if pending:
        yield pending


def _cells(line: str, header: _Header, words: Words) -> tuple[str, list[str]]:
    """A row's label and cells; its affinity cells may still be fewer than the header's."""
    tabbed = header.tabbed and "\t" in line
    label, *cells = _split(line, tabbed=tabbed)
    width = len(header.columns)
    if tabbed:
        return label, _without_double_tabs(cells, header)
    if len(cells) < width:
        apart = [one for cell in cells for one in words.apart(cell)]
        fits = len(apart) in (width, header.devices) and all(words.knows(one) for one in apart[: header.devices])
        cells = apart if fits else cells
    return label, cells


def _without_double_tabs(cells: list[str], header: _Header) -> list[str]:
    """The cells without the empty ones that are no cell.

    Before the cell of GPU NUMA ID drivers 535 to 590 print two tabs, and before an N/A under NUMA Affinity some too.
    """
    width, devices = len(header.columns), header.devices
    extra = len(cells) - width
    told = [cell for cell in cells[devices:] if cell]
    if extra > 0 and devices + len(told) == width:
        return cells[:devices] + told
    if header.columns[-1] == AFFINITY[2] and extra == 1 and not cells[-2]:
        return [*cells[:-2], cells[-1]]
    return cells[:-1] if extra == 1 and not cells[-1] else cells


def _is_row(label: str, cells: Sequence[str], header: _Header, words: Words) -> bool:
    """Whether a line below the header is a device's; a prompt, a fence or a sentence ends the matrix."""
    return not label or label in header.columns or any(words.knows(cell) for cell in cells)


def _other(number: int, label: str, cells: list[str], header: _Header, tool: str) -> Row:
    """A row of a network card. Raises ParseError where it has fewer cells than there are devices, or more."""
    if len(cells) < header.devices or any(cells[header.devices :]):
        raise ParseError(tool, number, f"{label or 'unnamed'}: {len(cells)} cells for {header.devices} devices")
    return Row(number, label, tuple(cells[: header.devices]))


def _filled(matrix: Matrix, header: _Header, tool: str) -> Matrix:
    """The matrix with every GPU row as wide as the header.

    Where blanks took the place of the tabs, an empty affinity cell leaves no trace: rows that all lack the same number
    of them keep their links, and no affinity. A row that differs is cut short.
    """
    width = len(header.columns)
    sizes = {len(row.cells) for row in matrix.gpus.values()}
    if sizes <= {width}:
        return matrix
    blanks = not header.tabbed and not header.glued
    if blanks and len(sizes) == 1 and header.devices <= min(sizes) < width:
        padded = {
            index: replace(row, cells=row.cells[: header.devices] + ("",) * (width - header.devices))
            for index, row in matrix.gpus.items()
        }
        return Matrix(matrix.columns, padded, affinity=False)
    row = max(matrix.gpus.values(), key=lambda row: abs(len(row.cells) - width))
    glued = f"; the header runs {', '.join(header.glued)} together" if header.glued else ""
    raise ParseError(tool, row.line, f"{row.label}: {len(row.cells)} cells under {width} columns{glued}")


def _check_rows(matrix: Matrix, tool: str, words: Words) -> None:
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
            if not own and not words.knows(row.cells[at]):
                raise ParseError(tool, row.line, f"{row.label}: {row.cells[at]!r} is no link that this tool prints")
