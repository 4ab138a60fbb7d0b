"""What the GPUs count: corrected errors, and replays on the bus. High counts warn; faults have their own checks."""

from __future__ import annotations

from profiles.models import Expectation
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, not_there
from validation.facts.gpu import Gpu
from validation.facts.missing import Missing
from validation.verdict import FaultClass, Finding, Verdict

_CORRECTED_MAX = 20_000_000  # azurehpc-health-checks 0e0a1ac: DRAM errors corrected since driver load
_REPLAYS_MAX = 80  # DCGM 4.6.0 diag: PCIe replays


class EccCorrected(PerGpuCheck):
    """Corrected memory errors stay below the number at which others send the board back."""

    id = "ecc.corrected"
    title = "Corrected ECC errors"
    why = "Corrected errors cost nothing one by one; in millions they announce an uncorrectable one."
    source = "azurehpc-health-checks 0e0a1ac (20 million)"
    remedy = "Watch this GPU; replace the host if the number keeps growing."
    fault_class = FaultClass.REPLACE_NOW
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        count = gpu.ecc.volatile_corrected
        if isinstance(count, Missing):
            if not_there(count):
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "the driver counts no corrected errors here")
            return self.missing(gpu.label, "corrected ECC errors", count)
        if count <= _CORRECTED_MAX:
            return None
        message = f"{count} corrected ECC errors since the driver was loaded"
        return self.finding(Verdict.WARN, gpu.label, message, measured=str(count), expected=f"at most {_CORRECTED_MAX}")

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"corrected ECC errors within the limit on {counted(len(gpus), 'GPU')}"


class PcieReplays(PerGpuCheck):
    """The PCIe link is not repeating itself."""

    id = "pcie.replays"
    title = "PCIe replays"
    why = "A link that repeats packets has a signal problem; it slows down before it breaks."
    source = "DCGM 4.6.0 diag (80 replays)"
    remedy = "Reboot once; if the number grows again, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        count = gpu.pcie.replays
        if isinstance(count, Missing):
            if not_there(count):
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "the driver counts no PCIe replays here")
            return self.missing(gpu.label, "PCIe replays", count)
        if count <= _REPLAYS_MAX:
            return None
        message = f"{count} PCIe replays since the driver was loaded"
        return self.finding(Verdict.WARN, gpu.label, message, measured=str(count), expected=f"at most {_REPLAYS_MAX}")

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"PCIe replays within the limit on {counted(len(gpus), 'GPU')}"
