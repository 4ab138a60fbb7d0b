"""The host around the GPUs: memory, mounts, modules, container runtimes; df, the clock, processes, ACS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from profiles.errors import ParseError
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import lines, pci_address

STATE_TOOL = "host state"
_EDAC = re.compile(r"^/sys/devices/system/edac/mc/(mc\d+)/([cu])e_count$")
_BLOCKED = re.compile(r"^(\d+) (.*)$")
_DF_HEAD = re.compile(r"^Filesystem\s+1024-blocks\s+Used\s+Available\s+Capacity\s+Mounted on$")
_DF_ROW = re.compile(r"^(\S.*?)\s+(\d+)\s+(\d+)\s+(-?\d+)\s+(?:\d+%|-)\s+(/.*)$")
_ACS = re.compile(
    r"^(?P<address>[0-9a-f:]+\.[0-7]):(?:iommu (?P<iommu>\S.*)|(?P<control>0x[0-9a-f]{4}|none|<[^>]*>)"
    r"(?: (?P<first>\d+)-(?P<last>\d+))?)$"
)
_SYNCHRONISED = re.compile(r"^\s*(?:System clock|NTP) synchronized:\s*(\w+)\s*$", re.M)


@dataclass(frozen=True)
class MemoryController:
    """Errors that one memory controller has counted since boot."""

    name: str
    corrected: int | Missing
    uncorrected: int | Missing


@dataclass(frozen=True)
class Mount:
    target: str
    kind: str  # ext4, xfs, ...
    read_only: bool


@dataclass(frozen=True)
class HostState:
    """``memory_kib`` is MemTotal. ``virtual``: the processor says that it is a guest's, which only x86 does.

    ``runtimes`` are the configurations that give containers GPUs, by file; ``cdi`` the files of device descriptions.
    """

    memory_kib: int
    swap_kib: int
    command_line: str
    virtual: bool
    controllers: tuple[MemoryController, ...] = ()
    modules: frozenset[str] = frozenset()
    mounts: tuple[Mount, ...] = ()
    runtimes: Mapping[str, bool] = field(default_factory=dict)
    cdi: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filesystem:
    """One row of ``df``: size and what is free for programs, in KiB."""

    target: str
    size_kib: int
    free_kib: int


@dataclass(frozen=True)
class Filesystems:
    rows: tuple[Filesystem, ...]


@dataclass(frozen=True)
class Clock:
    """Whether the kernel's clock is held by a time source."""

    synchronised: bool


@dataclass(frozen=True)
class Processes:
    """``blocked``: pid and name of what was in uninterruptible sleep twice, a tenth of a second apart."""

    count: int
    zombies: int
    blocked: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class AcsControls:
    """The ACS control register of each PCI bridge that has one, and the first and last bus behind each bridge.

    ``iommu``: by GPU the type of its IOMMU group: identity, DMA or DMA-FQ (translated), none.
    """

    controls: Mapping[str, int | Missing]
    buses: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    iommu: Mapping[str, str | Missing] = field(default_factory=dict)


def parse_state(text: str) -> HostState:
    """Raises ParseError where a line is not ``path:content``, or the memory is not told."""
    parts = _Parts()
    for number, line in enumerate(lines(text), start=1):
        path, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not path.startswith("/"):
            raise ParseError(STATE_TOOL, number, f"{line.strip()[:80]!r} is not path:content")
        parts.take(path, value.strip(), number)
    return parts.whole()


