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
_DEVICE = re.compile(r"\b(?P<domain>[0-9a-f]{4}):(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})\.(?P<function>[0-7])\b")
# Bits of a PCIe uncorrectable error status: a request that a function does not answer, which a scan of the bus makes.
_STATUS = re.compile(r"error status/mask=(?P<status>[0-9a-f]{8})/(?P<mask>[0-9a-f]{8})")
_UNSUPPORTED_REQUEST = 0x0010_0000
_STATUS_WITHIN = 4
_FATAL = re.compile(r"(?<!Non-)\bFatal\b", re.I)
_BERT = re.compile(r"^BERT: Error records from previous boot")
_BERT_GAP = 5  # lines of other CPUs that may stand between two of a record


def judged(events: Sequence[KernelEvent], said: Sequence[KernelLine]) -> tuple[KernelEvent, ...]:
    """The events in order of their line, each with what cured it, and those that only several lines together show."""
    line_of = {line.number: line for line in said}
    place = {line.number: at for at, line in enumerate(said)}  # not the number: the newest line may stand first
    last_boot = {line.host: line.boots for line in said}
    loaded = _last_reload(said)
    slight = _unsupported_requests(said)
    earlier = _recorded_at_boot(said)

    def cured(event: KernelEvent) -> str | None:
        line = line_of[event.line]
        if line.boots < last_boot[line.host] or event.line in earlier:
            return RESTARTED
        if event.kind in UNTIL_RELOADED and place[event.line] < loaded.get((line.host, line.part), 0):
            return RELOADED
        return None

    found = sorted((*events, *_bars(said)), key=lambda event: event.line)
    return tuple(
        replace(event, cured=cured(event), fatal=False if event.line in slight and event.kind == "aer" else event.fatal)
        for event in found
    )


def _last_reload(said: Sequence[KernelLine]) -> dict[tuple[str, int], int]:
    """By host and start: the place where the driver was last brought up, if it then said that it is loaded."""
    begun: dict[tuple[str, int], int] = {}
    done: dict[tuple[str, int], int] = {}
    for at, line in enumerate(said):
        if not line.kernel or not line.message.startswith(("NVRM", "nvidia")):
            continue
        where = (line.host, line.part)
        if _INITIALISED.match(line.message):
            begun[where] = at
        elif _LOADED.match(line.message) and where in begun:
            done[where] = begun[where]
    return done


def _unsupported_requests(said: Sequence[KernelLine]) -> set[int]:
    """The lines of PCIe errors whose status has nothing but a request that a function does not support."""
    found: set[int] = set()
    for at, line in enumerate(said):
        match = _STATUS.search(line.message) if "error status/mask" in line.message else None
        if match and int(match["status"], 16) & ~int(match["mask"], 16) == _UNSUPPORTED_REQUEST:
            near = said[max(0, at - _STATUS_WITHIN) : at + _STATUS_WITHIN]
            report = _report(line, [one for one in near if one.host == line.host])
            if not any(_FATAL.search(one.message) for one in report):
                found.update(one.number for one in report)
    return found


def _report(status: KernelLine, near: Sequence[KernelLine]) -> list[KernelLine]:
    """The lines among those near that tell of the same error: they name the function, or its port's failed recovery."""
    device = _DEVICE.search(status.message)
    if device is None:
        return [status]
    # Linux before 5.0 names the function by its number on the bus: "error received: id=0018".
    number = f"id={device['bus']}{int(device['device'], 16) << 3 | int(device['function']):02x}"
    own = [one for one in near if device[0] in one.message or number in one.message]
    ports = {match[0] for one in own if "error received" in one.message and (match := _DEVICE.search(one.message))}
    failed = (one for one in near if "recovery failed" in one.message.lower() and one not in own)
    return own + [one for one in failed if (match := _DEVICE.search(one.message)) and match[0] in ports]


def _recorded_at_boot(said: Sequence[KernelLine]) -> set[int]:
    """The lines of the firmware's record of an error before the last start, which the kernel prints at boot."""
    found: set[int] = set()
    left = 0
    for line in said:
        if _BERT.match(line.message):
            left = _BERT_GAP
        elif left and line.message.startswith(("[Hardware Error]", "BERT: [Hardware Error]")):
            found.add(line.number)
            left = _BERT_GAP
        else:
            left = max(0, left - 1)
    return found


def _bars(said: Sequence[KernelLine]) -> Iterator[KernelEvent]:
    """The memory of a device for which there was no room, and was none later either."""
    missing: dict[tuple[str, str, str], KernelLine] = {}
    for line in said:
        if "BAR" not in line.message:
            continue
        given, match = _BAR_GIVEN.match(line.message), _BAR.match(line.message)
        if given:
            missing.pop((line.host, given["device"], given["bar"]), None)
        elif match and (match["failed"] or match["new"]):
            missing.setdefault((line.host, match["device"], match["bar"]), line)
    for (host, device, _), line in missing.items():
        yield KernelEvent("bar-unassigned", line.number, line.message, pci_address=pci_address(device), host=host)
