"""What the rest of a kernel log says about a line: mended since, or nothing that matters after all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from validation.facts.host import KernelEvent
from validation.facts.kernel_kinds import UNTIL_RELOADED
from validation.facts.kernel_lines import KernelLine
from validation.facts.text import pci_address

RESTARTED = "the host has been started again since"
RELOADED = "the driver has been loaded again since"
_INITIALISED = re.compile(r"^nvidia-nvlink: Nvlink Core is being initialized")
_LOADED = re.compile(r"^NVRM: loading NVIDIA UNIX")
# "pci 0000:13:00.0: BAR 1: no space for [mem size 0x1000000000 64bit pref]"; since Linux 6.11 the size stands first.
_BAR = re.compile(
    r"^pci (?P<device>[0-9a-f:.]+): BAR (?P<bar>[0-5]) ?(?:: (?P<failed>no space for|failed to assign) )?"
    r"\[mem [^\]]*\](?:: (?P<new>can't assign; no space|failed to assign))?"
)
_BAR_GIVEN = re.compile(r"^pci (?P<device>[0-9a-f:.]+): BAR (?P<bar>[0-5])\b.*\bassigned\b")
# Bits of a PCIe uncorrectable error status: a request that a function does not answer, which a scan of the bus makes.
_STATUS = re.compile(r"error status/mask=(?P<status>[0-9a-f]{8})/(?P<mask>[0-9a-f]{8})")
_UNSUPPORTED_REQUEST = 0x0010_0000
_STATUS_WITHIN = 4
_BERT = re.compile(r"^BERT: Error records from previous boot")
_LIVE_RECORD = re.compile(r"^\{\d+\}\[Hardware Error\]")
_BERT_MAX = 200


def judged(events: Sequence[KernelEvent], said: Sequence[KernelLine]) -> tuple[KernelEvent, ...]:
    """The events in order of their line, each with what cured it, and those that only several lines together show."""
    line_of = {line.number: line for line in said}
    last_boot = {line.host: line.boots for line in said}
    loaded = _last_reload(said)
    slight = _unsupported_requests(said)
    earlier = _recorded_at_boot(said)

    def cured(event: KernelEvent) -> str | None:
        line = line_of[event.line]
        if line.boots < last_boot[line.host] or event.line in earlier:
            return RESTARTED
        if event.kind in UNTIL_RELOADED and event.line < loaded.get((line.host, line.part), 0):
            return RELOADED
        return None

    found = sorted((*events, *_bars(said)), key=lambda event: event.line)
    return tuple(
        replace(event, cured=cured(event), fatal=False if event.line in slight and event.kind == "aer" else event.fatal)
        for event in found
    )


def _last_reload(said: Sequence[KernelLine]) -> dict[tuple[str, int], int]:
    """By host and start: the line from which the driver was brought up the last time that it then said it is loaded."""
    begun: dict[tuple[str, int], int] = {}
    done: dict[tuple[str, int], int] = {}
    for line in said:
        if not line.message.startswith(("NVRM", "nvidia")):
            continue
        where = (line.host, line.part)
        if _INITIALISED.match(line.message):
            begun[where] = line.number
        elif _LOADED.match(line.message) and where in begun:
            done[where] = begun[where]
    return done


def _unsupported_requests(said: Sequence[KernelLine]) -> set[int]:
    """The lines of PCIe errors whose status has nothing but a request that a function does not support."""
    found: set[int] = set()
    for at, line in enumerate(said):
        match = _STATUS.search(line.message) if "error status/mask" in line.message else None
        if match and int(match["status"], 16) & ~int(match["mask"], 16) == _UNSUPPORTED_REQUEST:
            found.update(one.number for one in said[max(0, at - _STATUS_WITHIN) : at + _STATUS_WITHIN])
    return found


def _recorded_at_boot(said: Sequence[KernelLine]) -> set[int]:
    """The lines of the firmware's record of an error before the last start, which the kernel prints at boot."""
    found: set[int] = set()
    for at, line in enumerate(said):
        if _BERT.match(line.message):
            for one in said[at : at + _BERT_MAX]:
                if "[Hardware Error]" in one.message and not _LIVE_RECORD.match(one.message):
                    found.add(one.number)
    return found


def _bars(said: Sequence[KernelLine]) -> Iterator[KernelEvent]:
    """The memory of a device for which there was no room, and was none later either."""
    missing: dict[tuple[str, str], KernelLine] = {}
    for line in said:
        if "BAR" not in line.message:
            continue
        given, match = _BAR_GIVEN.match(line.message), _BAR.match(line.message)
        if given:
            missing.pop((given["device"], given["bar"]), None)
        elif match and (match["failed"] or match["new"]):
            missing.setdefault((match["device"], match["bar"]), line)
    for (device, _), line in missing.items():
        yield KernelEvent("bar-unassigned", line.number, line.message, pci_address=pci_address(device))
