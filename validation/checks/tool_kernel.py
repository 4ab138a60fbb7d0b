"""Lines of the kernel log about the host around the GPUs: PCIe links, storage, memory, lock-ups, drivers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.kernel import cured, labels_of, since, unfinished
from validation.checks.wording import counted
from validation.facts.gpu import GpuInventory
from validation.facts.host import KernelEvent, KernelLog
from validation.facts.kernel_kinds import UNTIL_RELOADED
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_LIMITED = re.compile(
    r"(?P<driver>\S+) (?P<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): (?P<now>\d+(?:\.\d+)?) Gb/s available "
    r"PCIe bandwidth, limited by (?P<speed>\d+(?:\.\d+)?) GT/s PCIe x(?P<width>\d+) link at (?P<at>\S+) "
    r"\(capable of (?P<could>\d+(?:\.\d+)?) Gb/s with (?P<full>\d+(?:\.\d+)?) GT/s PCIe x(?P<lanes>\d+) link\)"
)
_FULL = re.compile(
    r"(?P<driver>\S+) [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.\d: \S+ Gb/s available PCIe bandwidth "
    r"\((?P<full>\d+(?:\.\d+)?) GT/s PCIe x(?P<lanes>\d+) link\)"
)
_GSP_XIDS = (119, 120)  # timeout and error of the GPU's system processor
# Drivers of network cards that print this line themselves: the link is theirs, and it trained at fewer lanes.
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
        events = [(event, _LIMITED.search(event.text)) for event in log.events if event.kind == "pcie-limited"]
        for event, match in events:
            if match is None:
                message = f"a link below its capability, in words that cannot be read: {event.text[:160]}"
                yield self.finding(Verdict.WARN, event.pci_address or "host", message, remedy="Look at lspci -vv.")
        found = [(event, match) for event, match in events if match and float(match["could"]) >= _FAST_GBPS]
        shared = _by_design(log, [match for _, match in found])
        for event, match in found:
            now = f"x{match['width']} at {match['speed']} GT/s"
            could = f"x{match['lanes']} at {match['full']} GT/s"
            narrow = match["driver"] in _NICS and int(match["width"]) < int(match["lanes"])
            if narrow and _kind_of_link(match) not in shared:
                message = f"{match['driver']} trained at {now} of {could} (kernel {log.place(event)}){cured(event)}"
                verdict = since(Verdict.FAIL, event)
                yield self.finding(verdict, match["device"], message, measured=now, expected=could)
            else:
                message = f"runs at {now} of {could}; by design where every device of its kind does"
                remedy = "Compare with the other devices of the same kind: if only this one is slow, replace the host."
                yield self.finding(Verdict.WARN, match["device"], message, measured=now, expected=could, remedy=remedy)


def _kind_of_link(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(match[part] for part in ("driver", "width", "lanes", "full"))


def _by_design(log: KernelLog, limited: list[re.Match[str]]) -> set[tuple[str, ...]]:
    """The kinds of narrow link that two cards or more have and no card of the kind is without: slots built that way.

    Two functions of one card are one card, and of one card alone nothing tells that its slot is narrow.
    """
    cards: dict[tuple[str, ...], set[str]] = {}
    for match in limited:
        cards.setdefault(_kind_of_link(match), set()).add(match["device"].rpartition(".")[0])
    full = {
        (whole["driver"], whole["lanes"], whole["full"])
        for event in log.events
        if event.kind == "pcie-full" and (whole := _FULL.search(event.text)) is not None
    }
    return {kind for kind, slots in cards.items() if len(slots) > 1 and (kind[0], kind[2], kind[3]) not in full}


def _whole(check: Check, log: KernelLog, found: list[Finding], what: str, *, also: str = "") -> Iterable[Finding]:
    """What was found, and that nothing was: good, if there was a whole log to look at. ``also`` is told anyway."""
    doubt = unfinished(check, log)
    if doubt is not None:
        yield doubt
    yield from found
    if doubt is None and not found:
        message = f"no {what} in {counted(log.lines, 'line')} of the kernel log"
        yield check.finding(Verdict.PASS, "host", f"{message}; {also}" if also else message)
    elif also:
        yield check.finding(Verdict.PASS, "host", also)


_REBOOT = "Reboot once; if it repeats, replace the host."
_REPLACE_DISK = "Replace the host, or the volume."
_OTHER_DRIVER = "Remove or blacklist the other driver, and load the NVIDIA driver again; a reboot does both."

# What each kind of line means for a host that nobody has used yet: verdict, fault class, in words, what to do.
_MEANINGS: dict[str, tuple[Verdict, FaultClass | None, str, str]] = {
    "api-mismatch": (
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "a program's driver library has another version than the kernel module",
        "Reboot, so that the module of the installed driver is loaded, and keep unattended upgrades off the driver.",
    ),
    "driver-conflict": (
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "the NVIDIA driver did not take a GPU: another driver holds it, or this driver does not support it",
        "Install a driver that supports this GPU, and keep nouveau and vfio-pci off it; then load it again or reboot.",
    ),
    "gpu-init": (Verdict.FAIL, FaultClass.REBOOT_ONCE, "the driver could not start a GPU", _REBOOT),
    "gpu-probe": (Verdict.FAIL, FaultClass.REBOOT_ONCE, "the driver could not start a GPU", _REBOOT),
    "module-rejected": (
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "the kernel refused the NVIDIA driver for its signature",
        "Enrol the key that signed the module (mokutil --import), install a signed driver, or turn Secure Boot off.",
    ),
    "nouveau": (
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "nouveau has the GPU, so NVIDIA's driver cannot have it",
        _OTHER_DRIVER,
    ),
    "gsp-timeout": (Verdict.FAIL, FaultClass.REBOOT_ONCE, "the GPU's system processor does not answer", _REBOOT),
    "nic-down": (
        Verdict.FAIL,
        FaultClass.REBOOT_ONCE,
        "a network card or its firmware has stopped working",
        _REBOOT,
    ),
    "nic-trouble": (
        Verdict.WARN,
        None,
        "a network card lost packets, was reset, or says that it lacks power",
        "Look at the other lines of this card; if they go on, replace the host.",
    ),
    "read-only-fs": (
        Verdict.FAIL,
        FaultClass.REPLACE_NOW,
        "a filesystem went read-only after errors",
        _REPLACE_DISK,
    ),
    "fs-error": (Verdict.FAIL, FaultClass.REPLACE_NOW, "a filesystem is damaged", _REPLACE_DISK),
    "io-error": (Verdict.FAIL, FaultClass.REPLACE_NOW, "a disk failed to read or write", _REPLACE_DISK),
    "slow-io": (Verdict.WARN, None, "a disk answered, but without telling", "Watch the disk: its interrupts get lost."),
    "soft-lockup": (Verdict.FAIL, FaultClass.REBOOT_ONCE, "a CPU was stuck", _REBOOT),
    "oops": (Verdict.FAIL, FaultClass.REBOOT_ONCE, "the kernel itself failed", _REBOOT),
    # A host of terabytes may log one at boot; a driver or a disk that hangs shows in the checks that ask it.
    "hung-task": (Verdict.WARN, None, "a task waited for minutes", "Look at what the task was waiting for."),
    "oom": (Verdict.WARN, None, "a process was killed for want of memory", "Look at what used the memory."),
    "hot": (Verdict.WARN, None, "a CPU was too hot and had to slow down", "Look at the cooling; replace the host."),
    "bar-unassigned": (
        Verdict.WARN,
        None,
        "there was no room in the address space for a device's memory",
        "If it is a GPU's: enable Above 4G Decoding in the firmware, or boot with pci=realloc.",
    ),
    "pcie-link-down": (Verdict.WARN, None, "a device left the PCIe bus", "Look which one: lspci, and this log."),
    "driver-unknown": (
        Verdict.WARN,
        None,
        "a line of a GPU, network or storage driver that is not known here",
        "Look it up in the driver's documentation, and report it.",
    ),
}
# What a kind that has a slight sort means then.
_SLIGHT: dict[str, tuple[Verdict, FaultClass | None, str, str]] = {
    "aer": (
        Verdict.WARN,
        None,
        "PCIe errors that were corrected, or that no line calls grave",
        "Watch the count: a link that needs correcting is failing.",
    ),
    "machine-check": (
        Verdict.WARN,
        None,
        "the hardware corrected errors",
        "Watch the count: what needs correcting is failing.",
    ),
    "module-rejected": (
        Verdict.WARN,
        None,
        "the kernel refused a module for its signature, and does not say which",
        "Where nvidia-smi cannot reach the driver, it was NVIDIA's: enrol its key, or turn Secure Boot off.",
    ),
}
_GRAVE: dict[str, tuple[Verdict, FaultClass | None, str, str]] = {
    "aer": (Verdict.FAIL, FaultClass.REBOOT_ONCE, "an uncorrected PCIe error", _REBOOT),
    "machine-check": (
        Verdict.FAIL,
        FaultClass.REBOOT_ONCE,
        "an error of memory or CPU that the hardware could not correct",
        _REBOOT,
    ),
}
# Kinds that say why a probe failed, and those that one GPU is named by, which may have come up later.
_SAY_WHY = ("fallen-off-bus", "driver-conflict", "gpu-init")
_OF_ONE_GPU = ("gpu-init", "gpu-probe")
_WORKS_NOW = "the driver answers now"
_SHOWN, _SHOWN_CHARACTERS = 3, 100


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
        found = list(self._events(log, _answering(facts)))
        yield from _whole(self, log, found, "other message of concern", also=_unlisted(log))

    def _events(self, log: KernelLog, answering: Collection[str]) -> Iterable[Finding]:
        groups: dict[tuple[object, ...], list[KernelEvent]] = {}
        for event in _with_own_cause(log):
            where = event.pci_address or event.device or "host"
            key = (event.kind, where, event.host, event.fatal is True, event.cured)
            groups.setdefault(key, []).append(event)
        for events in groups.values():
            event = events[0]
            meaning = _meaning(event.kind, grave=event.fatal is True)
            if meaning is None:
                continue
            verdict, fault, text, remedy = meaning
            mended = event.cured or (_WORKS_NOW if _answers(event, answering) else None)
            verdict = Verdict.WARN if mended and verdict is Verdict.FAIL else verdict
            times = sum(one.times for one in events)
            count = f", {counted(times, 'line')}" if times > 1 else ""
            message = f"{text}{count} (kernel {log.place(event)}): {event.text[:160]}"
            message += f"; {mended}" if mended else ""
            where = event.pci_address or event.device or "host"
            yield self.finding(verdict, where, message, fault_class=fault, remedy=remedy)


def _unlisted(log: KernelLog) -> str:
    """The lines that no list has, in words: they mean nothing known, so they close no gate, and somebody may know."""
    shown = "; ".join(repr(text[:_SHOWN_CHARACTERS]) for text in log.unlisted[:_SHOWN])
    more = f"; and {len(log.unlisted) - _SHOWN} more" if len(log.unlisted) > _SHOWN else ""
    return f"{counted(len(log.unlisted), 'kind')} of driver lines on no list: {shown}{more}" if shown else ""


def _meaning(kind: str, *, grave: bool) -> tuple[Verdict, FaultClass | None, str, str] | None:
    """What a line of this kind means; None for one that another check speaks of."""
    if kind in _SLIGHT and not grave:
        return _SLIGHT[kind]
    return _GRAVE.get(kind) or _MEANINGS.get(kind)


def _with_own_cause(log: KernelLog) -> Iterator[KernelEvent]:
    """The events without those that only repeat, in other words, what another line has said already."""
    numbered = {(e.host, e.pci_address, e.cured) for e in log.events if e.kind == "xid" and e.code in _GSP_XIDS}
    explained = {(e.host, e.pci_address, e.cured) for e in log.events if e.kind in _SAY_WHY}
    for event in log.events:
        if event.kind == "gsp-timeout" and (event.host, event.pci_address, event.cured) in numbered:
            continue  # kernel.xid speaks of it
        if event.kind == "gpu-probe" and any(_is_of(event, *one) for one in explained):
            continue
        yield event


def _is_of(probe: KernelEvent, host: str, address: str | None, mended: str | None) -> bool:
    """Whether a cause is that of a failed probe: of the same GPU where both name one, and as much of the past."""
    same = probe.pci_address == address or None in (probe.pci_address, address)
    return same and (probe.host, probe.cured) == (host, mended)


def _answering(facts: Facts) -> Collection[str]:
    """The addresses of the GPUs that the driver works with now."""
    lost = facts.need(GpuInventory).lost if GpuInventory in facts else ()
    return {address for address, label in labels_of(facts).items() if not {address, label}.intersection(lost)}


def _answers(event: KernelEvent, answering: Collection[str]) -> bool:
    """Whether the driver now works with what the line says it could not: the state has changed since the line."""
    if event.pci_address is None:
        return bool(answering) and event.kind in UNTIL_RELOADED and event.kind not in _OF_ONE_GPU
    return event.pci_address in answering and event.kind in (*UNTIL_RELOADED, *_OF_ONE_GPU)
