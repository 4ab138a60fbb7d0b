"""What the results of nccl-tests and nvbandwidth mean, taken alone: ``kiln explain`` judges these, no gate does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.peaks import ANY_MEMORY_GBPS, ANY_NVLINK_GBPS, host_link_gbps, peak_of_all
from validation.checks.wording import counted, listed
from validation.facts.missing import Missing
from validation.facts.nccl_tests import NcclResult
from validation.facts.nvbandwidth import BandwidthTest, NvBandwidth
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_ROUNDED = 1.02  # a rate that is printed is rounded, and measured on a clock of its own
_NO_LIMIT = 0.0


class NcclTestResult(Check):
    """The collective's results were right, and its bandwidth is physically possible."""

    id = "tool.nccl"
    title = "nccl-tests result"
    why = '"Avg bus bandwidth" is over all sizes, 68 on a node whose peak is 235: held to a floor it fails good nodes.'
    source = "NVIDIA/nccl-tests issues 107, 149, 293; superbenchmark run on 8 A100"
    remedy = "Run again with -c 1, so that results are checked."
    fault_class = FaultClass.REPLACE_NOW
    requires = (NcclResult,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        result = facts.need(NcclResult)
        wrong = _wrong(result)
        if result.failed or wrong:
            remedy = "Replace the host: a collective that gives wrong numbers is a fault of hardware."
            message = f"{counted(wrong, 'value')} out of bounds: wrong results"
            yield self.finding(Verdict.FAIL, "host", message, measured=message, expected="0", remedy=remedy)
        elif result.failures:
            remedy = "Look at the lines of NCCL above it (NCCL_DEBUG=WARN), mend what they name, and run again."
            message = f"the run broke off: {listed(result.failures, limit=2)}"
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy)
        elif result.apart > 1:
            remedy = "Build nccl-tests with MPI=1, or start one process with -g and all GPUs."
            message = f"{result.apart} processes ran apart, each alone: no link was used"
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy)
        else:
            yield from self._measured(result)

    def _measured(self, result: NcclResult) -> Iterator[Finding]:
        peak = f"peak {result.peak_gbps:g} GB/s at {result.peak.size_bytes} bytes (the average {result.average_gbps:g} "
        peak += "is over all sizes, and no figure to judge by)"
        limit = _collective_limit(result)
        if not result.peak_gbps > 0:
            yield self.finding(Verdict.UNKNOWN, "host", "no bandwidth was measured: one rank, or no size that counts")
        elif result.peak_gbps > limit:
            message = f"{peak}: more than the board's links carry; the measurement is not valid"
            measured, most = f"{result.peak_gbps:g}", f"<= {limit:g}"
            yield self.finding(Verdict.UNKNOWN, "host", message, measured=measured, expected=most)
        elif result.below_minimum:
            remedy = (
                "Compare each GPU and NIC with its peers; if the minimum is right for this machine, replace the host."
            )
            message = f"{peak}: under the minimum that was asked for (NCCL_TESTS_MIN_BW)"
            yield self.finding(Verdict.FAIL, "host", message, measured=f"{result.average_gbps:g}", remedy=remedy)
        elif not result.checked:
            yield self.finding(Verdict.WARN, "host", f"{peak}; results were not checked (validation off)")
        else:
            yield self.finding(Verdict.PASS, "host", f"{peak}; all results right")


def _wrong(result: NcclResult) -> int:
    """Values that the closing line or a row calls wrong."""
    rows = sum(size.wrong for size in result.sizes if not isinstance(size.wrong, Missing))
    return max(result.out_of_bounds, rows)


def _collective_limit(result: NcclResult) -> float:
    """GB/s that no collective can pass: in one host by its boards' links, else by the fastest links there are."""
    hosts = {host for host, _ in result.ranks}
    peak = peak_of_all(board for _, board in result.ranks) if len(hosts) == 1 else None
    links = peak.nvlink_gbps if peak and peak.nvlink_gbps else ANY_NVLINK_GBPS
    return links * max(_ROUNDED, _in_switch(len(result.ranks)))


