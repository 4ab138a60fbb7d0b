"""What the kernel log says since boot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from profiles.models import Expectation
from validation.checks import nvlink5
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.checks.xid import ErrorCode, sxids, xids
from validation.facts.gpu import GpuInventory
from validation.facts.host import KernelEvent, KernelLog
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_RECOVERY_ACTION = 154
_CHANNEL_REMOVED = 45  # follows another Xid, or a process that was killed
_CAUSED_BY_PROGRAMS = "Nothing on the machine, if a program of yours caused it; otherwise reboot once and look again."
_REMEDIES = {
    FaultClass.REBOOT_ONCE: "Reboot once; if it repeats, replace the host.",
    FaultClass.REPLACE_NOW: "Replace the host.",
    FaultClass.SOFTWARE: _CAUSED_BY_PROGRAMS,
}


@dataclass(frozen=True)
class _Decision:
    verdict: Verdict
    fault_class: FaultClass | None
    meaning: str
    name: str = ""  # NVIDIA's mnemonic, to search for
    remedy: str = ""  # where it is not the fault class's own


class KernelCheck(Check):
    """What the checks of the kernel log share."""

    requires = (KernelLog,)
    needs_profile = False

    def log(self, facts: Facts) -> KernelLog:
        """The log. Zero lines cannot be a log since boot; the parser refuses that already."""
        return facts.need(KernelLog)

    def clean(self, log: KernelLog, what: str) -> Finding:
        return self.finding(Verdict.PASS, "host", f"no {what} in {counted(log.lines, 'line')} of the kernel log")

    def unfinished(self, log: KernelLog) -> Finding | None:
        """Why a log without an event is no clean log; None where it is one."""
        return unfinished(self, log)


def unfinished(check: Check, log: KernelLog) -> Finding | None:
    """The UNKNOWN of a log that is empty or no longer begins at boot; None for one that is there whole."""
    if not log.lines:
        remedy = "Read the kernel log as root; a host that just booted has hundreds of lines."
        return check.finding(Verdict.UNKNOWN, "host", "the kernel log is empty: nothing was looked at", remedy=remedy)
    if not log.from_boot:
        message = "could not look: the kernel log no longer begins at boot, so what was said first is lost"
        remedy = "Reboot and validate again; keep the journal (Storage=persistent), or raise the kernel's log_buf_len."
        return check.finding(Verdict.UNKNOWN, "host", message, remedy=remedy, evidence="kernel-log")
    return None


class KernelXid(KernelCheck):
    """No Xid since boot that means a broken GPU."""

    id = "kernel.xid"
    title = "Xid errors"
    why = "The driver names its faults by number; which of them are the program's and which the board's is known."
    source = "NVIDIA Xid catalog (2025-10) and driver headers to 595.45, row by row in validation/checks/xid.csv"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        log = self.log(facts)
        events = _causes([event for event in log.events if event.kind == "xid" and event.code is not None])
        labels = labels_of(facts)
        found = [
            finding
            for group in map(_worst_first, _grouped(events))
            if (finding := self._judged(log, group, labels, _xid_decision(group[0]))) is not None
        ]
        yield from self._told(log, [*found, *self._unread(log, "xid")], "Xid of concern")

    def _told(self, log: KernelLog, found: list[Finding], what: str) -> Iterator[Finding]:
        unfinished = self.unfinished(log)
        if unfinished is not None:
            yield unfinished
        yield from found
        if unfinished is None and not found:
            yield self.clean(log, what)

    def _unread(self, log: KernelLog, kind: str) -> Iterator[Finding]:
        """Lines with the form of a numbered error whose number cannot be read: they may be any of them."""
        for event in log.events:
            if event.kind == kind and event.code is None:
                message = f"an error whose number cannot be read ({log.place(event)}): {event.text[:160]}"
                remedy = "Look at the line: what its number means, NVIDIA's catalog tells."
                yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy, evidence="kernel-log")

    def _judged(
        self, log: KernelLog, group: list[KernelEvent], labels: dict[str, str], decision: _Decision, word: str = "Xid"
    ) -> Finding | None:
        if decision.verdict is Verdict.PASS:
            return None
        event = group[0]
        count = sum(one.times for one in group)
        times = f", {count} times" if count > 1 else ""
        by = f", from {event.process}" if event.process else ""
        remedy = decision.remedy or _REMEDIES.get(decision.fault_class or FaultClass.REBOOT_ONCE, self.remedy)
        details = listed(dict.fromkeys(text for one in group if (text := _detail(one))), limit=3)
        meaning = f"{decision.meaning} ({details})" if details else decision.meaning
        return self.finding(
            since(decision.verdict, event),
            labels.get(str(event.pci_address), str(event.pci_address or "host")),
            f"{word} {event.code}{times}{by}: {meaning} ({log.place(event)}){cured(event)}",
            measured=f"{word} {event.code} {decision.name}".strip(),
            expected=f"no {word} of concern since boot",
            fault_class=decision.fault_class,
            remedy=remedy,
            evidence="kernel-log",
        )


class KernelSxid(KernelXid):
    """No SXid since boot that means a broken NVSwitch."""

    id = "kernel.sxid"
    title = "SXid errors"
    why = "A switch that fails takes every GPU behind it along; the GPUs' own Xid 74 then points at the wrong part."
    source = (
        "NVIDIA Fabric Manager guide (2023-10) and nvswitch code of 595.45, row by row in validation/checks/sxid.csv"
    )

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        log = self.log(facts)
        events = [event for event in log.events if event.kind == "sxid" and event.code is not None]
        found = [
            finding
            for group in _grouped(events)
            if (finding := self._judged(log, group, {}, _sxid_decision(group), "SXid")) is not None
        ]
        yield from self._told(log, [*found, *self._unread(log, "sxid")], "SXid of concern")


class FallenOffBus(KernelCheck):
    """No GPU has fallen off the bus, with an Xid number or without one."""

    id = "kernel.fallen_off_bus"
    title = "GPU fallen off the bus"
    why = "The loss is sometimes logged without an Xid number, and a scan for numbers misses it."
    source = "gpud 4a8de33a kernel log matchers; NVIDIA Xid 79"
    remedy = "Replace the host: a GPU off the bus needs a power cycle, which a guest reboot does not give."
    fault_class = FaultClass.REPLACE_NOW
    safety = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        log = self.log(facts)
        events = [event for event in log.events if event.kind == "fallen-off-bus"]
        unfinished = self.unfinished(log)
        if unfinished is not None:
            yield unfinished
        labels = labels_of(facts)
        for group in _grouped(events):
            event = group[0]
            yield self.finding(
                since(Verdict.FAIL, event),
                labels.get(str(event.pci_address), str(event.pci_address or "host")),
                f"fell off the bus ({log.place(event)}): {event.text[:200]}{cured(event)}",
                measured="off the bus",
                expected="on the bus since boot",
                evidence="kernel-log",
            )
        if unfinished is None and not events:
            yield self.clean(log, "GPU off the bus")


def _grouped(events: list[KernelEvent]) -> Iterator[list[KernelEvent]]:
    """Events of one number and device together, in order of their first line."""
    groups: dict[tuple[object, ...], list[KernelEvent]] = {}
    for event in events:
        key = (event.code, event.pci_address, event.host, event.fatal, event.action, event.cause, event.cured)
        groups.setdefault(key, []).append(event)
    return iter(groups.values())


def _worst_first(group: list[KernelEvent]) -> list[KernelEvent]:
    """The events of one number with the worst of them first: what the registers of a line say may be worse."""
    kinds = {(event.registers, event.detail): event for event in reversed(group)}
    worst = next((event for event in kinds.values() if _xid_decision(event).verdict is Verdict.FAIL), group[0])
    return group if worst is group[0] else [worst, *(event for event in group if event is not worst)]


def _causes(events: list[KernelEvent]) -> list[KernelEvent]:
    """Without what only follows another line: a removed channel of the same GPU, and an action asked for before.

    A removed channel that names its cause keeps it only where the log has no line of that cause.
    """
    gpus = [(event.host, event.pci_address) for event in events]
    seen = {(event.code, gpu) for event, gpu in zip(events, gpus, strict=True)}
    others = {gpu for event, gpu in zip(events, gpus, strict=True) if event.code != _CHANNEL_REMOVED}
    last = {gpu: event for event, gpu in zip(events, gpus, strict=True) if event.code == _RECOVERY_ACTION}
    found = []
    for event, gpu in zip(events, gpus, strict=True):
        if event.code == _RECOVERY_ACTION and event is not last[gpu]:
            continue
        unseen = event.cause is not None and (event.cause, gpu) not in seen
        if event.code != _CHANNEL_REMOVED or unseen or gpu not in others:
            found.append(event if unseen else replace(event, cause=None))
    return found


def since(verdict: Verdict, event: KernelEvent) -> Verdict:
    """The verdict of a fault now: it warns where the log goes on to tell what may have mended it."""
    return Verdict.WARN if verdict is Verdict.FAIL and event.cured else verdict


def cured(event: KernelEvent) -> str:
    """The end of a message about a fault that something happened after."""
    return f"; {event.cured}" if event.cured else ""


def labels_of(facts: Facts) -> dict[str, str]:
    """GPU labels by PCI address, where the driver still answers. An Xid names the device without its function."""
    if GpuInventory not in facts:
        return {}
    return {str(gpu.pci_address): gpu.label for gpu in facts.need(GpuInventory).gpus}


def _xid_decision(event: KernelEvent) -> _Decision:
    code = event.code or 0
    if code == _RECOVERY_ACTION:
        return _recovery_decision(event)
    row = xids().get(code)
    if row is None:
        return _Decision(Verdict.WARN, None, "a number that is not in the table; see NVIDIA's catalog")
    if code in nvlink5.CODES:
        return _nvlink5_decision(event, row)
    cause = xids().get(event.cause or 0)
    if code == _CHANNEL_REMOVED and cause is not None:
        meaning = f"channel removed after Xid {event.cause}, which is not in this log: {cause.meaning}"
        return _Decision(cause.effect, cause.fault_class, meaning, row.name)
    if code == _CHANNEL_REMOVED:  # alone: a process was killed, or Fabric Manager lost the switch
        return _Decision(Verdict.WARN, row.fault_class, row.meaning, row.name)
    if row.effect is Verdict.PASS and event.text.endswith(f" {code}") and _begins_another(code):
        meaning = "the line ends with this number, and may have been cut within it"
        return _Decision(Verdict.WARN, None, meaning, row.name)
    return _Decision(row.effect, row.fault_class, row.meaning, row.name)


def _begins_another(code: int) -> bool:
    return any(str(other).startswith(str(code)) for other in xids() if other != code)


def _nvlink5_decision(event: KernelEvent, row: ErrorCode) -> _Decision:
    """The line's own word decides, then the table of sub-codes, then the table of numbers."""
    errors = nvlink5.decode(event)
    worst = errors[0] if errors else nvlink5.SubCode("", None)
    fatal = event.fatal if event.fatal is not None else worst.fatal
    if fatal is None:
        return _Decision(row.effect, row.fault_class, row.meaning, row.name)
    meaning = f"{row.meaning}; {'Fatal' if fatal else 'Nonfatal'}"
    remedy = worst.remedy if worst.fatal is fatal else ""
    if not fatal:
        return _Decision(Verdict.WARN, None, meaning, row.name, remedy)
    return _Decision(Verdict.FAIL, worst.fault_class or FaultClass.REBOOT_ONCE, meaning, row.name, remedy)


