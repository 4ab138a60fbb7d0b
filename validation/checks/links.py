"""Are the links up that the board and the machine have: NVLink and PCIe?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from profiles.models import Expectation, Expected
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, not_there, profile_of, ranges
from validation.facts.gpu import Gpu, NvLink
from validation.facts.missing import Missing, Reason
from validation.verdict import FaultClass, Finding, Verdict

# GPUs that are modules on a board which links them by NVLink, by the names NVML prints; a PCIe card may have no bridge.
# H20: Alibaba Cloud's documentation of gn8v (900 GB/s of NVLink between its GPUs), read 2026-11-30.
_MODULE = re.compile(r"SXM\d|\bH20\b")
# Linked GPU to GPU, so that four of the eight have 4, 4, 5 and 5 of their links inside (golden of p3.16xlarge).
_MESH = re.compile(r"\bV100\b")


# What is expected where the profile has no figure, and no machine is without: no profile excuses less.
_LINKED = "1 or more active NVLinks"
# No machine is wired with so few lanes: x8 is the least of all that were captured, and x4 leaves room.
_TOO_NARROW = ("x1", "x2", "x3")


_FAST = 1.5  # the next generation has twice the rate of one


class NvlinkCheck(PerGpuCheck):
    """What the checks of NVLink share: machines without it, and GPUs that do not tell while MIG is on."""

    def not_applicable(self, expected: Expectation) -> str:
        wanted = profile_of(expected).links.nvlinks
        return "this machine has no NVLink by design" if wanted and wanted.value == 0 else ""

    def _unreadable(self, gpu: Gpu, links: Missing, expected: Expectation) -> Finding:
        if gpu.mig_enabled is not True or links.reason is Reason.FAULT:
            return self.missing(gpu.label, "NVLink state", links)
        message = "NVLink cannot be read while MIG is on"
        if expected.mig:
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, f"{message}, as the stack asked")
        remedy = "Mend what gpu.mig says, and validate again."
        return self.finding(Verdict.UNKNOWN, gpu.label, message, measured=str(links), remedy=remedy)


class NvlinkActive(NvlinkCheck):
    """Every GPU has as many active NVLinks as the machine is built with."""

    id = "nvlink.links_active"
    title = "Active NVLinks"
    why = "One dead link slows every collective; with all of them down the GPUs still answer and the usual tests pass."
    source = "goldens of p3, p4d, p5; gpud 1085 and DCGM 198 (all links down, reported healthy)"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True

    def excusable(self, finding: Finding) -> bool:
        return super().excusable(finding) and finding.expected != _LINKED

    def _judged(self, gpus: tuple[Gpu, ...], expected: Expectation) -> Iterator[Finding]:
        """Without a number to judge by, linked modules are judged by each other: fewer than the others is a fault."""
        profile = profile_of(expected)
        if profile.links.nvlinks is not None or profile.gpu.count.value == 1:
            yield from super()._judged(gpus, expected)
            return
        modules = _modules(gpus)
        least = _least(modules)
        behind = [(gpu, active) for gpu, active in modules if active < least]
        if behind and not any(active for _, active in modules):
            of = f"any of {counted(len(modules), 'GPU')}"
            message = f"no NVLink is active on {of}, and such modules are linked in every machine of several"
            yield self.finding(Verdict.FAIL, "host", message, measured="0 active NVLinks", expected=_LINKED)
            behind = [(gpu, 0) for gpu in gpus]
        else:
            for gpu, active in behind:
                message = f"{counted(active, 'NVLink')} active, where others of its kind have {least} or more"
                measured = f"{active} active NVLinks"
                yield self.finding(Verdict.FAIL, gpu.label, message, measured=measured, expected=f"{least} or more")
        odd = {gpu.index for gpu, _ in behind}
        rest = tuple(gpu for gpu in gpus if gpu.index not in odd)
        yield from super()._judged(rest, expected) if rest else ()

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = profile_of(expected).links.nvlinks
        links = gpu.nvlinks
        if wanted is None:
            several = profile_of(expected).gpu.count.value > 1
            if several and isinstance(links, Missing) and _MODULE.search(str(gpu.name)) and gpu.mig_enabled is not True:
                return self.missing(gpu.label, "NVLink state", links, expected=_LINKED)
            return self.unspecified(gpu.label, "number of NVLinks", expected, _seen(gpu))
        if isinstance(links, Missing):
            return self._unreadable(gpu, links, expected)
        active = [link for link in links if link.active is True]
        unread = [link for link in links if isinstance(link.active, Missing)]
        if len(active) == wanted.value:
            return None
        if len(active) + len(unread) >= wanted.value and unread:
            return self.missing(gpu.label, f"state of {_named(unread)}", _first(unread), expected=str(wanted.value))
        return self._wrong(gpu, links, wanted, expected)

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:
        wanted = profile_of(expected).links.nvlinks
        return f"{wanted.value if wanted else 0} NVLinks active on each of {counted(len(gpus), 'GPU')}"

    def _wrong(self, gpu: Gpu, links: tuple[NvLink, ...], wanted: Expected[int], expected: Expectation) -> Finding:
        active = [link for link in links if link.active is True]
        down = [link for link in links if link.active is False]
        more = len(active) > wanted.value
        detail = f", {_named(down)} {'is' if len(down) == 1 else 'are'} down" if down and not more else ""
        if not links:
            detail = ", the driver lists no link"
        message = f"{len(active)} of {wanted.value} NVLinks active{detail}"
        subject = f"{gpu.label}/link{down[0].index}" if len(down) == 1 and not more else gpu.label
        # More links than the board has is no measurement: it keeps the gate shut, but accuses nobody.
        return self.finding(
            Verdict.UNKNOWN if more else Verdict.FAIL,
            subject,
            message,
            measured=f"{len(active)} active NVLinks",
            expected=f"{wanted.value} active NVLinks",
            source=expected.source_of(wanted.source),
        )


class PcieWidth(PerGpuCheck):
    """Every GPU's PCIe link has the width that the machine gives it. Width does not change with load."""

    id = "pcie.width"
    title = "PCIe link width"
    why = "A link that trained at fewer lanes halves every copy; x8 where the machine is wired so is no fault."
    source = "captures of g4dn, g6e, A10G; aws-k8s-tester PR 806 (x8 by design)"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE

    def excusable(self, finding: Finding) -> bool:
        return super().excusable(finding) and finding.measured not in _TOO_NARROW

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = profile_of(expected).links.pcie_width
        width = gpu.pcie.width
        if wanted is None and f"x{width}" in _TOO_NARROW:
            message = f"PCIe link is x{width}, which no machine is wired for"
            return self.finding(Verdict.FAIL, gpu.label, message, measured=f"x{width}", expected="x4 or more")
        if wanted is None:
            return self.unspecified(
                gpu.label, "PCIe width", expected, "" if isinstance(width, Missing) else f"x{width}"
            )
        if isinstance(width, Missing):
            return self.missing(gpu.label, "PCIe width", width, expected=f"x{wanted.value}")
        if width == wanted.value:
            return None
        return self.finding(
            # A wider link than the profile says harms nobody: the profile is to be corrected.
            Verdict.FAIL if width < wanted.value else Verdict.WARN,
            gpu.label,
            f"PCIe link is x{width}",
            measured=f"x{width}",
            expected=f"x{wanted.value}",
            source=expected.source_of(wanted.source),
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"x{gpus[0].pcie.width} on each of {counted(len(gpus), 'GPU')}"


class NvlinkRate(NvlinkCheck):
    """Every active NVLink runs at the rate of its generation."""

    id = "nvlink.rate"
    title = "NVLink rate"
    why = "A link that came up slower is counted as active."
    source = "rates printed by nvidia-smi nvlink -s on healthy boards; OCI passive check"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE

    def not_applicable(self, expected: Expectation) -> str:
        if profile_of(expected).links.nvlinks is None:
            return "no source tells whether this machine has NVLinks to measure"
        return super().not_applicable(expected)

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = profile_of(expected).links.nvlink_rate_gbps
        if wanted is None:
            rates = sorted({_rate(link) for link in gpu.nvlinks}) if not isinstance(gpu.nvlinks, Missing) else []
            seen = ", ".join(f"{rate:g} GB/s" for rate in rates if math.isfinite(rate))
            return self.unspecified(gpu.label, "NVLink rate", expected, seen)
        if isinstance(gpu.nvlinks, Missing):
            return self._unreadable(gpu, gpu.nvlinks, expected)
        active = [link for link in gpu.nvlinks if link.active is True]
        if all(not_there(link.rate_gbps) for link in active):
            return self.finding(Verdict.WARN, gpu.label, "the driver prints no rate for any active NVLink")
        fast = [link for link in active if _FAST * wanted.value < _rate(link) < math.inf]
        if fast:  # more than the link can do is no measurement: it keeps the gate shut, but accuses nobody
            message = f"{_named(fast)} at {_rate(fast[0])} GB/s, which its generation cannot do"
            return self.finding(Verdict.UNKNOWN, gpu.label, message, expected=f"{wanted.value} GB/s")
        slow = [link for link in active if _rate(link) < 0.98 * wanted.value]
        if not slow:
            unread = next((link.rate_gbps for link in active if isinstance(link.rate_gbps, Missing)), None)
            return None if unread is None else self.missing(gpu.label, "rate of an active NVLink", unread)
        return self.finding(
            Verdict.FAIL,
            gpu.label,
            f"{_named(slow)} at {_rate(slow[0])} GB/s",
            measured=f"{_rate(slow[0])} GB/s",
            expected=f"{wanted.value} GB/s",
            source=expected.source_of(wanted.source),
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:
        wanted = profile_of(expected).links.nvlink_rate_gbps
        return f"{wanted.value if wanted else '?'} GB/s on every active link of {counted(len(gpus), 'GPU')}"


def _modules(gpus: tuple[Gpu, ...]) -> list[tuple[Gpu, int]]:
    """The linked modules, each with its active links; without those in MIG mode and those that do not tell."""
    told = [gpu for gpu in gpus if _MODULE.search(str(gpu.name)) and gpu.mig_enabled is not True]
    return [(gpu, active) for gpu in told if (active := _active(gpu)) is not None]


def _least(modules: list[tuple[Gpu, int]]) -> int:
    """The links that every one of the modules must have: as many as another has; in a mesh one."""
    return max((1 if _MESH.search(str(gpu.name)) else max(1, active) for gpu, active in modules), default=0)


def _active(gpu: Gpu) -> int | None:
    """How many links are active; 0 where the driver says that the GPU has none, None where it does not tell."""
    if isinstance(gpu.nvlinks, Missing):
        return 0 if gpu.nvlinks.reason is Reason.NOT_APPLICABLE else None
    unread = any(isinstance(link.active, Missing) for link in gpu.nvlinks)
    return None if unread else sum(link.active is True for link in gpu.nvlinks)


def _seen(gpu: Gpu) -> str:
    if isinstance(gpu.nvlinks, Missing):
        return "none" if not_there(gpu.nvlinks) else ""
    return f"{sum(link.active is True for link in gpu.nvlinks)} active of {len(gpu.nvlinks)}"


def _rate(link: NvLink) -> float:
    """GB/s; without end where it could not be read, so that only a rate that was read is slow."""
    return math.inf if isinstance(link.rate_gbps, Missing) else link.rate_gbps


def _named(links: list[NvLink]) -> str:
    indices = ranges(link.index for link in links)
    return f"link {indices}" if len(links) == 1 else f"links {indices}"


def _first(links: list[NvLink]) -> Missing:
    return next(link.active for link in links if isinstance(link.active, Missing))