def _in_switch(ranks: int) -> float:
    """How much more than a link carries nccl-tests reckons for n GPUs whose switch adds for them (NVLS), at most.

    Each GPU sends (n + 1) / n of its data once, and the tool counts 2 (n - 1) / n of it: 1.56 for 8, never 2.
    """
    return 2 * (ranks - 1) / (ranks + 1) if ranks else 2.0


class NvBandwidthResult(Check):
    """Every test that ran measured something that the link can carry, and copied data arrived unchanged."""

    id = "tool.nvbandwidth"
    title = "nvbandwidth result"
    why = "A waived test is neither a pass nor a failure; a zero or an impossible number is no measurement."
    source = "superbenchmark nvbandwidth log (GH200, v0.6): C2C carries more than any PCIe link; nvbandwidth issue 34"
    remedy = "Run again; compare with the profile's floor (kiln validate --burn-in)."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (NvBandwidth,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        run = facts.need(NvBandwidth)
        for sentence in run.corrupt:
            remedy = "Run again; if it repeats, replace the host: a copy that changes data is a fault of hardware."
            message = f"copied data came back wrong: {sentence}"
            yield self.finding(Verdict.FAIL, "host", message, remedy=remedy, fault_class=FaultClass.REPLACE_NOW)
        for error in run.errors:
            yield self._error(error)
        if not run.tests:
            if not run.errors and not run.corrupt:
                message = f"nothing was measured: {counted(run.waived, 'test')} waived"
                yield self.finding(Verdict.UNKNOWN, "host", message)
            return
        for test in run.tests:
            yield from self._measured(test, run)
        ran = f"{counted(len(run.tests), 'test')} measured, {run.waived} waived (neither a pass nor a failure)"
        yield self.finding(Verdict.NOT_APPLICABLE, "host", f"{ran}; without a floor no figure is good or bad")

    def _error(self, error: str) -> Finding:
        """A fault where CUDA's word is one of the GPU's or its links'; else the test could not be made."""
        if _HARDWARE.search(error):
            remedy = "Look at the kernel log for the GPU; reboot once, and if it repeats, replace the host."
            return self.finding(Verdict.FAIL, "host", f"a test ended in an error: {error}", remedy=remedy)
        remedy = "Mend what the error names (an argument, memory in use, a driver that lacks it), and run again."
        return self.finding(Verdict.UNKNOWN, "host", f"a test ended in an error: {error}", remedy=remedy)

    def _measured(self, test: BandwidthTest, run: NvBandwidth) -> Iterator[Finding]:
        values = [value for _, _, value in test.values]
        limit = _copy_limit(test, run.devices)
        if not values or min(values) <= 0:
            yield self.finding(Verdict.UNKNOWN, test.name, "measured nothing, or zero")
        elif limit and max(values) > limit:
            message = f"{max(values):g} GB/s is more than the link carries; the measurement is not valid"
            yield self.finding(Verdict.UNKNOWN, test.name, message, expected=f"<= {limit:g} GB/s")


# CUDA's names for what a broken GPU, memory or link makes of a call (cuda.h of CUDA 13).
_HARDWARE = re.compile(
    r"ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|LAUNCH_FAILED|ILLEGAL_INSTRUCTION|HARDWARE_STACK_ERROR|CONTAINED|"
    r"GPU is lost|fallen off the bus|uncorrectable",
    re.I,
)


def _copy_limit(test: BandwidthTest, devices: tuple[str, ...]) -> float:
    """GB/s that no cell of this test can pass; 0 where none is known, as for a latency."""
    if test.unit == "ns" or "latency" in test.name:
        return _NO_LIMIT
    peak = peak_of_all(devices)
    both = 2 if "bidirectional" in test.name and not re.search(r"_(?:read|write)[12]$", test.name) else 1
    if "host" in test.name:
        return host_link_gbps(devices) * both * _ROUNDED
    if "local" in test.name:
        return (peak.memory_gbps if peak else ANY_MEMORY_GBPS) * _ROUNDED
    links = (peak.nvlink_gbps or host_link_gbps(devices)) if peak else ANY_NVLINK_GBPS
    return links * both * _ROUNDED
