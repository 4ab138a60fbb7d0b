"""Does every GPU's PCIe link come up to its full speed under load?"""

from __future__ import annotations

from collections.abc import Iterable

from validation.checks.burnin import EVIDENCE, BurnInCheck, Seen
from validation.checks.wording import counted, equal_slots
from validation.facts.burnin import GpuBurnIn, Samples
from validation.verdict import FaultClass, Finding, Verdict


class BurnInPcie(BurnInCheck):
    """Under load no GPU's PCIe link is slower or narrower than those of its peers, or narrower than the machine's.

    The generation has no floor of its own: which one a machine gives its GPUs, only its peers say for sure. A link
    that is slow on all of them is judged by burnin.bandwidth.
    """

    id = "burnin.pcie"
    title = "PCIe links under load"
    why = "An idle link saves power at generation 1, so whether it still comes up to its speed shows under load only."
    source = "DCGM 4.6.0 takes generation 3 for any board, so one of generation 5 stuck at 3 passes there"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    needs_profile = False
    optional = True

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:
        link = _best(gpu.samples)
        if gpu.gemm is None or gpu.gemm.iterations == 0:
            yield self.not_measured(gpu)
            return
        if link is None:
            why = seen.result.sampling_error or "; ".join(gpu.samples.errors if gpu.samples else ()) or "no sample"
            yield self.finding(Verdict.UNKNOWN, gpu.label, f"not seen under load: {why}", evidence=EVIDENCE)
            return
        fast, wide = _peers(seen)
        profile = seen.expected.profile
        known = profile.links.pcie_width if profile else None
        width = known.value if known else wide
        if link[0] < fast or link[1] < width:
            measured, wanted = f"generation {link[0]} x{link[1]}", f"generation {fast} x{width}"
            message = f"under load the link is {measured}, that of its peers {wanted}"
            # In a machine of one's own the slots may differ: a warning there.
            narrow = known is not None and link[1] < width
            verdict = Verdict.FAIL if narrow or equal_slots(seen.expected) else Verdict.WARN
            yield self.finding(verdict, gpu.label, message, measured=measured, expected=wanted, evidence=EVIDENCE)

    def good(self, seen: Seen) -> str:
        fast, wide = _peers(seen)
        return f"generation {fast} x{wide} under load on each of {counted(len(seen.result.gpus), 'GPU')}"


def _best(samples: Samples | None) -> tuple[int, int] | None:
    """The fastest generation and the widest link that were seen of a GPU; None where none was."""
    if samples is None or not samples.pcie_generation or not samples.pcie_width:
        return None
    return max(samples.pcie_generation), max(samples.pcie_width)


def _peers(seen: Seen) -> tuple[int, int]:
    """The same over all GPUs."""
    links = [link for gpu in seen.result.gpus if (link := _best(gpu.samples)) is not None]
    return max(generation for generation, _ in links), max(width for _, width in links)
