"""The tables of ``lsblk``: the columns are found by their place, so a model of several words or an empty cell is safe.

Where the place is lost (``lsblk -r``, a text pasted through something that folds blanks) the words are counted instead,
and a row that could be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from profiles.errors import ParseError
from validation.facts.host import BlockDevice
from validation.facts.missing import ABSENT, Missing

TOOL = "lsblk"
ASK = "Ask with lsblk -J -b -o NAME,TYPE,SIZE,MODEL,SERIAL,MOUNTPOINT."
_HUMAN = re.compile(r"^(\d+(?:[.,]\d+)?)\s*([BKMGTPE]?)(?:i?B)?$", re.I)
_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_HEADING = re.compile(r"^\s*K?NAME(?: +[A-Z][A-Z0-9:%_-]*)+ *$")
_TREE = "├└─│┌┈▶┬┤┼╰╭|`- "
_MAPPED = re.compile(r" \(dm-\d+\)")  # util-linux before 2.23: "vg-root (dm-0)"
_TYPE = re.compile(r"^[a-z][a-z0-9-]*$")
_TOLD = {"MAJ:MIN": re.compile(r"^\d+:\d+$"), "RM": re.compile(r"^[01]$"), "RO": re.compile(r"^[01]$")}
_MOUNTS = ("MOUNTPOINT", "MOUNTPOINTS")
Cells = Mapping[str, str]


def is_heading(line: str) -> bool:
    """Whether a table of lsblk begins here."""
    return _HEADING.match(line) is not None


def device_size(raw: object, line: int) -> int | Missing:
    """Bytes: a number as it is, ``69.9G`` in powers of 1024 as lsblk means it."""
    if raw is None or raw == "":
        return ABSENT
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    match = _HUMAN.match(str(raw).strip())
    if match is None:
        raise ParseError(TOOL, line, f"size {raw!r}")
    return int(float(match[1].replace(",", ".")) * 1024 ** _POWERS[match[2].upper()])


def devices_of_table(numbered: list[tuple[int, str]]) -> list[BlockDevice]:
    """The devices below the heading, which is the first line. A mount point alone belongs to the device above it."""
    (head, heading), *below = numbered
    columns = heading.split()
    if "TYPE" not in columns:
        raise ParseError(TOOL, head, "no column TYPE, so nothing tells what a disk is", ASK)
    rows = [(number, _MAPPED.sub("", line.rstrip())) for number, line in below if line.strip()]
    devices: list[BlockDevice] = []
    for number, cells in _by_place(heading, rows) or _by_words(heading, rows):
        name = _name(cells)
        mounts = tuple(cells[key] for key in _MOUNTS if cells.get(key))
        if name:
            kind, size = cells["TYPE"], device_size(cells.get("SIZE"), number)
            devices.append(BlockDevice(name, kind, size, cells.get("MODEL", ""), cells.get("SERIAL", ""), mounts))
        elif devices:
            devices[-1] = replace(devices[-1], mountpoints=(*devices[-1].mountpoints, *mounts))
    if not devices:
        raise ParseError(TOOL, 0, "no device")
    return devices


def _by_place(heading: str, rows: list[tuple[int, str]]) -> list[tuple[int, Cells]] | None:
    """The cells by the place of their columns, or None where a row does not stand under the heading."""
    texts = [heading, *(line for _, line in rows)]
    if any("\t" in line for line in texts):
        return None
    filled = [False] * max(map(len, texts))
    for line in texts:
        for at, char in enumerate(line):
            filled[at] = filled[at] or char != " "
    starts: list[tuple[str, int]] = []
    for match in re.finditer("x+", "".join("x" if is_filled else " " for is_filled in filled)):
        names = heading[match.start() : match.end()].split()
        if len(names) > 1:
            return None
        # Blanks inside a value, or before a name with a tree to its left, part a column in two: it goes on.
        starts += [(names[0], match.start() if starts else 0)] if names else []
    ends: list[int | None] = [*(start for _, start in starts[1:]), None]
    read: list[tuple[int, Cells]] = []
    for number, line in rows:
        cells = {name: line[start:end].strip() for (name, start), end in zip(starts, ends, strict=True)}
        if not _fits(cells):
            return None
        read.append((number, cells))
    return read


def _by_words(heading: str, rows: list[tuple[int, str]]) -> Iterator[tuple[int, Cells]]:
    """The cells by counting words: all of them, or all but the last one, which is empty then."""
    columns = heading.split()
    for number, line in rows:
        # lsblk -r separates by one blank each, and writes a blank inside a value as \x20.
        raw = line.strip().split(" ")
        words = (
            raw
            if heading.strip() == " ".join(columns) and len(raw) == len(columns)
            else line.strip().lstrip(_TREE).split()
        )
        if len(words) == 1 and words[0].startswith(("/", "[")) and set(columns) & set(_MOUNTS):
            yield number, {next(key for key in _MOUNTS if key in columns): words[0]}
            continue
        cells = dict(zip(columns, [*words, ""], strict=False))
        if "MODEL" in columns[:-1] or not len(columns) - 1 <= len(words) <= len(columns) or not _fits(cells):
            raise ParseError(TOOL, number, f"{len(words)} cells under {len(columns)} columns", ASK)
        yield number, cells


def _fits(cells: Cells) -> bool:
    """Whether a row can be what its columns say: a device with a type, or a further mount point alone."""
    if not _name(cells):
        return all(not cell.strip(_TREE) for key, cell in cells.items() if key not in _MOUNTS)
    size = cells.get("SIZE", "")
    told = all(pattern.match(cells[key]) for key, pattern in _TOLD.items() if key in cells)
    return told and _TYPE.match(cells.get("TYPE", "")) is not None and (not size or _HUMAN.match(size) is not None)


def _name(cells: Cells) -> str:
    return (cells.get("NAME") or cells.get("KNAME") or "").lstrip(_TREE).removeprefix("/dev/")
