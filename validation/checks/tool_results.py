"""What the results of burn-in and bandwidth tools mean, taken alone: ``kiln explain`` judges these, no gate does.

A tool's own closing word is not believed where its numbers say otherwise: gpu-burn ends with status 0 whatever it found
and prints OK after doing nothing; a checker has printed IDEAL beside a bandwidth above the board's physical peak.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.gpu_burn import GpuBurn
from validation.facts.gpu_fryer import GpuFryer
from validation.facts.nccl_tests import NcclResult
from validation.facts.nvbandwidth import NvBandwidth
from validation.facts.oci import OciResult
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_PEERS = 0.10  # gpu-fryer and superbench: a GPU more than 10 % below the best of its machine is slow
_PCIE_PEAK_GBPS = (
    63.0  # PCIe Gen5 x16, one direction: 32 GT/s x 16 / 8 x 128/130; a Gen6 host does not exist on these boards
)


@dataclass(frozen=True)
class Peak:
    """The physical limits of a board by the product name it prints: GB/s of memory, dense FP16 TFLOPS, NVLink GB/s."""

    name: str
    memory_gbps: float
    fp16_tflops: float
    nvlink_gbps: float


# Data-sheet peaks, collected 2026-08; NVLink: links times the rate one of them prints, one direction.
PEAKS = (
    Peak("A100-SXM4-40GB", 1555, 312, 12 * 25),
    Peak("A100-SXM4-80GB", 2039, 312, 12 * 25),
    Peak("A800-SXM4-80GB", 2039, 312, 8 * 25),
    Peak("H100 80GB HBM3", 3350, 989, 18 * 26.562),
    Peak("H800", 3350, 989, 8 * 26.562),
    Peak("H200", 4800, 989, 18 * 26.562),
    Peak("B200", 8000, 2250, 18 * 53.125),
    Peak("V100-SXM2-16GB", 900, 125, 6 * 25.781),
    Peak("V100-SXM2-32GB", 900, 125, 6 * 25.781),
    Peak("L40S", 864, 362, 0),
    Peak("L4", 300, 121, 0),
    Peak("T4", 320, 65, 0),
)


def peak_of(name: str) -> Peak | None:
    """The limits of exactly this board: NVIDIA L4 is neither an L40S nor the vGPU profile L4-3Q."""
    bare = name.removeprefix("NVIDIA ").removeprefix("Tesla ")
    return next((peak for peak in PEAKS if peak.name == bare), None)


class GpuBurnResult(Check):
    """gpu-burn came to its end, did work on every GPU, and found no wrong result."""

    id = "tool.gpu_burn"
    title = "gpu-burn result"
    why = "gpu-burn ends with status 0 when a GPU is faulty, and prints OK after doing no work at all."
    source = "wilicc/gpu-burn issues 12, 14, 69, 123, 124"
    remedy = "Replace the host; run again first if the machine is your own."
    fault_class = FaultClass.REPLACE_NOW
    requires = (GpuBurn,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        burn = facts.need(GpuBurn)
        bad = False
        for gpu in burn.gpus:
            trouble = _burn_trouble(gpu.died, gpu.verdict, gpu.errors, gpu.iterations, gpu.gflops)
            if trouble:
                bad = True
                yield self.finding(Verdict.FAIL, f"GPU{gpu.index}", trouble, expected="work done, no wrong result")
        if burn.aborted:
            bad = True
            yield self.finding(Verdict.FAIL, "host", f"no process was left at {burn.percent:g} %: it aborted")
        if bad:
            return
        if not burn.finished:
            message = f"the run did not end: {burn.percent:g} % done, no list of tested GPUs"
            yield self.finding(
                Verdict.UNKNOWN, "host", message, remedy="Let it run to its end, and keep all its output."
            )
            return
        slowest, best = min(burn.gpus, key=_rate), max(burn.gpus, key=_rate)
        if slowest.gflops < best.gflops * (1 - _PEERS):
            message = f"{slowest.gflops:.0f} Gflop/s, the best GPU has {best.gflops:.0f}"
            yield self.finding(Verdict.WARN, f"GPU{slowest.index}", message, expected="within 10 % of the best")
        else:
            message = (
                f"{counted(len(burn.gpus), 'GPU')} OK, {slowest.gflops:.0f} to {best.gflops:.0f} Gflop/s, no error"
            )
            yield self.finding(Verdict.PASS, "host", message)


def _rate(gpu: object) -> float:
    return float(getattr(gpu, "gflops", 0.0))


def _burn_trouble(died: bool, verdict: str, errors: int, iterations: int, gflops: float) -> str:
    """What is wrong with one GPU; empty where nothing is."""
    if died:
        return "its process died"
    if verdict == "FAULTY":
        return f"FAULTY: {errors} wrong results at the last count" if errors else "FAULTY"
    if errors:
        return f"{errors} wrong results (a negative number is a counter that ran over)"
    if iterations <= 0 or gflops <= 0:
        return f"zero work done ({iterations} iterations, {gflops:g} Gflop/s): OK means nothing"
    return ""


class GpuFryerResult(Check):
    """gpu-fryer measured work on every GPU, and none is slower than its peers."""

    id = "tool.gpu_fryer"
    title = "gpu-fryer result"
    why = 'gpu-fryer has printed "0 Gflops ... All GPUs seem healthy".'
    source = "huggingface/gpu-fryer issue 10"
    remedy = "Run again; if it repeats, replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (GpuFryer,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        fryer = facts.need(GpuFryer)
        best = max(gpu.gflops for gpu in fryer.gpus)
        good = True
        for gpu in fryer.gpus:
            if gpu.gflops <= 0:
                message, verdict = "zero work done: healthy means nothing", Verdict.FAIL
            elif gpu.gflops < best * (1 - _PEERS):
                message, verdict = f"{gpu.gflops:.0f} Gflop/s, the best GPU has {best:.0f}", Verdict.FAIL
            elif gpu.throttled:
                message, verdict = "was throttled during the run", Verdict.WARN
            else:
                continue
            good = False
            yield self.finding(verdict, f"GPU{gpu.index}", message, expected="work done, within 10 % of the best")
        if good and fryer.said_healthy:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(fryer.gpus), 'GPU')} within 10 % of each other")
        elif good:
            yield self.finding(Verdict.FAIL, "host", "gpu-fryer does not call all GPUs healthy")


class NcclTestResult(Check):
    """The collective's results were right, and its bandwidth is physically possible."""

    id = "tool.nccl"
    title = "nccl-tests result"
    why = '"Avg bus bandwidth" is over all sizes, 68 on a node whose peak is 235: held to a floor it fails good nodes.'
    source = "NVIDIA/nccl-tests issues 149, 293; superbenchmark run on 8 A100"
    remedy = "Run again with -c 1, so that results are checked."
    fault_class = FaultClass.REPLACE_NOW
    requires = (NcclResult,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        result = facts.need(NcclResult)
        peak = f"peak {result.peak_gbps:g} GB/s at {result.peak.size_bytes} bytes (the average {result.average_gbps:g} "
        peak += "is over all sizes, and no figure to judge by)"
        if result.failed or result.out_of_bounds:
            remedy = "Replace the host: a collective that gives wrong numbers is a fault of hardware."
            message = f"{counted(result.out_of_bounds, 'value')} out of bounds: wrong results"
            yield self.finding(Verdict.FAIL, "host", message, measured=message, expected="0", remedy=remedy)
            return
        limit = _nvlink_limit(result)
        if result.peak_gbps <= 0:
            yield self.finding(Verdict.UNKNOWN, "host", "no bandwidth was measured: one rank, or no size that counts")
        elif limit and result.peak_gbps > limit:
            message = f"{peak}: more than the board's links carry; the measurement is not valid"
            yield self.finding(
                Verdict.UNKNOWN, "host", message, measured=f"{result.peak_gbps:g}", expected=f"<= {limit:g}"
            )
        elif not result.checked:
            yield self.finding(Verdict.WARN, "host", f"{peak}; results were not checked (validation off)")
        else:
            yield self.finding(Verdict.PASS, "host", f"{peak}; all results right")


def _nvlink_limit(result: NcclResult) -> float:
    """GB/s that no collective in one host can pass: reduction in the switch reaches the links' sum, so 15 % more."""
    hosts, boards = {host for host, _ in result.ranks}, {board for _, board in result.ranks}
    peak = peak_of(next(iter(boards))) if len(hosts) == 1 and len(boards) == 1 else None
    return peak.nvlink_gbps * 1.15 if peak else 0.0


class NvBandwidthResult(Check):
    """Every test that ran measured something that the link can carry."""

    id = "tool.nvbandwidth"
    title = "nvbandwidth result"
    why = "A waived test is neither a pass nor a failure; a zero or an impossible number is no measurement."
    source = "superbenchmark nvbandwidth log (GH200, v0.6): C2C carries more than any PCIe link"
    remedy = "Run again; compare with the profile's floor (kiln validate --burn-in)."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (NvBandwidth,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        run = facts.need(NvBandwidth)
        for error in run.errors:
            yield self.finding(Verdict.FAIL, "host", f"a test ended in an error: {error}")
        if not run.tests and not run.errors:
            yield self.finding(Verdict.UNKNOWN, "host", f"nothing was measured: {counted(run.waived, 'test')} waived")
            return
        grace = any("GH200" in device or "GB200" in device or "GB300" in device for device in run.devices)
        for test in run.tests:
            values = [value for _, _, value in test.values]
            if not values or min(values) <= 0:
                yield self.finding(Verdict.UNKNOWN, test.name, "measured nothing, or zero")
            elif _over_pcie(test.name) and not grace and max(values) > _PCIE_PEAK_GBPS:
                message = f"{max(values):g} GB/s is more than PCIe Gen5 x16 carries; the measurement is not valid"
                yield self.finding(Verdict.UNKNOWN, test.name, message, expected=f"<= {_PCIE_PEAK_GBPS:g} GB/s")
        ran = f"{counted(len(run.tests), 'test')} measured, {run.waived} waived (neither a pass nor a failure)"
        yield self.finding(Verdict.NOT_APPLICABLE, "host", f"{ran}; without a floor no figure is good or bad")


def _over_pcie(name: str) -> bool:
    one_way = name.startswith(("host_to_device", "device_to_host")) and "bidirectional" not in name
    return one_way and "latency" not in name


class OciHealthResult(Check):
    """The numbers of Oracle's active check are physically possible, whatever its own word on them is."""

    id = "tool.oci"
    title = "OCI active health check"
    why = "Its published sample calls 4276 GB/s on an H100 IDEAL; the memory's peak is 3350."
    source = "oracle-quickstart/oci-gpu-scanner sample of 2025-07; data-sheet peaks"
    remedy = "Do not use this measurement; run one that is bounded, such as kiln validate --burn-in standard."
    fault_class = FaultClass.OPERATOR
    requires = (OciResult,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        result = facts.need(OciResult)
        peak = peak_of(result.gpu_name)
        if result.said and result.said != "pass":
            yield self.finding(Verdict.FAIL, "host", f"the tool's own result is {result.said}")
        if peak is None:
            yield self.finding(Verdict.UNKNOWN, "host", f"no physical limit is known here for {result.gpu_name!r}")
            return
        limits = {"GB/s": peak.memory_gbps, "TFLOPS": peak.fp16_tflops}
        impossible = [item for item in result.measurements if item.value > limits[item.unit]]
        nothing = [item for item in result.measurements if item.value <= 0]
        for test in dict.fromkeys(item.test for item in impossible):
            worst = max((item for item in impossible if item.test == test), key=lambda item: item.value)
            word = f", which the tool calls {worst.word}" if worst.word else ""
            message = f"{worst.value:.0f} {worst.unit}{word}: more than the board can do; the measurement is not valid"
            limit = f"<= {limits[worst.unit]:g} {worst.unit}"
            yield self.finding(Verdict.UNKNOWN, test, message, measured=f"{worst.value:.0f}", expected=limit)
        if nothing:
            tests = listed(dict.fromkeys(item.test for item in nothing))
            yield self.finding(Verdict.FAIL, "host", f"zero work done: {tests}", fault_class=FaultClass.REPLACE_NOW)
        if not impossible and not nothing:
            message = f"{counted(len(result.measurements), 'measurement')} within what the board can do"
            yield self.finding(Verdict.PASS, "host", message)
