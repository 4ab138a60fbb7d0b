"""The kernel's own message out of each line, whoever wrote the line down: dmesg, journald, syslog, a container."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from profiles.errors import ParseError
from validation.facts.kernel_kinds import BEGINS
from validation.facts.text import LINE_MAX, clean, lines

TOOL = "kernel log"
# The time since the line before, which dmesg -d and journalctl -o short-delta put behind the clock.
_SINCE = r"(?: +<[ \d.]{1,24}[ *]?>| +)?"
_MONOTONIC = rf"\[[ +<]*\d+\.\d+{_SINCE}>?\]"
_DATE = (
    rf"\[(?:\S+ +)?\S+ +\d+ +\d\d:\d\d:\d\d(?: +\d{{4}})?{_SINCE}\]|"
    r"\[\S{3,4} ?\d+ +\d\d:\d\d(?::\d\d)?\]"
)
_TIME = r"\d{1,2} \d\d:\d\d:\d\d"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG = r"(?:\S{1,9} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?(?: \d{4})?|" + _ISO + r")"
_DMESG_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d "  # dmesg's comma: no syslog has one
_CLOCK = re.compile(_MONOTONIC)
_PLAIN = re.compile(r"\[ *\d+\.\d{6}\] (?! *\[ *[TC]\d|(?:\S+ )?kernel: )")
_OWN_CLOCK = re.compile(rf"\s*{_MONOTONIC}")
_NOT_SPACE = re.compile(r"[^\s\x1e]")
_CALLER = re.compile(r"^\s*(?:\[ *[TC]\d+\] ?)?")
_TAG = re.compile(r"^(?P<before>.{0,160}?)\bkernel(?:\[\d+\])?: ?")
_DATED = re.compile(
    rf"^(?:<\d+>1 \S+ \S+ kernel \S+ \S+ - |<\d+>|\d+,\d+,\d+,[^;]{{0,200}};|"
    rf"(?:kern|user|daemon|auth\w*|syslog) *:\w+ *: |\[{_ISO}\] ?|{_DATE} ?|{_ISO} |std(?:out|err) [FP] |\[\.\.\.\] )"
)
_PROGRAM = re.compile(rf"^(?!{_DMESG_ISO}){_SYSLOG} +(?P<host>\S*[^\s:]) +(?P<tag>[^\s:\[]+)(?:\[\d+\])?: ?")
# Some forward lines without the kernel's name: a date, perhaps the host, and what only the kernel begins a line with.
_UNTAGGED = re.compile(rf"^{_SYSLOG} +(?:(?P<host>\S*[^\s:]) +)??(?={BEGINS})")
# pdsh, clush and ansible put the name of the node before each line.
_NODE = re.compile(
    rf"^(?!{BEGINS})(?P<host>[\w.-]{{1,64}}): (?={_MONOTONIC}|{_DATE}|{_SYSLOG} |<\d+>|kern *:|{BEGINS})"
)
_NAME = re.compile(r"[\w.-]+")
# Lines that a serial console or a paste ran together are told apart by what each begins with.
_STARTS = tuple(
    re.compile(rf"(?<=\S)[ \t]*(?={start})")
    for start in (
        r"\[ *\d+\.\d{6}\] ",
        rf"\[\S{{1,9}} \S{{1,9}} {{1,4}}{_TIME} \d{{4}}\] ",
        rf"\S{{3}} {{1,4}}{_TIME} \S{{1,255}} kernel: ",
    )
)
_PROCESS = re.compile(r"^[\w./@-]{1,64}\[\d+\]: (?!segfault|general protection|bad frame|trap )")
_REPEATED = re.compile(r"^message repeated (?P<times>\d{1,6}) times: \[ ?(?P<message>.*?)\]?$")
_OWN_REMARK = re.compile(r"^-- (?P<boot>Boot [0-9a-f]{16,}|Reboot)?")
_BOOT = re.compile(r"^Linux version \d")
_TICK = re.compile(r"\[ *(\d{1,12}\.\d{6})\] ")
_CLOCK_SLACK_S = 1.0  # by which lines of different CPUs may be out of order
_SAMPLE = 5000  # lines, by which the order of time is told
_TIMED = re.compile(
    r"^(?:\[ *(?P<clock>\d+\.\d{6})\]|(?P<day>\S+ +\d{1,2}|\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d\S*)) "
)
# A line of the kernel's without clock or tag: what its drivers for GPU, network and storage begin with.
_OURS = (
    r"(?:NVRM: |nvidia-(?:uvm|modeset|nvlink|nvswitch\d*|drm): |\[drm[\]:]|watchdog: BUG|mce: |EDAC |EXT4-fs "
    r"|XFS \(|(?:nvidia|mlx5_core|nvme|efa|ena|pci|pcieport) (?:nvme\d+|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)[ :])"
)
_DRIVER = re.compile(rf"^[ \t>]*{_OURS}")
# The two entries that a document of this kind begins with, whoever wrote it: journald, dmesg --json, Docker.
_DOCUMENT = re.compile(r'^[\s\x1e]*\{(?=[\s\S]{0,4000}?"(?:MESSAGE|dmesg|log)"\s*:)')
_ANY = re.compile(
    rf"^[^\n]{{0,100}}?\[ *\+?\d+\.\d{{6}}{_SINCE}\]"
    rf"|^(?:[\w.-]{{1,64}}: |[\s>]*(?:<\d+> ?)?)\[(?:\S+ +)?\S+ +\d+ \d\d:\d\d:\d\d \d{{4}}{_SINCE}\]"
    rf"|^\[\w{{3}} ?\d+ \d\d:\d\d\]|^(?:[\w.-]{{1,64}}: )?{_DMESG_ISO}|^<\d+>1 \S{{1,40}} \S{{1,255}} kernel "
    r"|(?:\d\d:\d\d\S{0,24}(?: [A-Z]{1,5})?|^\d{9,20}\.\d{1,9}) \S{1,255} kernel(?:\[\d+\])?:"
    r"|^\s*kernel: ?(?:\[|NVRM|nvidia|NMI |watchdog|EDAC|BUG|pci)|^kern *:\w+ *: "
    rf"|^-- No entries --|^\d+,\d+,\d+,\S{{1,99}};|\bNVRM: |\bSXid \(|available PCIe bandwidth"
    rf"|^(?:[\w.-]{{1,64}}: |{_SYSLOG} +(?:std(?:out|err) [FP] |\S{{1,255}} +)??)?[ \t>]*{_OURS}",
    re.MULTILINE,
)


@dataclass(frozen=True)
class KernelLine:
    """One message. ``kernel`` is false where a program said it, ``known`` where nothing tells that the kernel did.

    ``host`` is the name that syslog or journald put before it. ``boots`` is how often that host has started up to here;
    ``part`` counts every start, of a host without a name too: two logs in one text may be of two hosts.
    ``times`` is how often syslog saw the message in a row.
    """

    number: int
    message: str
    kernel: bool = True
    known: bool = True
    host: str = ""
    boots: int = 0
    part: int = 0
    times: int = 1


def is_kernel_log(text: str) -> bool:
    """True where a line of it is the kernel's, or it is a document of such lines."""
    if _DOCUMENT.match(text):
        return '"_TRANSPORT"' in text or '"dmesg"' in text or _ANY.search(text[:4000].replace('"', "\n")) is not None
    return _ANY.search(text) is not None


