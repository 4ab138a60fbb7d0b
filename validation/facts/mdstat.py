"""/proc/mdstat: software RAID arrays and whether all their members are there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "/proc/mdstat"
_ARRAY = re.compile(
    r"^(md\S+) : (active|inactive)(?: \((?:auto-)?read-only\))?(?: (raid\d+|linear))?((?: \S+\[\d+\]\S*)*)\s*$"
)
_MEMBER = re.compile(r"(\S+)\[\d+\](\(F\))?")
_HEALTH = re.compile(r"\[(\d+)/(\d+)\] \[([U_]+)\]")


@dataclass(frozen=True)
class RaidArray:
    """One array; ``missing`` members of a redundant level, ``failed`` ones by name. raid0 has no health to print."""

    name: str
    active: bool
    level: str
    members: tuple[str, ...]
    failed: tuple[str, ...] = ()
    missing: int = 0


@dataclass(frozen=True)
class RaidArrays:
    arrays: tuple[RaidArray, ...]


def parse(text: str) -> RaidArrays:
    """Every array. "unused devices" ends the file: without it the text is cut short."""
    arrays: list[RaidArray] = []
    ended = False
    for number, line in enumerate(lines(text), start=1):
        match, health = _ARRAY.match(line), _HEALTH.search(line)
        if match:
            members = _MEMBER.findall(match[4])
            failed = tuple(name for name, mark in members if mark)
            names = tuple(name for name, _ in members)
            arrays.append(RaidArray(match[1], match[2] == "active", match[3] or "", names, failed))
        elif line.startswith("md"):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not an array")
        elif health and arrays:
            last = arrays[-1]
            gone = health[3].count("_")
            arrays[-1] = RaidArray(last.name, last.active, last.level, last.members, last.failed, gone)
        ended = ended or line.startswith("unused devices:")
    if not ended:
        raise ParseError(TOOL, 0, "no line 'unused devices': the text is cut short")
    return RaidArrays(tuple(arrays))
