"""What the results of burn-in tools mean, taken alone: ``kiln explain`` judges these, no gate does.

A tool's own closing word is not believed where its numbers say otherwise: gpu-burn ends with status 0 whatever it found
and prints OK after doing nothing; a checker has printed IDEAL beside a bandwidth above the board's physical peak.
"""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.peaks import ANY_FP16_TFLOPS, CLOCKED, peak_of
from validation.checks.wording import counted, listed
from validation.facts.gpu_burn import BurnGpu, GpuBurn
from validation.facts.gpu_fryer import GpuFryer
from validation.facts.oci import OciResult
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_PEERS = 0.10  # gpu-fryer and superbench: a GPU more than 10 % below the best of its machine is slow
_HALF = 0.5  # of the best's iterations: the GPU stood still for a part of the run, whatever its last rate was
_FP8, _UNTOLD = 2, 4  # times dense FP16: dense FP8; FP4, the most there is, where no precision is told
_NO_WORK = "Run again for ten minutes; if it still does no work, reboot once, then replace the host."


class GpuBurnResult(Check):
    """gpu-burn came to its end, did work on every GPU that the board can do, and found no wrong result."""

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
        bad = [finding for gpu in burn.gpus if (finding := self._trouble(gpu)) is not None]
        if burn.aborted:
            bad.append(self.finding(Verdict.FAIL, "host", f"no process was left at {burn.percent:g} %: it aborted"))
        if bad:
            yield from bad
        elif not burn.gpus:
            remedy = "Free the GPUs' memory, mend what gpu-burn names, and run again."
            yield self.finding(
                Verdict.UNKNOWN, "host", f"did not start: {listed(burn.troubles, limit=2)}", remedy=remedy
            )
        elif not burn.finished:
            message = f"the run did not end: {burn.percent:g} % done, no list of tested GPUs"
            remedy = "Let it run to its end, and keep all its output."
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy)
        else:
            yield from self._speed(burn.gpus)

    def _trouble(self, gpu: BurnGpu) -> Finding | None:
        """What is wrong with one GPU, whatever its peers did."""
        trouble, subject = _wrong(gpu), f"GPU{gpu.index}"
        if trouble:
            return self.finding(Verdict.FAIL, subject, trouble, expected="work done, no wrong result")
        if gpu.verdict and (gpu.iterations <= 0 or gpu.gflops <= 0):
            message = f"zero work done ({gpu.iterations} iterations, {gpu.gflops:g} Gflop/s): OK means nothing"
            reboot = FaultClass.REBOOT_ONCE
            return self.finding(
                Verdict.FAIL, subject, message, expected="work done", remedy=_NO_WORK, fault_class=reboot
            )
        return None

    def _speed(self, gpus: tuple[BurnGpu, ...]) -> Iterable[Finding]:
        good = True
        for gpu in gpus:
            peers = [peer for peer in gpus if peer.board == gpu.board]
            best, most = max(peer.gflops for peer in peers), max(peer.iterations for peer in peers)
            limit = _rate_limit(gpu.board)
            if gpu.gflops > limit:
                yield _impossible(self, gpu.index, gpu.gflops, limit)
            elif gpu.gflops < best * (1 - _PEERS):
                message = f"{gpu.gflops:.0f} Gflop/s, the best GPU has {best:.0f}"
                yield self.finding(Verdict.WARN, f"GPU{gpu.index}", message, expected="within 10 % of the best")
            elif gpu.iterations < most * _HALF:
                message = f"{gpu.iterations} iterations, the best GPU did {most}"
                yield self.finding(Verdict.WARN, f"GPU{gpu.index}", message, expected="half of the best's or more")
            else:
                continue
            good = False
        if good:
            slowest, best = min(gpu.gflops for gpu in gpus), max(gpu.gflops for gpu in gpus)
            message = f"{counted(len(gpus), 'GPU')} OK, {slowest:.0f} to {best:.0f} Gflop/s, no error"
            yield self.finding(Verdict.PASS, "host", message)


def _wrong(gpu: BurnGpu) -> str:
    """What gpu-burn found wrong with one GPU; empty where nothing."""
    if gpu.died:
        return "its process died"
    if gpu.verdict == "FAULTY":
        return f"FAULTY: {gpu.errors} wrong results at the last count" if gpu.errors else "FAULTY"
    return f"{gpu.errors} wrong results (a negative number is a counter that ran over)" if gpu.errors else ""


def _rate_limit(name: str, factor: int = 1) -> float:
    """Gflop/s that a board of this name cannot pass in FP16, times ``factor``; of no board, where it is not known."""
    peak = peak_of(name)
    return (peak.fp16_tflops if peak else ANY_FP16_TFLOPS) * 1000 * factor * CLOCKED


def _impossible(check: Check, index: int, gflops: float, limit: float) -> Finding:
    message = f"{gflops:.0f} Gflop/s is more than the board can do; the measurement is not valid"
    measured, most = f"{gflops:.0f}", f"<= {limit:.0f}"
    return check.finding(Verdict.UNKNOWN, f"GPU{index}", message, measured=measured, expected=most)


class GpuFryerResult(Check):
    """gpu-fryer measured work on every GPU that the board can do, and none is slower than its peers."""

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
        limits = (_FP8 if "FP8" in fryer.precision else 1) if fryer.precision else _UNTOLD
        good = True
        for gpu in fryer.gpus:
            best = max(peer.gflops for peer in fryer.gpus if peer.board == gpu.board)
            limit = _rate_limit(gpu.board, limits)
            subject = f"GPU{gpu.index}"
            if gpu.gflops <= 0:
                message, reboot = "zero work done: healthy means nothing", FaultClass.REBOOT_ONCE
                yield self.finding(
                    Verdict.FAIL, subject, message, expected="work done", remedy=_NO_WORK, fault_class=reboot
                )
            elif gpu.gflops > limit:
                yield _impossible(self, gpu.index, gpu.gflops, limit)
            elif gpu.gflops < best * (1 - _PEERS):
                message = f"{gpu.gflops:.0f} Gflop/s, the best GPU has {best:.0f}"
                yield self.finding(Verdict.FAIL, subject, message, expected="within 10 % of the best")
            elif gpu.throttled:
                yield self.finding(Verdict.WARN, subject, "was throttled during the run", expected="not throttled")
            else:
                continue
            good = False
        if good and fryer.said_healthy:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(fryer.gpus), 'GPU')} within 10 % of each other")
        elif good:
            yield self.finding(Verdict.FAIL, "host", "gpu-fryer does not call all GPUs healthy")


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
        limits = {"GB/s": peak.memory_gbps, "TFLOPS": peak.fp16_tflops * CLOCKED}
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
