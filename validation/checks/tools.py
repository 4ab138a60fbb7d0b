"""Checks on the outputs of single tools, which ``kiln explain`` judges and no gate requires. One list: TOOL_CHECKS."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.counters import judged_counter
from validation.checks.settings import GRACE
from validation.checks.tool_bandwidth import NcclTestResult, NvBandwidthResult
from validation.checks.tool_containers import ContainerStarts, DockerKnowsGpus
from validation.checks.tool_dcgm import DcgmDiagResult, DcgmHealthResult
from validation.checks.tool_host import ContainersSeeGpus, FioRun, StressRun
from validation.checks.tool_network import EadmAnswer, EfaPresent, RdmaCounted, RdmaPorts
from validation.checks.tool_pci import AcsAlone, AcsLinesAlone, PciAlone
from validation.checks.tool_results import GpuBurnResult, GpuFryerResult, OciHealthResult
from validation.checks.tool_services import ServicesRun
from validation.checks.tool_smi import NvlinkAlone, PeersAlone, RetiredPagesListed, SmiTableRead, SmiVersionsMatch
from validation.checks.tool_topology import TopologyAlone
from validation.checks.wording import counted, listed
from validation.facts.mdstat import RaidArray, RaidArrays
from validation.facts.nvlink_errors import NvLinkErrors
from validation.facts.store import Facts
from validation.facts.vgpu import VgpuLicenses, in_grace
from validation.verdict import FaultClass, Finding, Verdict


class RaidWhole(Check):
    """Every RAID array is active and has all its members."""

    id = "tool.raid"
    title = "RAID arrays"
    why = "A degraded array loses data with the next disk; an inactive one is not there."
    source = "Linux md documentation; gpud RAID matcher"
    remedy = "Replace the disk, or the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (RaidArrays,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        arrays = facts.need(RaidArrays).arrays
        for array in arrays:
            verdict, message = _raid(array)
            yield self.finding(verdict, array.name, message)
        if not arrays:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "there is no RAID array")


def _raid(array: RaidArray) -> tuple[Verdict, str]:
    """An array that is being made whole warns: a new one of level 5 starts like that on healthy disks."""
    level, doing = array.level or "array", f", {array.progress}" if array.progress else ""
    if array.container:
        return Verdict.NOT_APPLICABLE, f"a container, which only holds the disks of arrays: {listed(array.spares)}"
    if not array.active:
        return Verdict.FAIL, "is inactive"
    if array.missing:
        gone = listed(array.failed) or counted(array.missing, "member")
        mending = array.mending and not array.failed
        return Verdict.WARN if mending else Verdict.FAIL, f"{level} is degraded: {gone} gone{doing}"
    if array.failed:
        return Verdict.FAIL, f"{level} has all its members, and {listed(array.failed)} failed and is still in it{doing}"
    spares = f" and {counted(len(array.spares), 'spare')}" if array.spares else ""
    return Verdict.PASS, f"{level} with {counted(len(array.members), 'member')}{spares} is whole{doing}"


class VgpuLicensed(Check):
    """Every vGPU has its licence."""

    id = "tool.vgpu_license"
    title = "vGPU licence"
    why = "A vGPU without a licence works at first, and is throttled after a while."
    source = "aws-k8s-tester golden of g6f; NVIDIA vGPU licensing guide"
    remedy = "Set up the licence server or token that the vGPU product needs."
    fault_class = FaultClass.SOFTWARE
    requires = (VgpuLicenses,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        for at, item in enumerate(facts.need(VgpuLicenses).licenses):
            message = f"{item.product or 'licence'}: {item.status}"
            say = partial(self.finding, subject=f"vGPU{at}", message=message, expected="Licensed")
            if item.untold:
                guest = "its guest tells none: no driver is loaded there"
                yield self.finding(Verdict.NOT_APPLICABLE, f"vGPU{at}", f"{message}; {guest}")
            elif in_grace(item.status):
                yield say(Verdict.UNKNOWN, remedy=GRACE)
            else:
                yield say(Verdict.PASS if item.licensed else Verdict.FAIL)


class NvlinkErrorCounters(Check):
    """No NVLink has errors since the driver was loaded."""

    id = "tool.nvlink_errors"
    title = "NVLink error counters"
    why = "A link that needs replays is slow, and soon down."
    source = "imbue-ai/cluster-health: nvlink -e, 5 errors"
    remedy = "Reboot once, which clears the counters; if they rise again, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (NvLinkErrors,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        errors = facts.need(NvLinkErrors)
        judged = [(verdict, item) for item in errors.counters if (verdict := judged_counter(item)) is not None]
        for verdict, item in judged:
            message = f"{item.name}: {item.count}"
            yield self.finding(
                verdict, f"GPU{item.gpu}/link{item.link}", message, measured=str(item.count), expected="0"
            )
        for gpu, reason in errors.without:
            yield self.finding(Verdict.NOT_APPLICABLE, f"GPU{gpu}", str(reason))
        if errors.counters and not judged:
            corrected = ", but for what was corrected" if any(item.count for item in errors.counters) else ""
            text = f"{counted(len(errors.counters), 'error counter')}, all zero{corrected}"
            yield self.finding(Verdict.PASS, "host", text)


TOOL_CHECKS: tuple[Check, ...] = (
    GpuBurnResult(),
    GpuFryerResult(),
    NcclTestResult(),
    NvBandwidthResult(),
    OciHealthResult(),
    DcgmDiagResult(),
    DcgmHealthResult(),
    EfaPresent(),
    RdmaPorts(),
    RdmaCounted(),
    EadmAnswer(),
    RaidWhole(),
    VgpuLicensed(),
    FioRun(),
    StressRun(),
    ContainersSeeGpus(),
    ContainerStarts(),
    DockerKnowsGpus(),
    ServicesRun(),
    NvlinkErrorCounters(),
    NvlinkAlone(),
    PeersAlone(),
    TopologyAlone(),
    PciAlone(),
    AcsAlone(),
    AcsLinesAlone(),
    SmiTableRead(),
    RetiredPagesListed(),
    SmiVersionsMatch(),
)
