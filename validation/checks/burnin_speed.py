"""Is every GPU as fast as its board, and not faster than physics allows? Does anything hold it back under load?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from profiles.models import Expectation, Range
from validation.checks.burnin import EVIDENCE, BurnInCheck, Seen
from validation.checks.wording import counted, profile_of
from validation.facts.burnin import GpuBurnIn, Samples
from validation.verdict import FaultClass, Finding, Verdict

PEER_TOLERANCE = 0.10
# Below half of its peers no healthy board is, whatever its power limit: no profile excuses that.
_FAR_BELOW = "half of its peers or more"
THERMAL = frozenset({"sw_thermal_slowdown", "hw_thermal_slowdown"})
BRAKES = frozenset({"hw_slowdown", "hw_power_brake_slowdown"})
HELD_SHARE = 1 / 3  # of the samples: a single blip at the start of a load is seen on healthy boards (DCGM 242)


class RangeCheck(BurnInCheck):
    """A figure against its range."""

    def within(
        self, gpu: GpuBurnIn, what: str, value: float, unit: str, limits: Range, expected: Expectation
    ) -> Finding:
        """The finding for a value outside its range: too slow is FAIL, too fast is no measurement."""
        fast = value > limits.ceiling
        message = f"{what} {value:.1f} {unit}; {'not possible above' if fast else 'expected at least'} "
        return self.finding(
            Verdict.UNKNOWN if fast else Verdict.FAIL,
            gpu.label,
            message + f"{limits.ceiling if fast else limits.floor:g} {unit}",
            measured=f"{value:.1f} {unit}",
            expected=f"{limits.floor:g} to {limits.ceiling:g} {unit}",
            source=expected.source_of(limits.source),
            remedy="A value above the physical limit is no measurement: burn in again, and report it if it repeats."
            if fast
            else "",
            evidence=EVIDENCE,
        )

    def no_figure(self, gpu: GpuBurnIn, what: str, measured: str) -> Finding:
        message = f"{what} {measured}; the profile has no figure to judge it by"
        remedy = "Add a floor and a ceiling with their source to the profile, or list the check as advisory there."
        return self.finding(Verdict.UNKNOWN, gpu.label, message, measured=measured, remedy=remedy, evidence=EVIDENCE)


class BurnInSpeed(RangeCheck):
    """Every GPU multiplies as fast as its board does, and not faster than physics allows."""

    id = "burnin.speed"
    title = "Speed of matrix products"
    why = "One slow GPU sets the pace of every job that runs on all of them."
    source = "MAMF, gpu-fryer and superbench runs of healthy boards; ceilings from the boards' published peaks"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:
        limits = profile_of(seen.expected).burn_in.gemm_fp16_tflops
        if gpu.gemm is None or gpu.gemm.iterations == 0:
            yield self.not_measured(gpu)
        elif gpu.gemm.seconds == 0:
            message = f"{gpu.gemm.iterations} products in no time: this is no measurement"
            yield self.finding(Verdict.UNKNOWN, gpu.label, message, evidence=EVIDENCE)
        elif limits is None:
            yield self.no_figure(gpu, "fp16 products", f"{gpu.gemm.tflops:.1f} TFLOPS")
        elif not limits.floor <= gpu.gemm.tflops <= limits.ceiling:
            yield self.within(gpu, "fp16 products", gpu.gemm.tflops, "TFLOPS", limits, seen.expected)

    def good(self, seen: Seen) -> str:
        speeds = [gpu.gemm.tflops for gpu in seen.result.gpus if gpu.gemm]
        return f"{counted(len(speeds), 'GPU')} at {_span(speeds)} TFLOPS, fp16"


class BurnInPeers(BurnInCheck):
    """No GPU of a host is much slower than the others: they are the same board under the same load."""

    id = "burnin.peers"
    title = "Speed of a GPU against its peers"
    why = "A floor has to let every healthy board pass; the neighbours say what this machine can do."
    source = "gpu-fryer and superbench: 10 % below the median of the peers"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    needs_profile = False

    def excusable(self, finding: Finding) -> bool:
        return super().excusable(finding) and not finding.expected.endswith(_FAR_BELOW)

    def judge(self, seen: Seen) -> Iterable[Finding]:
        if len(seen.result.gpus) == 1:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "one GPU has no peers")
            return
        yield from super().judge(seen)

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:
        others = (peer.gemm.tflops for peer in seen.result.gpus if peer is not gpu and peer.gemm)
        peers = [speed for speed in others if 0 < speed <= _ceiling(seen.expected)]
        if gpu.gemm is None or gpu.gemm.tflops == 0:
            yield self.not_measured(gpu)
        elif not peers:
            yield self.finding(Verdict.UNKNOWN, gpu.label, "no peer was measured", evidence=EVIDENCE)
        elif gpu.gemm.tflops < (1 - PEER_TOLERANCE) * statistics.median(peers):
            median = statistics.median(peers)
            share = 100 * (1 - gpu.gemm.tflops / median)
            limit = f"at least {(1 - PEER_TOLERANCE) * median:.1f} TFLOPS"
            yield self.finding(
                Verdict.FAIL,
                gpu.label,
                f"fp16 products {gpu.gemm.tflops:.1f} TFLOPS, {share:.0f} % below the median {median:.1f} of its peers",
                measured=f"{gpu.gemm.tflops:.1f} TFLOPS",
                expected=f"{limit}, {_FAR_BELOW}" if share > 50 else limit,
                source=self.source,
                evidence=EVIDENCE,
            )

    def good(self, seen: Seen) -> str:
        speeds = [gpu.gemm.tflops for gpu in seen.result.gpus if gpu.gemm]
        return f"{counted(len(speeds), 'GPU')} within {100 * (1 - min(speeds) / max(speeds)):.1f} % of each other"


class BurnInBandwidth(RangeCheck):
    """Copies between host and GPU run at the speed of the link, one GPU at a time."""

    id = "burnin.bandwidth"
    title = "Bandwidth between host and GPU"
    why = "A link that trained to fewer lanes or a lower generation starves the GPU of data."
    source = "azurehpc-health-checks, oci-hpc and superbench figures; ceilings from PCIe"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:
        if gpu.copy_ is None:
            yield self.not_measured(gpu)
            return
        profile = profile_of(seen.expected).burn_in
        for what, value, limits in (
            ("host to GPU", gpu.copy_.h2d_gbps, profile.h2d_gbps),
            ("GPU to host", gpu.copy_.d2h_gbps, profile.d2h_gbps),
        ):
            if limits is None:
                yield self.no_figure(gpu, what, f"{value:.1f} GB/s")
            elif not limits.floor <= value <= limits.ceiling:
                yield self.within(gpu, what, value, "GB/s", limits, seen.expected)

    def good(self, seen: Seen) -> str:
        copies = [gpu.copy_ for gpu in seen.result.gpus if gpu.copy_]
        there, back = _span([copy.h2d_gbps for copy in copies]), _span([copy.d2h_gbps for copy in copies])
        return f"{counted(len(copies), 'GPU')}: {there} GB/s to the GPU, {back} GB/s from it"


class BurnInThrottle(BurnInCheck):
    """Heat or a power brake does not hold a GPU back under load. The power limit may: that is how boards run."""

    id = "burnin.throttle"
    title = "Thermal and power-brake slowdown under load"
    why = "A GPU that is hot after seconds has a cooling fault, and gets slower for as long as a job runs."
    source = "NVML clocks event reasons; gpud and DCGM judge them the same way"
    remedy = "Replace the host; where it is your own, look at its fans, airflow and power supply."
    fault_class = FaultClass.REPLACE_NOW
    needs_profile = False

    def look(self, gpu: GpuBurnIn, seen: Seen) -> Iterable[Finding]:
        samples = gpu.samples
        if gpu.gemm is None or gpu.gemm.iterations == 0:
            yield self.not_measured(gpu)
            return
        if samples is None or not samples.throttle:
            why = seen.result.sampling_error or "; ".join(samples.errors if samples else ()) or "no sample was taken"
            message = f"not seen under load: {why}"
            yield self.finding(Verdict.UNKNOWN, gpu.label, message, evidence=EVIDENCE)
            return
        for reasons, words in ((THERMAL, "held back by heat"), (BRAKES, "held back by its power brake")):
            held = [taken for taken in samples.throttle if reasons & set(taken)]
            if held:
                yield self._held(
                    gpu, samples, sorted(reasons & {name for taken in held for name in taken}), len(held), words
                )

    def _held(self, gpu: GpuBurnIn, samples: Samples, names: list[str], held: int, words: str) -> Finding:
        lasting = held >= HELD_SHARE * len(samples.throttle)
        hottest = f", up to {max(samples.temp_c):.0f} C" if samples.temp_c else ""
        return self.finding(
            Verdict.FAIL if lasting else Verdict.WARN,
            gpu.label,
            f"{words} in {held} of {counted(len(samples.throttle), 'sample')} under load{hottest}: {', '.join(names)}",
            measured=", ".join(names),
            expected="no thermal or power-brake slowdown",
            source=self.source,
            evidence=EVIDENCE,
        )

    def good(self, seen: Seen) -> str:
        hottest = [max(gpu.samples.temp_c) for gpu in seen.result.gpus if gpu.samples and gpu.samples.temp_c]
        heat = f", up to {max(hottest):.0f} C" if hottest else ""
        return f"{counted(len(seen.result.gpus), 'GPU')} not held back by heat or power brake under load{heat}"


def _ceiling(expected: Expectation) -> float:
    """What no GPU of this type can exceed; without a figure, anything is taken for a measurement."""
    limits = expected.profile.burn_in.gemm_fp16_tflops if expected.profile else None
    return limits.ceiling if limits else math.inf


def _span(values: list[float]) -> str:
    """``681.0 to 687.2``; one figure where both print alike."""
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"
