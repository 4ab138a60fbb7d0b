"""What the GPUs count: corrected errors, and errors on their links. High counts warn; faults have their own checks."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, not_there, profile_of
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.missing import Missing, Reason
from validation.facts.nvlink_errors import LinkErrors, NvLinkErrors
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_CORRECTED_MAX = 20_000_000  # azurehpc-health-checks 0e0a1ac: DRAM errors corrected since driver load
_NVLINK_ERRORS_MAX = 5  # imbue-ai/cluster-health: of nvlink -e, on a link of up to NVLink 4
# One link against its peers under the same load; no source has a number, so it only warns.
_REPLAYS_MANY, _REPLAYS_TIMES = 1_000, 20
_OLD_COUNTERS = ("replay errors", "recovery errors", "crc")  # NVLink 1 to 4; NVLink 5 prints none of these
_BAD_WORDS = ("error", "discard", "recovery successful")
# NVLink 5 counts every corrected code word as "FEC Errors - N": billions on a healthy link of a p6-b300.
_HARMLESS = ("fec errors", "total link recovery")


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
    """No GPU's PCIe link has repeated far more than those of its peers since the driver was loaded.

    The count itself is only told: DCGM's 80 is a limit for one test, and a count since driver load only grows (eight
    healthy H100 show 106 to 174).
    """

    id = "pcie.replays"
    title = "PCIe replays"
    why = "A link that repeats packets has a signal problem; it slows down before it breaks."
    source = "capture of eight healthy H100, driver 580.105.08; DCGM 4.6.0 diag (80 replays, for one test)"
    remedy = "Reboot once; if the number grows again, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        count = gpu.pcie.replays
        if isinstance(count, Missing):
            if not_there(count):
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "the driver counts no PCIe replays here")
            return self.missing(gpu.label, "PCIe replays", count)
        return None

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        counts = {gpu: gpu.pcie.replays for gpu in facts.need(GpuInventory).gpus}
        known = {gpu: count for gpu, count in counts.items() if not isinstance(count, Missing)}
        odd = [gpu for gpu, count in known.items() if _stands_out(count, [c for g, c in known.items() if g is not gpu])]
        for gpu in odd:
            rest = max(count for other, count in known.items() if other is not gpu)
            message = f"{known[gpu]} PCIe replays since the driver was loaded, its peers {rest} at most"
            yield self.finding(Verdict.WARN, gpu.label, message, measured=str(known[gpu]), expected="as its peers")
        found = list(super().evaluate(facts, expected))
        yield from (finding for finding in found if not odd or finding.verdict is not Verdict.PASS)

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        counts = [gpu.pcie.replays for gpu in gpus if not isinstance(gpu.pcie.replays, Missing)]
        seen = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        return f"{seen} since the driver was loaded on {counted(len(gpus), 'GPU')}; no source gives a limit for that"


def _stands_out(count: int, peers: list[int]) -> bool:
    return bool(peers) and count >= _REPLAYS_MANY and count > _REPLAYS_TIMES * max(peers)


def judged_counter(item: LinkErrors) -> Verdict | None:
    """What one counter of a link means; None where it says nothing bad. A link whose recovery failed is a bad link.

    Symbol and effective errors only warn: no source gives a number from which on a link of NVLink 5 is bad.
    """
    name = item.name.lower()
    if item.count == 0 or name.startswith(_HARMLESS):
        return None
    if "recovery failed" in name:
        return Verdict.FAIL
    if name.startswith(_OLD_COUNTERS) and item.count >= _NVLINK_ERRORS_MAX:
        return Verdict.FAIL
    return Verdict.WARN if any(word in name for word in _BAD_WORDS) else None


class NvlinkErrors(Check):
    """No NVLink has counted errors since the driver was loaded."""

    id = "nvlink.errors"
    title = "NVLink error counters"
    why = "A link that replays and recovers is slow, counts as active, and is soon down."
    source = "imbue-ai/cluster-health (nvlink -e, 5 errors); DCGM 4.6.0 health (failed recovery fails, others warn)"
    remedy = "Reboot once, which clears the counters; if they rise again, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (NvLinkErrors, GpuInventory)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        wanted = profile_of(expected).links.nvlinks
        if wanted is not None and wanted.value == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "this machine has no NVLink by design")
            return
        if wanted is None and NvLinkErrors not in facts:
            message = "no source tells whether this machine has NVLinks to count errors on"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            return
        errors = facts.need(NvLinkErrors)
        trouble = [*self._unreadable(errors, expected), *self._left_out(errors, facts), *self._counted(errors)]
        yield from trouble
        links = {(item.gpu, item.link) for item in errors.counters}
        if not trouble and links:
            yield self.finding(Verdict.PASS, "host", f"no error on {counted(len(links), 'NVLink')}")
        elif not trouble:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the driver counts no NVLink errors here")

    def _unreadable(self, errors: NvLinkErrors, expected: Expectation) -> Iterable[Finding]:
        for gpu, why in errors.without:
            if why.reason is not Reason.NOT_APPLICABLE and not expected.mig:
                yield self.missing(f"GPU{gpu}", "NVLink error counters", why)

    def _left_out(self, errors: NvLinkErrors, facts: Facts) -> Iterable[Finding]:
        """Active links without counters: the text is cut short, or the driver leaves some out."""
        links = {(item.gpu, item.link) for item in errors.counters}
        silent = {gpu for gpu, _ in errors.without}
        for gpu in facts.need(GpuInventory).gpus:
            active = () if isinstance(gpu.nvlinks, Missing) else [link for link in gpu.nvlinks if link.active is True]
            counted_links = sum(at == gpu.index for at, _ in links)
            if gpu.index not in silent and counted_links < len(active):
                message = f"error counters of {counted_links} of {counted(len(active), 'active NVLink')}"
                yield self.finding(Verdict.UNKNOWN, gpu.label, message, remedy="Look at nvidia-smi nvlink -e by hand.")

    def _counted(self, errors: NvLinkErrors) -> Iterable[Finding]:
        for item in errors.counters:
            verdict = judged_counter(item)
            if verdict is not None:
                subject, count = f"GPU{item.gpu}/link{item.link}", str(item.count)
                yield self.finding(verdict, subject, f"{item.name}: {count}", measured=count, expected="0")