class _Parts:
    """What the lines said so far."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._counters: dict[str, dict[str, int | Missing]] = {}
        self._mounts: list[Mount] = []
        self._marked: dict[str, list[str]] = {"loaded": [], "cdi": [], "nvidia": [], "other": []}
        self._words: dict[str, str] = {}

    def take(self, path: str, value: str, line: int) -> None:
        counter = _EDAC.match(path)
        if path.startswith("/proc/meminfo/"):
            self._numbers[path.rsplit("/", 1)[1]] = _number(value, line)
        elif counter:
            self._counters.setdefault(counter[1], {})[counter[2]] = _count(value, line)
        elif path == "/proc/mounts":
            self._mounts.append(_mount(value, line))
        elif value in self._marked:
            self._marked[value].append(path)
        else:
            self._words[path] = value

    def whole(self) -> HostState:
        if not self._numbers.get("MemTotal") or "SwapTotal" not in self._numbers or "/proc/cpuinfo" not in self._words:
            raise ParseError(STATE_TOOL, 0, "memory, swap or processor is not told")
        return HostState(
            memory_kib=self._numbers["MemTotal"],
            swap_kib=self._numbers["SwapTotal"],
            command_line=self._words.get("/proc/cmdline", ""),
            virtual=self._words["/proc/cpuinfo"] == "hypervisor",
            controllers=tuple(
                MemoryController(name, found.get("c", ABSENT), found.get("u", ABSENT))
                for name, found in sorted(self._counters.items())
            ),
            modules=frozenset(path.rsplit("/", 1)[1] for path in self._marked["loaded"]),
            mounts=tuple(self._mounts),
            runtimes={path: word == "nvidia" for word in ("nvidia", "other") for path in self._marked[word]},
            cdi=tuple(self._marked["cdi"]),
        )


def _number(text: str, line: int) -> int:
    if not text.strip().isdigit():
        raise ParseError(STATE_TOOL, line, f"{text.strip()[:40]!r} is not a number")
    return int(text)


def _count(text: str, line: int) -> int | Missing:
    word = text.strip()
    return Missing(Reason.COULD_NOT_LOOK, word) if word.startswith("<") else _number(word, line)


def _mount(text: str, line: int) -> Mount:
    parts = text.split()
    if len(parts) != 3:
        raise ParseError(STATE_TOOL, line, f"{text.strip()[:80]!r} is not target, type and options")
    return Mount(_plain(parts[0]), parts[1], "ro" in parts[2].split(","))


def _plain(target: str) -> str:
    r"""The kernel writes blanks as ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), target)


def parse_df(text: str) -> Filesystems:
    """``df -P -k -l``. Raises ParseError without its heading, or where a row has other columns."""
    found = [(number, line.rstrip()) for number, line in enumerate(lines(text), start=1) if line.strip()]
    if not found or not _DF_HEAD.match(found[0][1]):
        raise ParseError("df", 1, "no heading of df -P -k")
    rows = []
    for number, line in found[1:]:
        match = _DF_ROW.match(line)
        if match is None:
            raise ParseError("df", number, f"{line[:80]!r} is not a row of df")
        rows.append(Filesystem(match[5], int(match[2]), int(match[4])))
    if not rows:
        raise ParseError("df", 0, "no file system")
    return Filesystems(tuple(rows))


def parse_clock(text: str) -> Clock:
    """``timedatectl``: its line was "NTP synchronized" before systemd 235, "System clock synchronized" since."""
    match = _SYNCHRONISED.search("\n".join(lines(text)))
    if match is None or match[1] not in ("yes", "no"):
        raise ParseError("timedatectl", 0, "no line says whether the clock is synchronised")
    return Clock(match[1] == "yes")


def parse_processes(text: str) -> Processes:
    """Raises ParseError where a line has another key, or a count is not there."""
    counts: dict[str, int] = {}
    blocked = []
    for number, line in enumerate(lines(text), start=1):
        key, _, value = line.partition(":")
        match = _BLOCKED.match(value)
        if key in ("processes", "zombies") and value.isdigit():
            counts[key] = int(value)
        elif key == "blocked" and match:
            blocked.append((int(match[1]), match[2]))
        elif line.strip():
            raise ParseError("processes", number, f"{line.strip()[:80]!r} is not a count or a process")
    if len(counts) != 2:
        raise ParseError("processes", 0, "not both counts are there")
    return Processes(counts["processes"], counts["zombies"], tuple(blocked))


def parse_acs(text: str) -> AcsControls:
    """The registers by bridge, and the IOMMU by GPU; nothing at all is a fact: there is no bridge, and no GPU."""
    controls: dict[str, int | Missing] = {}
    buses: dict[str, tuple[int, int]] = {}
    iommu: dict[str, str | Missing] = {}
    for number, line in enumerate(lines(text), start=1):
        if not line.strip():
            continue
        match = _ACS.match(line.strip())
        address = pci_address(match["address"]) if match else None
        if match is None or address is None:
            raise ParseError("ACS", number, f"{line.strip()[:80]!r} is not a bridge and its register, or a GPU")
        if match["iommu"]:
            iommu[address] = _word(match["iommu"])
        elif match["control"] != "none":
            control = _word(match["control"])
            controls[address] = control if isinstance(control, Missing) else int(control, 16)
        if match["first"]:
            buses[address] = int(match["first"]), int(match["last"])
    return AcsControls(controls, buses, iommu)


def _word(text: str) -> str | Missing:
    return Missing(Reason.COULD_NOT_LOOK, text) if text.startswith("<") else text
