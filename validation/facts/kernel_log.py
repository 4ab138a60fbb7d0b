"""The kernel log (``dmesg``, ``journalctl -k``, syslog): its lines that mean something for a GPU host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from profiles.errors import ParseError
from validation.facts import kernel_after, kernel_kinds, kernel_lines, kernel_routine
from validation.facts.host import KernelEvent, KernelLog
from validation.facts.kernel_lines import TOOL, KernelLine
from validation.facts.text import lines, pci_address

# "NVRM: Xid (PCI:0000:9b:00): 119, pid=..., name=..., text". In the brackets: no PCI: in other drivers, a function, the
# MIG slice ("GPU-I:05 GPU-CI:02"), or an address that whoever pasted it took out. Text and pid may be absent.
_XID = re.compile(r"NVRM:\s+Xid\s+\((?P<where>[^()]{1,80})\):\s*(?P<code>\d+)(?=[,\s\]]|$)[,\s]*(?P<text>.*)$")
_SXID = re.compile(r"\bSXid\s+\((?P<where>[^()]{1,80})\):\s*(?P<code>\d+)(?=[,\s\]]|$)[,\s]*(?P<text>.*)$")
_NUMBERED = re.compile(r"NVRM:.*\bXid\s*\(|\b(?P<switch>SXid)\s*\(")
_XID_LIKE = re.compile(r"NVRM:.*\bXid\b")
_SXID_DETAIL = re.compile(r"^(?:Severity\s+(?P<severity>\d)|Data\s*\{)", re.I)
_FATAL = re.compile(r"\b(?P<no>non-?fatal)\b|\bfatal\b", re.I)
_PROCESS = re.compile(r"pid='?(?P<pid>[^',]+)'?(?:,\s*name='?(?P<name>[^',]+)'?)?")
_ACTION = re.compile(r"recovery action changed from .* to 0x[0-9a-fA-F]+ \((?P<action>[^)]+)\)")
_CAUSE = re.compile(r"\bcaused by previous Xid (?P<code>\d+)")
_UNIT = re.compile(r"^(?P<unit>[A-Z][A-Z0-9_]+)\s+(?:Non-?fatal|Fatal)\b.*?\bLink (?P<link>-?\d+)", re.I)
_REGISTERS = re.compile(r"\bLink -?\d+\s*[(\[](?P<words>0x[0-9a-f]+(?:\s+0x[0-9a-f]+)*)", re.I)
_ADDRESS = re.compile(r"\b(?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)(?![0-9A-Fa-f])")
_TABLE = re.compile(r"^NVRM:\s+-?\d+\s+\d+\s+\S+\s+0x")
# Messages of the driver that run over several lines, which dmesg and syslog show as several messages.
_OPENS = re.compile(r"^NVRM: (?:The NVIDIA GPU |This PCI I/O region |API mismatch: )")
_PART = re.compile(r"^NVRM: (?!(?:loading|GPU|Xid|The NVIDIA|This PCI|API)\b)")
_PARTS_MAX = 10

# How a log begins: at second 0 of the kernel's clock, or, without clock, with the kernel's name among the first lines.
_AT_ZERO = re.compile(r"^(?:<\d+>)?(?:kern *:\w+ *: )?\[ *0\.0{3,}\]")
_BOOT = re.compile(r"\bLinux version \d|\bBooting Linux on physical CPU")
_BOOT_LINES = 10


def parse(text: str) -> KernelLog:
    """Every event in order of its line. Raises ParseError where there is no line, or none is the kernel's."""
    said = list(kernel_lines.read(text))
    joined = [(line, _told(line)) for line in _joined(said)]
    events = [event for _, event in joined if event is not None]
    if not said:
        raise ParseError(TOOL, 0, "the log is empty: not a single line, so nothing was looked at")
    if not events and not any(line.known for line in said):
        first = text.strip().splitlines()[0][:120]
        raise ParseError(TOOL, 1, f"no line has the kernel's clock or means anything: {first!r}")
    rest = (line.message for line, event in joined if event is None and _may_be_new(line))
    return KernelLog(kernel_after.judged(_heads(events), said), len(said), unlisted=kernel_routine.unlisted(rest))


def parse_whole(text: str) -> KernelLog:
    """As :func:`parse`, for the log of a host rather than a piece of one: it says whether it begins at boot.

    The kernel's buffer is a ring, and a journal has its limits: what was said first is lost first.
    """
    first = [line for line in lines(text[:8192]) if line.strip() and not line.startswith("-- ")][:_BOOT_LINES]
    from_boot = any(_BOOT.search(line) for line in first) or any(_AT_ZERO.match(line) for line in first[:1])
    return replace(parse(text), from_boot=from_boot)


