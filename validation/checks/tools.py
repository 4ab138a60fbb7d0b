"""Checks on the outputs of single tools, which ``kiln explain`` judges and no gate requires. One list: TOOL_CHECKS."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.counters import judged_counter
from validation.checks.tool_dcgm import DcgmDiagResult, DcgmHealthResult
from validation.checks.tool_host import ContainersSeeGpus, FioRun, StressRun
from validation.checks.tool_results import (
    GpuBurnResult,
    GpuFryerResult,
    NcclTestResult,
    NvBandwidthResult,
    OciHealthResult,
)
from validation.checks.tool_smi import NvlinkAlone, PeersAlone, RetiredPagesListed, SmiTableRead, SmiVersionsMatch
from validation.checks.wording import counted, listed
from validation.facts.host import EfaNics, RdmaDevices
from validation.facts.mdstat import RaidArrays
from validation.facts.missing import Missing
from validation.facts.nvlink_errors import NvLinkErrors
from validation.facts.store import Facts
from validation.facts.vgpu import VgpuLicenses
from validation.verdict import FaultClass, Finding, Verdict


class EfaPresent(Check):
    """fi_info, asked for EFA, finds some."""

    id = "tool.fi_info"
    title = "EFA NICs found"
    why = "fi_getinfo: -61 means that libfabric has no EFA at all: no interface of that type, or no driver for it."
    source = "libfabric FI_ENODATA; AWS EFA user guide"
    remedy = "Load the EFA driver; if there is no EFA interface, create the instance again with interface type efa."
    fault_class = FaultClass.CONFIGURATION
    requires = (EfaNics,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        nics = facts.need(EfaNics).nics
        if nics:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(nics), 'EFA NIC')}: {listed(nics)}")
        else:
            message = "no EFA NIC: libfabric was asked for EFA and has none"
            yield self.finding(Verdict.FAIL, "host", message, measured="0 EFA NICs", expected="1 or more")


class RdmaPorts(Check):
    """Every RDMA port is up. GUIDs and firmware are not judged: an EFA device has zeros there when it is healthy."""

    id = "tool.rdma"
    title = "RDMA ports"
    why = "A port that is down takes its share of the network along."
    source = "ibv_devinfo of EFA (zero GUIDs, firmware 0.0.0.0); ibstatus of Azure (Ethernet beside InfiniBand)"
    remedy = "Look at the cable and the switch, or replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (RdmaDevices,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        devices = facts.need(RdmaDevices).devices
        down = [device for device in devices if "ACTIVE" not in str(device.state).upper()]
        for device in down:
            message = f"the port is {device.state}"
            yield self.finding(Verdict.FAIL, device.name, message, measured=str(device.state), expected="active")
        if not devices:
            message = "the tool found no RDMA device"
            yield self.finding(
                Verdict.WARN, "host", message, remedy="Load the driver of the network card, if there is one."
            )
        elif not down:
            band = [device for device in devices if device.link_layer == "InfiniBand"]
            ports = f"{counted(len(devices), 'port')} up"
            known = any(not isinstance(device.link_layer, Missing) for device in devices)
            yield self.finding(Verdict.PASS, "host", f"{ports}, {len(band)} of them InfiniBand" if known else ports)


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
            if not array.active:
                yield self.finding(Verdict.FAIL, array.name, "is inactive")
            elif array.failed or array.missing:
                gone = listed(array.failed) or counted(array.missing, "member")
                yield self.finding(Verdict.FAIL, array.name, f"{array.level} is degraded: {gone} gone")
            else:
                members = counted(len(array.members), "member")
                yield self.finding(Verdict.PASS, array.name, f"{array.level or 'array'} with {members} is whole")
        if not arrays:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "there is no RAID array")


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
            verdict = Verdict.PASS if item.licensed else Verdict.FAIL
            yield self.finding(verdict, f"vGPU{at}", f"{item.product}: {item.status}", expected="Licensed")


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
    RaidWhole(),
    VgpuLicensed(),
    FioRun(),
    StressRun(),
    ContainersSeeGpus(),
    NvlinkErrorCounters(),
    NvlinkAlone(),
    PeersAlone(),
    SmiTableRead(),
    RetiredPagesListed(),
    SmiVersionsMatch(),
)