def read(text: str) -> Iterator[KernelLine]:
    """Every line that is not empty and no remark of journalctl's. Raises ParseError for half a JSON document."""
    marks = part = 0
    before = 0.0
    starts: Counter[str] = Counter()
    seen: set[str] = set()
    found = _entries(clean(text)) if _DOCUMENT.match(text) else _plain(text)
    for number, raw, kernel in found:
        remark = _OWN_REMARK.match(raw)
        if remark:
            marks += remark["boot"] is not None
            continue
        clock = _TICK.match(raw)
        if clock:  # the clock of one start never runs back: another log follows
            part += float(clock[1]) < before - _CLOCK_SLACK_S
            before = float(clock[1])
        line = _line(number, raw, kernel)
        place = marks + starts[line.host], marks + part
        yield line if place == (0, 0) else replace(line, boots=place[0], part=place[1])
        if line.message.startswith("Linux version") and _BOOT.match(line.message):
            part += bool(seen)  # a log that begins with it is of one start
            starts[line.host] += line.host in seen - {""}
        seen.add(line.host)


def _plain(text: str) -> Iterator[tuple[int, str, bool | None]]:
    for number, line in _in_order(list(enumerate(lines(text), start=1))):
        stripped = line.strip()
        if stripped:
            yield from ((number, one, None) for one in _apart(stripped))


def _apart(line: str) -> list[str]:
    """The messages of a line, one where nothing was run together."""
    if line.count("] ") > 1 or line.count(" kernel: ") > 1:
        for start in _STARTS:
            at = [0, *(match.end() for match in start.finditer(line))]
            if len(at) > 2 or (len(at) == 2 and start.match(f"x{line[:200]}")):
                return [line[one:two].strip() for one, two in zip(at, [*at[1:], len(line)], strict=True)]
    return [line]


