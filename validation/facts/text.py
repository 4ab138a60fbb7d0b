"""Reading text and single values: escape codes off, sentinels told apart, units checked."""

from __future__ import annotations

import functools
import re

from profiles.errors import ParseError
from validation.facts.missing import ABSENT, Missing, sentinel

_CPUS_MAX = 65536
LINE_MAX = 4096  # characters: no tool read line by line prints more; patterns are slow on endless ones
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_NUMBER = re.compile(r"^([+-]?\d{1,30}(?:\.\d+)?)\s*(\S.*)?$")
_PCI = re.compile(
    r"^(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})(?:\.(?P<f>[0-7]))?$"
)
# A shell's prompt and what was typed after it, as texts are pasted: "$ ibstat", "[root@n1 ~]# ibstat".
_PROMPT = re.compile(r"^[\s>]*(?:\(\S+\)\s*)?(?:\[?[\w.-]+@[\w.-]+[^#$%]{0,80}|~)?(?:[#$%]|(?<=>) )\s*(?P<command>.*)$")
_YES = {"yes", "enabled", "active", "true", "on", "1"}
_NO = {"no", "disabled", "not active", "inactive", "false", "off", "0"}


def clean(text: str) -> str:
    """The text without terminal escape codes (closed or not), byte order mark and carriage returns."""
    return _ANSI.sub("", text.lstrip("\ufeff").replace("\r\n", "\n")).replace("\x00", "")


def lines(text: str) -> list[str]:
    """The lines of a cleaned text; only a line feed ends a line."""
    return clean(text).split("\n")


def short_lines(text: str, tool: str) -> list[str]:
    """As :func:`lines`, for a tool that prints no long ones. Raises ParseError where one has over 4096 characters."""
    found = lines(text)
    for number, line in enumerate(found, start=1):
        if len(line) > LINE_MAX:
            raise ParseError(tool, number, f"a line of {len(line)} characters, which this tool does not print")
    return found


def prompt(line: str) -> str | None:
    """The command of a pasted line that begins with a shell's prompt, ``""`` for the prompt alone, None for another.

    >>> prompt("(base) root@ecs01:~# rdma link"), prompt("$ ibstat"), prompt("link mlx5_0/1 state ACTIVE")
    ('rdma link', 'ibstat', None)
    """
    match = _PROMPT.match(line)
    return None if match is None else (match["command"] or "").strip()


def word(raw: str | None) -> str | Missing:
    """A text value, or the Missing that its sentinel stands for."""
    if raw is None:
        return ABSENT
    found = sentinel(raw)
    return raw.strip() if found is None else found


def number(raw: str | None, unit: str, tool: str, what: str) -> float | Missing:
    """A number with the unit it must have (``MiB``, ``W``; "" for none), or the Missing of its sentinel.

    A number without a unit is taken to be in the asked one (``--format=nounits``); another unit is a ParseError.
    """
    if raw is None:
        return ABSENT
    found = sentinel(raw)
    if found is not None:
        return found
    match = _NUMBER.match(raw.strip())
    if match is None or (match[2] is not None and match[2] != unit):
        raise ParseError(tool, 0, f"{what}: {raw.strip()!r} is not a number{f' of {unit}' if unit else ''}")
    return float(match[1])


def integer(raw: str | None, tool: str, what: str, unit: str = "") -> int | Missing:
    """A whole number, or the Missing of its sentinel; ``16x`` is read with ``unit="x"``."""
    value = number(raw, unit, tool, what)
    if isinstance(value, Missing):
        return value
    if not value.is_integer():
        raise ParseError(tool, 0, f"{what}: {raw!r} is not a whole number")
    return int(value)


def flag(raw: str | None, tool: str, what: str) -> bool | Missing:
    """Yes/No, Enabled/Disabled, Active/Not Active, On/Off as a truth value, or the Missing of its sentinel."""
    if raw is None:
        return ABSENT
    found = sentinel(raw)
    if found is not None:
        return found
    lowered = raw.strip().lower()
    if lowered in _YES:
        return True
    if lowered in _NO:
        return False
    raise ParseError(tool, 0, f"{what}: {raw.strip()!r} is neither yes nor no")


@functools.lru_cache(maxsize=4096)  # a host has some hundred, each in many places
def pci_address(raw: str) -> str | None:
    """``dddd:bb:dd.f`` in lower case from any spelling, or None where it is no PCI address.

    >>> pci_address("00000000:CA:00.0"), pci_address("PCI:0009:01:00"), pci_address("07:00.1")
    ('0000:ca:00.0', '0009:01:00.0', '0000:07:00.1')
    """
    text = raw.strip()
    match = _PCI.match(text[4:] if text.upper().startswith("PCI:") else text)
    if match is None:
        return None
    domain = f"{int(match['domain'] or '0', 16):04x}"
    return f"{domain}:{match['bus']}:{match['device']}.{match['f'] or 0}".lower()


def pci_value(raw: str | None, tool: str, what: str) -> str | Missing:
    """A normalised PCI address, or the Missing of its sentinel."""
    value = word(raw)
    if isinstance(value, Missing):
        return value
    address = pci_address(value)
    if address is None:
        raise ParseError(tool, 0, f"{what}: {value!r} is not a PCI address")
    return address


def is_count(raw: str) -> bool:
    """Whether a text is a whole number of at most nine digits, as CPUs, nodes and lanes are counted.

    >>> is_count("48"), is_count(""), is_count("-1"), is_count("\u00b2"), is_count("9" * 5000)
    (True, False, False, False, False)
    """
    return raw.isdecimal() and len(raw) <= 9


def cpu_list(raw: str, tool: str, line: int) -> frozenset[int]:
    """``0-23,48-71`` as a set; an empty text is the empty set (a memory-only node)."""
    cpus: set[int] = set()
    left = _CPUS_MAX
    for part in raw.strip().split(",") if raw.strip() else ():
        first, dash, last = part.strip().partition("-")
        if not is_count(first) or (dash and not is_count(last)) or (dash and int(last) < int(first)):
            raise ParseError(tool, line, f"{raw.strip()[:200]!r} is not a CPU list")
        found = range(int(first), int(last or first) + 1)
        left -= len(found)
        if left < 0:
            raise ParseError(tool, line, f"{raw.strip()[:200]!r}: more CPUs than any machine has")
        cpus.update(found)
    return frozenset(cpus)
