"""Lines of the kernel log about the host around the GPUs: PCIe links, storage, memory, lock-ups, drivers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.kernel import unfinished
from validation.checks.wording import counted
from validation.facts.host import KernelEvent, KernelLog
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_LIMITED = re.compile(
    r"(?P<driver>\S+) (?P<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): (?P<now>\d+(?:\.\d+)?) Gb/s available "
    r"PCIe bandwidth, limited by (?P<speed>\d+(?:\.\d+)?) GT/s PCIe x(?P<width>\d+) link at (?P<at>\S+) "
    r"\(capable of (?P<could>\d+(?:\.\d+)?) Gb/s with (?P<full>\d+(?:\.\d+)?) GT/s PCIe x(?P<lanes>\d+) link\)"
)
# Drivers of network cards that print this line themselves: the link is theirs, and it trained at fewer lanes.
_GSP_XIDS = (119, 120)  # timeout and error of the GPU's system processor
_NICS = ("mlx5_core", "mlx4_core", "ena", "efa", "irdma", "bnxt_en", "ice")
_FAST_GBPS = 100.0  # Gb/s a device must be capable of to matter here: a GPU, a NIC or an NVMe drive, no management port


class PcieLimited(Check):
    """No network card trained at fewer PCIe lanes than it has."""

    id = "kernel.pcie_limited"
    title = "PCIe links below capability"
    why = "A card at half its lanes halves the network of the host, and nothing else says so."
    source = "stas00/ml-engineering debug.md; imbue-ai/cluster-health dmesg scan"
    remedy = "Reboot once; if it repeats, replace the host, or reseat the card of your own machine."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (KernelLog,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        log = facts.need(KernelLog)
        found = list(self._limited(log))
        yield from _whole(self, log, found, "network card below its PCIe width")

    def _limited(self, log: KernelLog) -> Iterable[Finding]:
        for event in log.events:
            match = _LIMITED.search(event.text) if event.kind == "pcie-limited" else None
            if match is None or float(match["could"]) < _FAST_GBPS:
                continue
            now = f"x{match['width']} at {match['speed']} GT/s"
            could = f"x{match['lanes']} at {match['full']} GT/s"
            if match["driver"] in _NICS and int(match["width"]) < int(match["lanes"]):
                message = f"{match['driver']} trained at {now} of {could} (kernel log line {event.line})"
                yield self.finding(Verdict.FAIL, match["device"], message, measured=now, expected=could)
            else:
                message = f"runs at {now} of {could}; by design where every device of its kind does"
                remedy = "Compare with the other devices of the same kind: if only this one is slow, replace the host."
                yield self.finding(Verdict.WARN, match["device"], message, measured=now, expected=could, remedy=remedy)


def _whole(check: Check, log: KernelLog, found: list[Finding], what: str) -> Iterable[Finding]:
    """What was found, and that nothing was: good, if there was a whole log to look at."""
    doubt = unfinished(check, log)
    if doubt is not None:
        yield doubt
    yield from found
    if doubt is None and not found:
        yield check.finding(Verdict.PASS, "host", f"no {what} in {counted(log.lines, 'line')} of the kernel log")


# What each kind of line means for a host that nobody has used yet.
_MEANINGS: dict[str, tuple[Verdict, FaultClass | None, str, str]] = {
    "api-mismatch": (
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "a program's driver library has another version than the kernel module",
        "Reboot, so that the module of the installed driver is loaded, and keep unattended upgrades off the driver.",
    ),
    "gsp-timeout": (
        Verdict.FAIL,
        FaultClass.REBOOT_ONCE,
        "the GPU's system processor does not answer",
        "Reboot once; if it repeats, replace the host.",
    ),
    "read-only-fs": (
        Verdict.FAIL,
        FaultClass.REPLACE_NOW,
        "a filesystem went read-only after errors",
        "Replace the host, or the volume.",
    ),
    "io-error": (
        Verdict.FAIL,
        FaultClass.REPLACE_NOW,
        "a disk failed to read or write",
        "Replace the host, or the volume.",
    ),
    "soft-lockup": (
        Verdict.FAIL,
        FaultClass.REBOOT_ONCE,
        "a CPU was stuck",
        "Reboot once; if it repeats, replace the host.",
    ),
    # A host of terabytes may log one at boot; a driver or a disk that hangs shows in the checks that ask it.
    "hung-task": (Verdict.WARN, None, "a task waited for minutes", "Look at what the task was waiting for."),
    "oom": (Verdict.WARN, None, "a process was killed for want of memory", "Look at what used the memory."),
    "driver-unknown": (
        Verdict.WARN,
        None,
        "a line of a GPU, network or storage driver that is not known here",
        "Look it up in the driver's documentation, and report it.",
    ),
}


class KernelEvents(Check):
    """Nothing in the kernel log that means a broken host, apart from the errors that have a number."""

    id = "kernel.events"
    title = "Other kernel messages"
    why = "Storage errors, stuck CPUs and a dead GPU processor are logged long before a job meets them."
    source = "gpud 4a8de33a kernel log matchers; imbue-ai/cluster-health (every unknown line is reported)"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    requires = (KernelLog,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        log = facts.need(KernelLog)
        found = list(self._events(log))
        yield from _whole(self, log, found, "other message of concern")

    def _events(self, log: KernelLog) -> Iterable[Finding]:
        groups: dict[tuple[str, str | None, bool], list[KernelEvent]] = {}
        named = {event.pci_address for event in log.events if event.kind == "xid" and event.code in _GSP_XIDS}
        for event in log.events:
            if event.kind == "gsp-timeout" and event.pci_address in named:
                continue  # kernel.xid speaks of it
            groups.setdefault((event.kind, event.pci_address, event.fatal is True), []).append(event)
        for (kind, address, fatal), events in groups.items():
            if kind == "aer":
                meaning = self._aer(fatal)
            elif kind in _MEANINGS:
                meaning = _MEANINGS[kind]
            else:
                continue
            verdict, fault, text, remedy = meaning
            times = f", {counted(len(events), 'time')}" if len(events) > 1 else ""
            message = f"{text}{times} (kernel log line {events[0].line}): {events[0].text[:160]}"
            yield self.finding(verdict, address or "host", message, fault_class=fault, remedy=remedy)

    def _aer(self, fatal: bool) -> tuple[Verdict, FaultClass | None, str, str]:
        if fatal:
            text = "an uncorrected PCIe error"
            return Verdict.FAIL, FaultClass.REBOOT_ONCE, text, "Reboot once; if it repeats, replace the host."
        return Verdict.WARN, None, "corrected PCIe errors", "Watch the count: a link that needs correcting is failing."