def _in_order(numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines in the order of their time: journalctl -r shows the newest first."""
    risen = fallen = 0
    before = ("", "")
    for _, line in numbered[:_SAMPLE]:
        match = _TIMED.match(line[:80])
        now = (match["day"] or "", (match["time"] or match["clock"]).rjust(20)) if match else ("", "")
        if match and before[1] and now[0] == before[0]:
            risen, fallen = risen + (now > before), fallen + (now < before)
        before = now if match else before
    return numbered[::-1] if fallen > 2 * risen else numbered


def _line(number: int, raw: str, kernel: bool | None) -> KernelLine:
    """``kernel`` is what the document itself says, None where only the line can tell."""
    host, message, said = _message(raw[:LINE_MAX])
    times = 1
    repeated = _REPEATED.match(message) if message.startswith("message repeated") else None
    if repeated:
        times = int(repeated["times"])
        message = _message(repeated["message"])[1]
    own = kernel if kernel is not None else said is not False and not _PROCESS.match(message)
    known = said is True or kernel is True or (own and _DRIVER.match(message) is not None)
    if own and known and len(raw) > LINE_MAX:  # the kernel's own lines have 1024 at most; a program's may be long
        raise ParseError(TOOL, number, f"a line of {len(raw)} characters, which the kernel does not print")
    return KernelLine(number, message, own, known, host, times=times)


def _message(raw: str) -> tuple[str, str, bool | None]:
    """Host, message, and whether the kernel said it: None where neither a clock nor a name stands before it."""
    plain = _PLAIN.match(raw)  # dmesg's own form, which most lines have
    if plain:
        return "", raw[plain.end() :], True
    line = raw.lstrip("> \t")
    node = _NODE.match(line)
    host = node["host"] if node else ""
    line = line[node.end() :] if node else line
    tag = _TAG.match(line) if "kernel" in line else None
    if tag and ": " not in tag["before"]:
        last = (tag["before"].split() or [""])[-1]
        return host or (last if _NAME.fullmatch(last) else ""), _without_clock(line[tag.end() :]), True
    untagged = _UNTAGGED.match(line)
    if untagged:
        return host or untagged["host"] or "", line[untagged.end() :], True
    program = _PROGRAM.match(line)
    if program and not _PLAIN.match(line, program.end()):  # else it passes on what the kernel said, with its clock
        return "", line[program.end() :], False
    clock = _CLOCK.search(line[:200])
    if clock:
        return host, _CALLER.sub("", line[clock.end() :], count=1), True
    said = None
    while (dated := _DATED.match(line)) is not None:
        line, said = line[dated.end() :].lstrip(), True
    return host, _CALLER.sub("", line, count=1) if said else line, said


def _without_clock(message: str) -> str:
    clock = _OWN_CLOCK.match(message)
    return _CALLER.sub("", message[clock.end() :] if clock else message, count=1)


def _entries(text: str) -> Iterator[tuple[int, str, bool | None]]:
    """The entries of a JSON document, or of many in a row: journalctl -o json, dmesg --json, Docker's log files."""
    decoder = json.JSONDecoder()
    at = number = 0
    while (start := _NOT_SPACE.search(text, at)) is not None:
        number += 1
        try:
            entry, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError) as error:
            raise ParseError(TOOL, number, f"entry {number} is no whole JSON document: {str(error)[:200]}") from error
        if isinstance(entry, dict) and isinstance(entry.get("dmesg"), list):
            yield from ((n, _said(one), True) for n, one in enumerate(entry["dmesg"], start=1) if _said(one))
        elif said := _said(entry):
            yield number, said, _is_kernels(entry)


def _said(entry: Any) -> str:
    """The message of one entry. journald writes one that is no text as its bytes, and none at all as null."""
    if not isinstance(entry, dict):
        return ""
    said = next((entry[key] for key in ("MESSAGE", "msg", "log") if key in entry), "")
    if isinstance(said, list):
        said = bytes(byte for byte in said if isinstance(byte, int) and 0 <= byte < 256).decode(errors="replace")
    return str(said or "").strip()


def _is_kernels(entry: dict[str, Any]) -> bool | None:
    if "MESSAGE" not in entry or not ("_TRANSPORT" in entry or "SYSLOG_IDENTIFIER" in entry):
        return None
    return "kernel" in (entry.get("_TRANSPORT"), entry.get("SYSLOG_IDENTIFIER"))