def _detail(event: KernelEvent) -> str:
    """Unit and link of an NVLink error, and what its registers say."""
    errors = ", ".join(error.text for error in nvlink5.decode(event))
    return ": ".join(part for part in (event.detail, errors) if part)


def _recovery_decision(event: KernelEvent) -> _Decision:
    """Xid 154 is never a cause: it says what the driver now asks for."""
    if event.action is None:
        return _Decision(Verdict.FAIL, FaultClass.REBOOT_ONCE, "the recovery action changed, to what cannot be read")
    if event.action.strip().lower() == "none":
        return _Decision(Verdict.PASS, None, "the driver asks for no recovery")
    return _Decision(Verdict.FAIL, FaultClass.REBOOT_ONCE, f"the driver asks for: {event.action}")


def _sxid_decision(group: list[KernelEvent]) -> _Decision:
    """Fatal in the line is a fail whatever the table says: the driver decides at run time."""
    event = group[0]
    row = sxids().get(event.code or 0)
    if event.fatal is True:
        meaning = row.meaning if row else "not in the table"
        return _Decision(Verdict.FAIL, FaultClass.REBOOT_ONCE, f"{meaning}; Fatal", row.name if row else "")
    if row is None:
        return _Decision(Verdict.WARN, None, "a number that is not in the table")
    if event.fatal is False and row.severity == "fatal":  # contained: the driver says so in the line
        return _Decision(Verdict.WARN, None, f"{row.meaning}; Non-fatal", row.name)
    fault_class = row.fault_class if row.effect is Verdict.FAIL else None
    return _Decision(row.effect, fault_class, row.meaning, row.name)
