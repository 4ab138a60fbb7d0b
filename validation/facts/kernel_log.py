"""The kernel log (``dmesg``, ``journalctl -k``, syslog): its lines that mean something for a GPU host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from profiles.errors import ParseError
from validation.facts.host import KernelEvent, KernelLog
from validation.facts.text import LINE_MAX, lines, pci_address

TOOL = "kernel log"
_DEVICE = r"\((?:PCI:)?(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)\)"
# "NVRM: Xid (PCI:0000:9b:00): 119, pid=..., name=..., text"; without PCI:, function, pid or text in other drivers.
_XID = re.compile(rf"NVRM:\s+Xid\s+{_DEVICE}:\s*(?P<code>\d+)(?=[,\s]|$)[,\s]*(?P<text>.*)$")
# Addresses as some drivers and pastes cut them: "(PCI:0000:00:1e)" is a device, "(PCI:0000:66:00)" too.
_XID_LIKE = re.compile(r"NVRM:.*\bXid\b")
_SXID = re.compile(rf"\bSXid\s+{_DEVICE}:\s*(?P<code>\d+)(?=[,\s]|$)[,\s]*(?P<text>.*)$")
_NUMBERED = re.compile(r"NVRM:.*\bXid\s*\(|\b(?P<switch>SXid)\s*\(")
_SXID_DETAIL = re.compile(r"^(?:Severity\s+\d|Data\s*\{)", re.I)
_FATAL = re.compile(r"\b(?P<no>non-?fatal)\b|\bfatal\b", re.I)
_PROCESS = re.compile(r"pid='?(?P<pid>[^',]+)'?(?:,\s*name='?(?P<name>[^',]+)'?)?")
_ACTION = re.compile(r"recovery action changed from .* to 0x[0-9a-fA-F]+ \((?P<action>[^)]+)\)")
_ADDRESS = re.compile(r"\b(?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)\b")
_UNCORRECTED = re.compile(r"uncorrect|severity=.*fatal", re.I)
# What comes before the message: a clock, or journald's and syslog's date, host and "kernel:".
_STAMP = re.compile(r"^(?:<\d+>)?(?:\[[^\]]*\]\s*|\S.*?\bkernel:\s*(?:\[[^\]]*\]\s*)?)?")

_CLOCK = re.compile(r"^(?:<\d+>)?\[(?: *\d+\.\d+|\w{3} \w{3} +\d+ [\d:]{8} \d{4})\]|^\S.*?\bkernel: ")

# The first pattern that matches names the line; the Xid shapes are read before these.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("fallen-off-bus", re.compile(r"\b(?:fallen|fell) off the bus\b|GPU is not responding to commands", re.I)),
    ("api-mismatch", re.compile(r"NVRM: API mismatch", re.I)),
    ("gsp-timeout", re.compile(r"NVRM:.*(?:waiting for RPC response from GPU|Rate limiting GSP RPC error)", re.I)),
    ("pcie-limited", re.compile(r"available PCIe bandwidth, limited by", re.I)),
    ("aer", re.compile(r"\bAER:.*(?:error|received)|PCIe Bus Error: severity=", re.I)),
    ("oom", re.compile(r"\bOut of memory: Kill|\boom-kill:|invoked oom-killer", re.I)),
    (
        "read-only-fs",
        re.compile(r"Remounting filesystem read-only|Filesystem has been shut down|force.*read.?only", re.I),
    ),
    ("soft-lockup", re.compile(r"soft lockup - CPU|hard LOCKUP on cpu|self-detected stall", re.I)),
    ("hung-task", re.compile(r"blocked for more than \d+ seconds", re.I)),
    (
        "io-error",
        re.compile(r"\bI/O error, dev |Buffer I/O error|nvme\S*: I/O .*timeout|nvme.*controller is down|EXT4-fs error"),
    ),
)
_DRIVER = re.compile(r"\b(?:NVRM|nvidia(?:-\w+)?|mlx5_core|nvme|efa|ena|nvswitch)\b[^:]*:", re.I)
_TROUBLE = re.compile(r"\b(?:error|fail(?:ed|ure)?|timed? ?out|fault|assert\w*|unable|fatal|corrupt\w*|panic)\b", re.I)
# Lines of these drivers that hold a word of trouble and mean none.
_HARMLESS = re.compile(
    r"error recovery|module verification failed|error handling enabled|tainting kernel|default_error|"
    r"GPU Board Serial|RPC buffer|RPC history|RPC event history|Shutdown timeout set to \d+ seconds|"
    # Drives without a medium, which a virtual machine has for show.
    r"\bI/O error, dev (?:fd|sr)\d+,|Buffer I/O error on dev(?:ice)? (?:fd|sr)\d+,",
    re.I,
)
# How a log begins: at second 0 of the kernel's clock, or, without clock, with the kernel's name among the first lines.
_AT_ZERO = re.compile(r"^(?:<\d+>)?\[ *0\.0{3,}\]")
_BOOT = re.compile(r"\bLinux version \d|\bBooting Linux on physical CPU")
_BOOT_LINES = 10
_TABLE = re.compile(r"^NVRM:\s+-?\d+\s+\d+\s+\S+\s+0x")


def parse(text: str) -> KernelLog:
    """Every event in order of its line. Raises ParseError where there is no line, or none is the kernel's."""
    events = []
    count = stamped = 0
    for number, line in enumerate(lines(text), start=1):
        message = line.strip()[:LINE_MAX]  # the kernel's own lines have 1024 at most
        if not message or message.startswith("-- "):  # journalctl's own remarks: "-- No entries --"
            continue
        count += 1
        stamped += bool(_CLOCK.match(message))
        event = _event(number, message)
        if event is not None:
            events.append(event)
    if not count:
        raise ParseError(TOOL, 0, "the log is empty: not a single line, so nothing was looked at")
    if not stamped and not events:
        first = text.strip().splitlines()[0][:120]
        raise ParseError(TOOL, 1, f"no line has the kernel's clock or means anything: {first!r}")
    return KernelLog(tuple(events), count)


