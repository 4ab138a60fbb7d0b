"""Software RAID: /proc/mdstat and ``mdadm --detail``: the arrays, and whether all their members are there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from profiles.errors import ParseError
from validation.facts.text import lines, prompt

TOOL = "/proc/mdstat"
DETAIL_TOOL = "mdadm --detail"
_ARRAY = re.compile(
    r"^(md\S+) : (active|inactive|broken)(?: \((?:auto-)?read-only\))?(?: (raid\d+|linear|multipath|faulty|container))?"
    r"((?: \S+\[\d+\]\S*)*)\s*$"
)
_MEMBER = re.compile(r"(\S+?)\[\d+\]((?:\([A-Z]\))*)")
_HEALTH = re.compile(r"\[(\d+)/(\d+)\] \[([U_]+)\]")
_PROGRESS = re.compile(r"\b(recovery|resync|reshape|check|repair)\s*=\s*(\d+(?:\.\d+)?%|DELAYED|PENDING|REMOTE)")
_EXTERNAL = re.compile(r"super external:(?:imsm|ddf)\b")
# Levels that live on without a member, so that the kernel prints how many are there; only while the array is active.
_REDUNDANT = ("raid1", "raid4", "raid5", "raid6", "raid10")
# What mends an array or moves it; "check" only reads, and "repair" too unless something differs.
_MENDING = ("recovery", "rebuild", "reshape", "resync")


@dataclass(frozen=True)
class RaidArray:
    """One array; ``missing`` members of a redundant level, ``failed`` ones by name. raid0 has no health to print.

    ``members``: the disks in use or meant to be, without ``spares``. ``progress``: ``recovery 8.5%``, ``check 5.7%``.
    ``container``: no array, but what holds the disks of arrays in Intel's or DDF's format; it is inactive by design.
    """

    name: str
    active: bool
    level: str
    members: tuple[str, ...]
    failed: tuple[str, ...] = ()
    missing: int = 0
    spares: tuple[str, ...] = ()
    progress: str = ""
    container: bool = False

    @property
    def mending(self) -> bool:
        """Whether the array is being made whole or rebuilt right now."""
        return self.progress.startswith(_MENDING)


@dataclass(frozen=True)
class RaidArrays:
    arrays: tuple[RaidArray, ...]


def parse(text: str) -> RaidArrays:
    """Every array. "unused devices" ends the file: without it the text is cut short.

    Raises ParseError too where an array that can lose a member does not say how many it has.
    """
    arrays: list[RaidArray] = []
    counts: list[str] = []  # the array of each count of members
    ended = False
    for number, line in enumerate(lines(text), start=1):
        match = _ARRAY.match(line)
        if match:
            arrays.append(_array(match))
        elif line.startswith("md"):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not an array")
        elif arrays:
            arrays[-1] = _told(arrays[-1], line)
            counts += [arrays[-1].name] if _HEALTH.search(line) else []
        elif line[:1].isspace() and line.strip():
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} before any array: the text's beginning is missing")
        ended = ended or line.startswith("unused devices:")
    if not ended:
        raise ParseError(TOOL, 0, "no line 'unused devices': the text is cut short")
    _check(arrays, counts)
    return RaidArrays(tuple(arrays))


def _check(arrays: list[RaidArray], counts: list[str]) -> None:
    """Each array that can lose a member has counted them once, as [2/2] [UU]; else a line is gone."""
    for array in arrays:
        told = counts.count(array.name)
        if told > 1 or (told < 1 and array.active and array.level in _REDUNDANT):
            message = f"{array.name}: {array.level} counts its members {told} times; a line is gone"
            raise ParseError(TOOL, 0, message)


def _array(match: re.Match[str]) -> RaidArray:
    members = _MEMBER.findall(match[4])
    return RaidArray(
        name=match[1],
        active=match[2] == "active",
        level=match[3] or "",
        members=tuple(name for name, marks in members if "(S)" not in marks),
        failed=tuple(name for name, marks in members if "(F)" in marks),
        spares=tuple(name for name, marks in members if "(S)" in marks),
    )


def _told(array: RaidArray, line: str) -> RaidArray:
    """The array with what a line below its first one says."""
    health, progress = _HEALTH.search(line), _PROGRESS.search(line)
    if health:
        array = replace(array, missing=health[3].count("_"))
    if progress:
        array = replace(array, progress=f"{progress[1]} {progress[2]}")
    if _EXTERNAL.search(line):
        array = replace(array, container=True)
    return array


_HEAD = re.compile(r"^(/dev/\S+):\s*$")
_DETAIL = re.compile(r"^\s*([A-Z][A-Za-z /]+?) : (.*\S)\s*$")
# Number Major Minor RaidDevice State: "0 259 2 0 active sync /dev/sda1", "- 0 0 1 removed", "2 8 3 - faulty /dev/sdc1"
_DISK = re.compile(
    r"^\s*(?:\d+|-)\s+\d+\s+\d+\s+(?:\d+|-)(?:\s+(?P<state>[a-z][a-zA-Z :-]*?))?(?:\s+(?P<disk>/\S+))?\s*$"
)
_ASK_DETAIL = "Ask for the array itself, as root: mdadm --detail /dev/mdN, or cat /proc/mdstat."
_REFUSED = re.compile(r"^mdadm: .*", re.M)
_EXAMINED = re.compile(r"^[ \t]*(?:Array State|Magic) : ", re.M)
_SCANNED = re.compile(r"^ARRAY \S+ .*", re.M)


def parse_detail(text: str) -> RaidArrays:
    """``mdadm --detail`` of one array or several. An array that mdadm could not open makes the whole text unread."""
    if _EXAMINED.search(text):
        raise ParseError(DETAIL_TOOL, 0, "mdadm --examine: what one disk knew", _ASK_DETAIL)
    refused = _REFUSED.search(text)
    if refused:
        raise ParseError(DETAIL_TOOL, 0, refused[0].strip()[:120], _ASK_DETAIL)
    if _SCANNED.search(text):
        raise ParseError(DETAIL_TOOL, 0, "arrays without their state (--scan)", _ASK_DETAIL)
    arrays = []
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines(text), start=1):
        if _HEAD.match(line) and block:
            arrays.append(_detail(block))
            block = []
        if block or _HEAD.match(line):
            block.append((number, line))
        elif line.strip() and prompt(line) is None:
            raise ParseError(DETAIL_TOOL, number, f"{line.strip()[:80]!r} before the name of an array")
    if not block:
        raise ParseError(DETAIL_TOOL, 0, "no array")
    return RaidArrays((*arrays, _detail(block)))


def _detail(block: list[tuple[int, str]]) -> RaidArray:
    number, head = block[0]
    name = head.strip().removesuffix(":").removeprefix("/dev/")
    fields: dict[str, str] = {}
    disks: list[tuple[str, str]] = []
    for _, line in block[1:]:
        disk, told = _DISK.match(line), _DETAIL.match(line)
        if disk:
            disks.append((disk["state"] or "", (disk["disk"] or "").removeprefix("/dev/")))
        elif told:
            fields[told[1].strip()] = told[2]
    level = fields.get("Raid Level", "")
    state = fields.get("State")
    total = int(fields["Total Devices"]) if fields.get("Total Devices", "").isdigit() else 0
    container = level == "container"
    if not level or (state is None and not container):
        raise ParseError(DETAIL_TOOL, number, f"{name}: no level or no state; the text is cut short")
    if sum(bool(disk) for _, disk in disks) < total:
        raise ParseError(DETAIL_TOOL, number, f"{name}: {len(disks)} of {total} disks shown; the text is cut short")
    words = [word.strip() for word in (state or "").split(",")]
    return RaidArray(
        name=name,
        active=not {"inactive", "Not Started", "FAILED", "broken", "BROKEN"} & set(words),
        level=level,
        members=tuple(disk for told, disk in disks if (disk and not told.startswith("spare")) or "rebuilding" in told),
        failed=tuple(disk or "a disk" for told, disk in disks if "faulty" in told),
        missing=_gone(fields, disks),
        spares=tuple(disk for told, disk in disks if told.startswith("spare") and "rebuilding" not in told),
        progress=_progress(fields, words),
        container=container,
    )


def _gone(fields: dict[str, str], disks: list[tuple[str, str]]) -> int:
    """How many members of the array are not in use: what it should have less what is active."""
    wanted, active = fields.get("Raid Devices", ""), fields.get("Active Devices", "")
    if wanted.isdigit() and active.isdigit():
        return max(0, int(wanted) - int(active))
    return sum("removed" in told for told, _ in disks)


def _progress(fields: dict[str, str], words: list[str]) -> str:
    """``rebuild 8%`` from "Rebuild Status : 8% complete", else the state's own word (resyncing, recovering)."""
    for name in ("Rebuild", "Resync", "Reshape", "Recovery", "Check"):
        told = fields.get(f"{name} Status")
        if told:
            return f"{name.lower()} {told.split()[0]}"
    doing = {"recovering": "recovery", "resyncing": "resync", "reshaping": "reshape", "checking": "check"}
    return next((doing[word.split()[0]] for word in words if word and word.split()[0] in doing), "")