def _joined(said: Sequence[KernelLine]) -> Iterator[KernelLine]:
    """The lines, with a message of the driver's that was broken into several put together again."""
    at = 0
    while at < len(said):
        line, parts = said[at], 1
        while _OPENS.match(line.message) and not line.message.endswith((".", "!")) and parts < _PARTS_MAX:
            following = said[at + parts] if at + parts < len(said) else None
            if following is None or following.host not in ("", line.host) or not _PART.match(following.message):
                break
            line = replace(line, message=f"{line.message} {following.message[len('NVRM: ') :]}")
            parts += 1
        yield line
        at += parts


def _may_be_new(line: KernelLine) -> bool:
    """Whether a line without an event might be one that no list has."""
    message = line.message
    if not line.kernel or not kernel_routine.is_of_a_driver(message):  # the quickest to tell, of most lines
        return False
    return not _TABLE.match(message) and not kernel_kinds.is_harmless(message)


def _told(line: KernelLine) -> KernelEvent | None:
    event = _event(line)
    return replace(event, host=line.host, times=line.times) if event else None


def _event(line: KernelLine) -> KernelEvent | None:
    message = line.message
    if "Xid" in message:
        found = _numbered(line)
        if found is not None:
            return found
        shape = _NUMBERED.search(message) if line.kernel else None
        if shape:  # the form of an error with a number, and none that can be read: it must not get lost
            unread = "sxid" if shape["switch"] else "xid"
            return KernelEvent(unread, line.number, message, pci_address=_address(message))
    if _TABLE.match(message):
        return None
    kind = kernel_kinds.kind_of(message)
    if not line.kernel and not (kind == "module-rejected" and kernel_kinds.is_grave(kind, message)):
        return None  # a program's own words: a search for a fault is none
    if kind is None and _XID_LIKE.search(message):
        kind = "driver-unknown"
    if kind is None:
        return None
    grave = kernel_kinds.is_grave(kind, message)
    device = kernel_kinds.device_of(message)
    return KernelEvent(kind, line.number, message, pci_address=_address(message), fatal=grave, device=device)


def _numbered(line: KernelLine) -> KernelEvent | None:
    """An Xid or SXid line, the detail lines below an SXid too; None for a line that only mentions one."""
    sxid = _SXID.search(line.message)
    match = sxid or _XID.search(line.message)
    if match is None:
        return None
    rest = match["text"]
    word, process, action = _FATAL.search(rest), _PROCESS.search(rest), _ACTION.search(rest)
    cause, unit, words = _CAUSE.search(rest), _UNIT.match(rest), _REGISTERS.search(rest)
    name = (process["name"] or process["pid"]).strip() if process else ""
    return KernelEvent(
        kind="sxid" if sxid else "xid",
        line=line.number,
        text=line.message,
        code=int(match["code"]),
        pci_address=_address(match["where"]),
        fatal=(word["no"] is None) if word else _severity(rest) if sxid else None,
        action=action["action"] if action else None,
        process=name if name and name != "<unknown>" else None,
        cause=int(cause["code"]) if cause else None,
        detail=f"{unit['unit']} link {unit['link']}" if unit else None,
        registers=tuple(int(word, 16) for word in words["words"].split()) if words else (),
    )


def _severity(rest: str) -> bool | None:
    """What the detail line of an SXid says of its gravity: 0 is not fatal, 1 is."""
    match = _SXID_DETAIL.match(rest)
    return match["severity"] != "0" if match and match["severity"] else None


def _heads(events: Iterable[KernelEvent]) -> list[KernelEvent]:
    """The events without the detail lines of an SXid, unless the line that they belong to is not there.

    A log that is cut, or whose printing was limited, has details alone: those stand for the error then.
    """
    found = list(events)
    details = [event.kind == "sxid" and _is_detail(event) for event in found]
    errors = [(event.code, event.pci_address, event.host) for event in found]
    heads = {error for error, detail in zip(errors, details, strict=True) if not detail}
    return [
        event for event, error, detail in zip(found, errors, details, strict=True) if not (detail and error in heads)
    ]


def _is_detail(event: KernelEvent) -> bool:
    match = _SXID.search(event.text)
    return match is not None and _SXID_DETAIL.match(match["text"]) is not None


def _address(message: str) -> str | None:
    match = _ADDRESS.search(message)
    return pci_address(match[1]) if match else None
