"""Alibaba's ``eadm ver`` and ``eadm stat``: the eRDMA driver's version and counters.

The tool's source is not open, and Alibaba's help page shows its output as pictures only. Two of its commands are read,
in the form that a public exporter reads them in (shaowenchen/erdma-exporter d68614f, collector.go, read 2026-11-30):
``Query kernel driver version: 0.2.38`` and lines ``listen_create_cnt : 0``, with the names that the driver also gives
to ``rdma statistic show``. What the other commands print is published nowhere, so they are recognised and refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from profiles.errors import ParseError
from validation.facts.missing import ABSENT, Missing
from validation.facts.rdma_counters import PortCounters
from validation.facts.text import prompt, short_lines

TOOL = "eadm"
INSTEAD = "Use rdma statistic show for the counters and ibv_devinfo for the devices; modinfo erdma has the version."
_VERSION = re.compile(r"^Query kernel driver version:\s+(\d+(?:\.\d+)+)\s*$")
_COUNTER = re.compile(r"^(\w+_cnt)\s*:\s*(\d+)$")
_COMMAND = re.compile(r"^(?:sudo\s+)?(?:/usr)?(?:/bin/)?eadm\b\s*(?P<command>[\w-]*)(?P<rest>.*)$")
_NOT_FOUND = re.compile(r"\beadm: (?:command )?not found|Command 'eadm' not found")
_LIVE = re.compile(r"(?:^|\s)-l\b")
_DEVICE = re.compile(r"\s-d\s+(\S+)")
_READ = ("ver", "stat")


@dataclass(frozen=True)
class Eadm:
    """The driver's version and what it counted since it was loaded; what was not asked is ABSENT and empty.

    ``device`` is ABSENT where the command line is not in the text: the output does not name it.
    """

    driver: str | Missing = ABSENT
    device: str | Missing = ABSENT
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> Mapping[str, int]:
        """The counters of errors, zero or not."""
        return PortCounters("", self.counters).errors()


def is_it(text: str) -> bool:
    """Whether eadm was asked or answers here."""
    return any(_asked(line) or _VERSION.match(line) for line in text.split("\n")) or bool(
        _NOT_FOUND.search(text) or re.search(r"^\s*(?:listen_create|accept_total|cmdq_submitted)_cnt\s*:", text, re.M)
    )


def _asked(line: str) -> re.Match[str] | None:
    """The command line of eadm, with or without the prompt before it."""
    typed = prompt(line[:200])
    return _COMMAND.match(line.strip()[:200] if typed is None else typed)


def parse(text: str) -> Eadm:
    """Version and counters. Raises ParseError for another command, naming what tells the same in a known form."""
    if _NOT_FOUND.search(text):
        why = "eadm is not installed here: it comes with the eRDMA driver, outside of containers"
        raise ParseError(TOOL, 0, why, INSTEAD)
    driver: str | Missing = ABSENT
    device: str | Missing = ABSENT
    counters: dict[str, int] = {}
    for number, line in enumerate(short_lines(text, TOOL), start=1):
        stripped = line.strip()
        version, counter, asked = _VERSION.match(stripped), _COUNTER.match(stripped), _asked(line)
        if version:
            driver = version[1]
        elif counter:
            counters[counter[1]] = int(counter[2])
        elif asked:
            _refuse_unread(asked, number)
            named = _DEVICE.search(asked["rest"])
            device = named[1] if named else device
        elif stripped and prompt(line) is None:
            raise ParseError(TOOL, number, f"{stripped[:80]!r} is in no form known here", INSTEAD)
    if driver == ABSENT and not counters:
        raise ParseError(TOOL, 0, "neither a driver version nor a counter", INSTEAD)
    return Eadm(driver, device, counters)


def _refuse_unread(asked: re.Match[str], number: int) -> None:
    command = asked["command"]
    if command not in _READ or (command == "stat" and _LIVE.search(asked["rest"])):
        words = " ".join(f"eadm {command}{asked['rest']}".split())[:60]
        raise ParseError(TOOL, number, f"what '{words}' prints is published nowhere, so it is not read", INSTEAD)