def parse_whole(text: str) -> KernelLog:
    """As :func:`parse`, for the log of a host rather than a piece of one: it says whether it begins at boot.

    The kernel's buffer is a ring, and a journal has its limits: what was said first is lost first.
    """
    first = [line for line in lines(text[:8192]) if line.strip() and not line.startswith("-- ")][:_BOOT_LINES]
    from_boot = any(_BOOT.search(line) for line in first) or any(_AT_ZERO.match(line) for line in first[:1])
    return replace(parse(text), from_boot=from_boot)


def _event(number: int, line: str) -> KernelEvent | None:
    if "Xid" in line:
        found = _xid(number, line)
        if found is not None or _SXID.search(line):
            return found
        shape = _NUMBERED.search(line)
        if shape:  # the form of an error with a number, and none that can be read: it must not get lost
            kind = "sxid" if shape["switch"] else "xid"
            return KernelEvent(kind, number, line, pci_address=_address(line))
    message = _STAMP.sub("", line, count=1) or line
    if _TABLE.match(message):
        return None
    for kind, pattern in _KINDS:
        if pattern.search(message):
            return None if _HARMLESS.search(message) else _named(kind, number, line, message)
    if _XID_LIKE.search(message) or (_DRIVER.match(message) and _TROUBLE.search(message)):
        if _HARMLESS.search(message):
            return None
        return KernelEvent("driver-unknown", number, line, pci_address=_address(message))
    return None


def _xid(number: int, line: str) -> KernelEvent | None:
    """An Xid or SXid line; None for a line that only mentions one, and for the detail lines below an SXid."""
    sxid = _SXID.search(line)
    match = sxid or _XID.search(line)
    if match is None:
        return None
    rest = match["text"]
    if sxid and _SXID_DETAIL.match(rest):
        return None
    word = _FATAL.search(rest)
    process = _PROCESS.search(rest)
    action = _ACTION.search(rest)
    name = (process["name"] or process["pid"]).strip() if process else ""
    return KernelEvent(
        kind="sxid" if sxid else "xid",
        line=number,
        text=line,
        code=int(match["code"]),
        pci_address=pci_address(match["pci"]),
        fatal=(word["no"] is None) if word else None,
        action=action["action"] if action else None,
        process=name if name and name != "<unknown>" else None,
    )


def _named(kind: str, number: int, line: str, message: str) -> KernelEvent:
    extra: dict[str, Callable[[str], bool | None]] = {"aer": lambda words: bool(_UNCORRECTED.search(words))}
    decide = extra.get(kind)
    return KernelEvent(kind, number, line, pci_address=_address(message), fatal=decide(message) if decide else None)


def _address(message: str) -> str | None:
    match = _ADDRESS.search(message)
    return pci_address(match[1]) if match else None
