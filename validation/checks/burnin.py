"""Does the host survive its burn-in: did every GPU do its work, and is every result right?

What the figures rest on: validation/probe/burnin.py and burnload.py. A host that was not asked to burn in is told so:
these checks then do not apply. Asked for and without a result, they are UNKNOWN. Speed: burnin_speed.py.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.burnin_errors import said_of
from validation.checks.wording import counted
from validation.facts.burnin import BurnInResult, GemmResult, GpuBurnIn
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

# CRC-32 of the column sums of A B by matrix order, computed without any GPU: every sum is an exact integer, so there is
# one right answer (tests/unit/validation/checks/test_burnin.py computes it again).
RIGHT_CHECKSUMS = {8192: "e1e6e8b3", 4096: "ddc0e48d"}

EVIDENCE = "burn-in"


@dataclass(frozen=True)
class Seen:
    """A burn-in that ran, and what it is judged by."""

    result: BurnInResult
    expected: Expectation


class BurnInCheck(Check):
    """What the checks of a burn-in share: whether there is something to judge, and one PASS for all GPUs."""

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if expected.burn_in == "none":
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "burn-in not asked for")
            return
        result = facts.need(BurnInResult)
        if result.outcome != "ran":
            yield self.nothing_ran(result)
        else:
            yield from self.judge(Seen(result, expected))

    def nothing_ran(self, result: BurnInResult) -> Finding:
        """The finding where no GPU was tried."""
        why = said_of(result.outcome, result.error).message
        return self.finding(Verdict.UNKNOWN, "host", f"nothing was measured: {why}", evidence=EVIDENCE)

    def judge(self, seen: Seen) -> Iterable[Finding]:
        trouble = [finding for gpu in seen.result.gpus for finding in self.look(gpu, seen)]
        yield from trouble
        if not trouble:
            yield self.finding(Verdict.PASS, "host", self.good(seen), evidence=EVIDENCE)

    @abc.abstractmethod
    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:
        """The findings about a GPU that is not good; none where it is."""

    @abc.abstractmethod
    def good(self, seen: Seen) -> str:
        """What was seen on all GPUs, for the PASS."""

    def not_measured(self, gpu: GpuBurnIn) -> Finding:
        """UNKNOWN, for a check that needs what a fault kept from being measured; the fault has its own finding."""
        why = said_of("ran", gpu.error).message if gpu.error else gpu.no_cublas or "no work done"
        return self.finding(Verdict.UNKNOWN, gpu.label, f"not measured: {why}", evidence=EVIDENCE)


class BurnInGemm(BurnInCheck):
    """Every GPU did the work it was given, and every result of it is right."""

    id = "burnin.gemm"
    title = "Results of matrix products under load"
    why = "A GPU that computes wrong answers passes every inventory check and ruins what it trains, silently."
    source = "gpu-burn 12, 123, 124 and DCGM 284: no work done or wrong results, reported as passed"
    remedy = "Replace the host."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    needs_profile = False

    def nothing_ran(self, result: BurnInResult) -> Finding:
        said = said_of(result.outcome, result.error)
        return self.finding(
            said.verdict,
            "host",
            said.message,
            fault_class=said.fault_class,
            remedy=said.remedy,
            measured=result.error.name if result.error else result.outcome,
            evidence=EVIDENCE,
        )

    def judge(self, seen: Seen) -> Iterable[Finding]:
        yield from super().judge(seen)
        tried = len(seen.result.gpus)
        wanted = seen.expected.profile.gpu.count.value if seen.expected.profile else tried
        if tried != wanted:
            verb = "was" if tried == 1 else "were"
            message = f"{counted(tried, 'GPU')} {verb} burned in; {seen.expected.instance_type} has {wanted}"
            if seen.expected.mig:
                message += "; with MIG on, CUDA shows a process one instance: burn in before MIG is turned on"
            yield self.finding(
                Verdict.UNKNOWN,
                "host",
                message,
                measured=counted(tried, "GPU"),
                expected=counted(wanted, "GPU"),
                remedy="See gpu.count and gpu.lost for the ones that are missing; then burn in again.",
                evidence=EVIDENCE,
            )

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:  # noqa: ARG002 - needs the GPU alone
        if gpu.gemm is not None:
            yield from self._results(gpu, gpu.gemm)
        if gpu.error is not None:
            said = said_of("ran", gpu.error)
            yield self.finding(
                said.verdict,
                gpu.label,
                said.message,
                fault_class=said.fault_class,
                remedy=said.remedy,
                measured=gpu.error.name,
                evidence=EVIDENCE,
            )
        elif gpu.gemm is None:
            remedy = "Install the CUDA toolkit's cuBLAS, or a framework that brings it, where the loader finds it."
            message = f"not measured: no cuBLAS: {gpu.no_cublas}"
            yield self.finding(Verdict.UNKNOWN, gpu.label, message, remedy=remedy, evidence=EVIDENCE)

    def _results(self, gpu: GpuBurnIn, gemm: GemmResult) -> Iterator[Finding]:
        if gemm.untouched or (gemm.complete and gemm.iterations == 0):
            yield self._fault(
                gpu,
                "no work done: the driver reported success, but the result was never written",
                f"{gemm.iterations} products",
                "at least one product",
            )
            return
        if gemm.mismatches:
            yield self._fault(
                gpu,
                f"wrong results: {gemm.mismatches} of {gemm.compared} batches of products differ, the first within "
                f"{gemm.first_mismatch} products",
                f"{gemm.mismatches} of {gemm.compared} batches differ",
                "equal results",
            )
        right = RIGHT_CHECKSUMS.get(gemm.n)
        if right is None:
            message = f"matrices of order {gemm.n}: their right answer is not known"
            yield self.finding(Verdict.UNKNOWN, gpu.label, message, evidence=EVIDENCE)
        elif gemm.wrong_columns or gemm.stable is False or gemm.checksum != right:
            yield self._fault(
                gpu,
                f"wrong results: {_what_is_wrong(gemm)}",
                f"checksum {gemm.checksum}" + (", and another one at the end" if gemm.stable is False else ""),
                f"checksum {right}",
            )
        elif gemm.complete and not gemm.compared:
            yield self.finding(Verdict.UNKNOWN, gpu.label, "no results were compared", evidence=EVIDENCE)

    def _fault(self, gpu: GpuBurnIn, message: str, measured: str, wanted: str) -> Finding:
        return self.finding(
            Verdict.FAIL,
            gpu.label,
            message,
            measured=measured,
            expected=wanted,
            source="exact integer arithmetic",
            evidence=EVIDENCE,
        )

    def good(self, seen: Seen) -> str:
        gemms = [gpu.gemm for gpu in seen.result.gpus if gpu.gemm]
        fewest = min(gemm.iterations for gemm in gemms)
        return f"{counted(len(gemms), 'GPU')}, at least {fewest} products of order {gemms[0].n} each: all results right"


class BurnInCopy(BurnInCheck):
    """What is copied to a GPU and back comes back the same."""

    id = "burnin.copy"
    title = "Bytes copied to a GPU and back"
    why = "A link that corrupts data under load loses a job long after it was called healthy."
    source = "the pattern that was sent"
    remedy = "Replace the host."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    needs_profile = False

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:  # noqa: ARG002 - needs the GPU alone
        if gpu.copy_ is None:
            yield self.not_measured(gpu)
        elif not gpu.copy_.intact:
            message = f"{gpu.copy_.bytes >> 20} MiB copied to the GPU and back differ from what was sent"
            yield self.finding(Verdict.FAIL, gpu.label, message, measured="different bytes", expected="the same bytes",
                               evidence=EVIDENCE)  # fmt: skip

    def good(self, seen: Seen) -> str:
        sizes = [gpu.copy_.bytes for gpu in seen.result.gpus if gpu.copy_]
        return f"{counted(len(sizes), 'GPU')}: {sizes[0] >> 20} MiB came back as they were sent"


def _what_is_wrong(gemm: GemmResult) -> str:
    if gemm.wrong_columns:
        return (
            f"{gemm.wrong_columns} of {gemm.checked_columns} checked columns of the product differ from the right ones"
        )
    if gemm.stable is False:
        return "the last product differs from the first"
    return "the column sums of the product are not the right ones"
