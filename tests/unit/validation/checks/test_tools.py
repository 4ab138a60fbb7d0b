"""Checks that only ``kiln explain`` makes: a row for every verdict, with words of the text."""

from __future__ import annotations

import pytest

from profiles import catalog
from profiles.models import Expectation
from validation.checks import CHECKS
from validation.checks.base import Check
from validation.checks.tool_dcgm import DcgmDiagResult, DcgmHealthResult
from validation.checks.tool_host import ContainersSeeGpus, FioRun, StressRun
from validation.checks.tool_network import EadmAnswer, EfaPresent, RdmaCounted, RdmaPorts
from validation.checks.tool_results import (
    PEAKS,
    GpuBurnResult,
    GpuFryerResult,
    NcclTestResult,
    NvBandwidthResult,
    OciHealthResult,
    peak_of,
)
from validation.checks.tool_smi import NvlinkAlone, PeersAlone, RetiredPagesListed, SmiTableRead, SmiVersionsMatch
from validation.checks.tools import (
    TOOL_CHECKS,
    NvlinkErrorCounters,
    RaidWhole,
    VgpuLicensed,
)
from validation.facts.container_gpus import ContainerGpus
from validation.facts.dcgm import DcgmDiag, DcgmHealth, DcgmTest
from validation.facts.eadm import Eadm
from validation.facts.fio import FioJob, FioResult
from validation.facts.gpu import Gpu, GpuInventory, NvLink
from validation.facts.gpu_burn import BurnGpu, GpuBurn
from validation.facts.gpu_fryer import FriedGpu, GpuFryer
from validation.facts.host import EfaNics, P2pMatrix, RdmaDevice, RdmaDevices
from validation.facts.mdstat import RaidArray, RaidArrays
from validation.facts.missing import Missing, Reason
from validation.facts.nccl_tests import NcclResult, NcclSize
from validation.facts.nvbandwidth import BandwidthTest, NvBandwidth
from validation.facts.nvlink_errors import LinkErrors, NvLinkErrors
from validation.facts.oci import Measurement, OciResult
from validation.facts.rdma_counters import PortCounters, RdmaCounters
from validation.facts.smi_list import SmiVersion
from validation.facts.smi_rows import RetiredPageCount, RetiredPageList
from validation.facts.smi_table import SmiTable
from validation.facts.store import Facts
from validation.facts.stress_ng import StressNg
from validation.facts.vgpu import VgpuLicense, VgpuLicenses
from validation.verdict import Verdict

H100 = "NVIDIA H100 80GB HBM3"
NOTHING = Missing(Reason.NOT_APPLICABLE, "N/A")


def burn(*gpus: BurnGpu, aborted: bool = False, finished: bool = True) -> GpuBurn:
    return GpuBurn(gpus, aborted, finished, 100.0)


def burned(
    index: int = 0, *, work: int = 40, gflops: float = 900, errors: int = 0, died: bool = False, word: str = "OK"
) -> BurnGpu:
    return BurnGpu(index, work, gflops, errors, died, word)


def fryer(*rates: float, healthy: bool = True, hot: bool = False) -> GpuFryer:
    return GpuFryer(tuple(FriedGpu(at, rate, rate, rate, throttled=hot) for at, rate in enumerate(rates)), healthy)


def nccl(peak: float, *, wrong: int = 0, checked: bool = True, board: str = H100, hosts: int = 1) -> NcclResult:
    ranks = tuple((f"host{host}", board) for host in range(hosts))
    return NcclResult(ranks, (NcclSize(1 << 30, peak, peak, wrong),), peak / 4, wrong, wrong > 0, checked)


def bandwidth(value: float, name: str = "host_to_device_memcpy_ce", device: str = H100) -> NvBandwidth:
    return NvBandwidth("v0.8", (device,), (BandwidthTest(name, "GB/s", ((0, 0, value),)),), 3, ())


def oci(value: float, unit: str = "GB/s", name: str = H100, said: str = "pass") -> OciResult:
    return OciResult(name, "float16", said, (Measurement("memory_bandwidth", "GPU-1", value, unit, "IDEAL"),))


def linked(*active: bool, index: int = 0, name: str = H100) -> Gpu:
    return Gpu(index, name=name, nvlinks=tuple(NvLink(at, up) for at, up in enumerate(active)))


def inventory(*gpus: Gpu) -> GpuInventory:
    return GpuInventory("nvlink-s", gpus)


def peers(word: str) -> P2pMatrix:
    return P2pMatrix("r", (0, 1), {(0, 1): word, (1, 0): word})


def pages(count: int) -> RetiredPageList:
    return RetiredPageList((RetiredPageCount("0000:3b:00.0", count - 1, 1),))


def table(*gpus: int, errors: tuple[str, ...] = ()) -> SmiTable:
    return SmiTable(
        GpuInventory("nvidia-smi", tuple(Gpu(index=index) for index in gpus)), errors=((1, errors),) if errors else ()
    )


def health(overall: str, system: str = "", word: str = "Failure") -> DcgmHealth:
    return DcgmHealth(overall, ((0, system, word, ("text",)),) if system else ())


def diag(*words: str) -> DcgmDiag:
    return DcgmDiag((DcgmTest("PCIe", tuple(enumerate(words)), ("a note",)),))


def port(name: str = "a", **said: object) -> RdmaDevices:
    return RdmaDevices((RdmaDevice(name, **said),))  # type: ignore[arg-type]


def counters(**counted: int) -> RdmaCounters:
    return RdmaCounters((PortCounters("a", counted),))


ROWS: list[tuple[Check, object, list[str]]] = [
    (GpuBurnResult(), burn(burned(), burned(1, gflops=880)), ["PASS host: 2 GPUs OK, 880 to 900"]),
    (GpuBurnResult(), burn(burned(), burned(1, gflops=700)), ["WARN GPU1: 700 Gflop/s, the best GPU has 900"]),
    (GpuBurnResult(), burn(burned(), burned(1, word="FAULTY")), ["FAIL GPU1: FAULTY"]),
    (GpuBurnResult(), burn(burned(errors=-7, word="FAULTY")), ["FAIL GPU0: FAULTY: -7 wrong results"]),
    (GpuBurnResult(), burn(burned(errors=3)), ["FAIL GPU0: 3 wrong results"]),
    (GpuBurnResult(), burn(burned(work=0, gflops=0)), ["FAIL GPU0: zero work done"]),
    (
        GpuBurnResult(),
        burn(burned(work=-1, died=True, word=""), aborted=True, finished=False),
        ["FAIL GPU0: its process died", "FAIL host: no process was left"],
    ),
    (GpuBurnResult(), burn(burned(word=""), finished=False), ["UNKNOWN host: the run did not end"]),
    (GpuFryerResult(), fryer(900, 890), ["PASS host: 2 GPUs within 10 %"]),
    (GpuFryerResult(), fryer(0, 0), ["FAIL GPU0: zero work done", "FAIL GPU1: zero work done"]),
    (GpuFryerResult(), fryer(900, 700), ["FAIL GPU1: 700 Gflop/s"]),
    (GpuFryerResult(), fryer(900, hot=True), ["WARN GPU0: was throttled"]),
    (GpuFryerResult(), fryer(900, healthy=False), ["FAIL host: gpu-fryer does not call all GPUs healthy"]),
    (NcclTestResult(), nccl(400), ["PASS host: peak 400 GB/s"]),
    (NcclTestResult(), nccl(400, checked=False), ["WARN host: peak 400 GB/s"]),
    (NcclTestResult(), nccl(400, wrong=2), ["FAIL host: 2 values out of bounds"]),
    (NcclTestResult(), nccl(0), ["UNKNOWN host: no bandwidth was measured"]),
    (NcclTestResult(), nccl(700), ["UNKNOWN host: peak 700 GB/s"]),
    (NcclTestResult(), nccl(700, hosts=2), ["PASS host: peak 700 GB/s"]),
    (NcclTestResult(), nccl(700, board="NVIDIA Newer"), ["PASS host: peak 700 GB/s"]),
    (NvBandwidthResult(), bandwidth(55), ["NOT_APPLICABLE host: 1 test measured, 3 waived"]),
    (
        NvBandwidthResult(),
        bandwidth(369),
        ["UNKNOWN host_to_device_memcpy_ce: 369 GB/s is more than", "NOT_APPLICABLE host"],
    ),
    (NvBandwidthResult(), bandwidth(369, device="NVIDIA GH200 480GB"), ["NOT_APPLICABLE host"]),
    (NvBandwidthResult(), bandwidth(0), ["UNKNOWN host_to_device_memcpy_ce: measured nothing", "NOT_APPLICABLE host"]),
    (
        NvBandwidthResult(),
        NvBandwidth("v0.8", (H100,), (), 5, ()),
        ["UNKNOWN host: nothing was measured: 5 tests waived"],
    ),
    (
        NvBandwidthResult(),
        NvBandwidth("v0.8", (H100,), (), 0, ("ERROR: x",)),
        ["FAIL host: a test ended in an error", "NOT_APPLICABLE host"],
    ),
    (OciHealthResult(), oci(3000), ["PASS host: 1 measurement within"]),
    (OciHealthResult(), oci(4276), ["UNKNOWN memory_bandwidth: 4276 GB/s, which the tool calls IDEAL"]),
    (OciHealthResult(), oci(1500, "TFLOPS"), ["UNKNOWN memory_bandwidth: 1500 TFLOPS"]),
    (OciHealthResult(), oci(0), ["FAIL host: zero work done"]),
    (OciHealthResult(), oci(3000, said="fail"), ["FAIL host: the tool's own result is fail", "PASS host"]),
    (OciHealthResult(), oci(3000, name="NVIDIA Newer"), ["UNKNOWN host: no physical limit is known"]),
    (DcgmDiagResult(), diag("pass", "pass"), ["PASS host: 1 test passed"]),
    (DcgmDiagResult(), diag("pass", "fail"), ["FAIL GPU1: PCIe: fail (a note)"]),
    (DcgmDiagResult(), diag("warn"), ["WARN GPU0: PCIe: warn"]),
    (DcgmDiagResult(), diag("error"), ["UNKNOWN GPU0: PCIe: error"]),
    (DcgmDiagResult(), diag("pass", "skip"), ["UNKNOWN host: 1 of 1 test skipped"]),
    (DcgmDiagResult(), diag("not run"), ["UNKNOWN host: 1 of 1 test skipped"]),
    (DcgmHealthResult(), health("Healthy"), ["PASS host: DCGM calls every watched system healthy"]),
    (DcgmHealthResult(), health("Failure", "Memory system"), ["FAIL GPU0: Memory system: Failure"]),
    (DcgmHealthResult(), health("Warning", "Thermal system", "Warning"), ["WARN GPU0: Thermal system: Warning"]),
    (DcgmHealthResult(), health("Failure", "NVLINK system"), ["WARN GPU0: NVLINK system"]),
    (EfaPresent(), EfaNics(("efa_0",)), ["PASS host: 1 EFA NIC: efa_0"]),
    (EfaPresent(), EfaNics(()), ["FAIL host: no EFA NIC"]),
    (RdmaPorts(), RdmaDevices((RdmaDevice("a", state="PORT_ACTIVE"),)), ["PASS host: 1 port up"]),
    (
        EfaPresent(),
        EfaNics((), others=("tcp", "shm")),
        ["NOT_APPLICABLE host: only other providers are listed: tcp, shm"],
    ),
    (RdmaPorts(), RdmaDevices((RdmaDevice("a", state="DOWN"),)), ["FAIL a: the port is DOWN"]),
    (RdmaPorts(), port(state="PORT_ACTIVE_DEFER"), ["FAIL a: the port is PORT_ACTIVE_DEFER"]),
    (RdmaPorts(), port(state="Initializing"), ["FAIL a: the port is Initializing: the link is up, and no subnet"]),
    (RdmaPorts(), port(state="Down", link_layer="InfiniBand", physical="Polling"), ["FAIL a: the port is Down"]),
    # Nobody may have plugged a cable into an Ethernet port; a port of the cloud has none.
    (RdmaPorts(), port(state="Down", link_layer="Ethernet"), ["WARN a: the port is Down, as an Ethernet port"]),
    (RdmaPorts(), port(state="DOWN", physical="DISABLED"), ["WARN a: the port is DOWN, as an Ethernet port"]),
    (
        RdmaPorts(),
        port(state="PORT_DOWN", vendor_id="0x1d0f", link_layer="Ethernet"),
        ["FAIL a: the port is PORT_DOWN"],
    ),
    (RdmaPorts(), port("erdma_0", state="PORT_DOWN", link_layer="Ethernet"), ["FAIL erdma_0: the port is PORT_DOWN"]),
    (RdmaPorts(), port(netdev="ib0", netdev_up=True), ["PASS host: 1 network interface up"]),
    (RdmaPorts(), port(netdev="ib0", netdev_up=False), ["WARN a: its network interface ib0 is down"]),
    (
        RdmaPorts(),
        RdmaDevices((RdmaDevice("a", state="Active", link_layer="InfiniBand"), RdmaDevice("b", state="Down"))),
        ["FAIL b: the port is Down", "PASS host: 1 of 2 ports up, 1 of them InfiniBand"],
    ),
    (RdmaCounted(), counters(rx_drops=0, rx_bytes=7), ["PASS a: 1 error counter, all zero"]),
    (
        RdmaCounted(),
        counters(out_of_sequence=3, tx_bytes=7),
        ["WARN a: since the driver was loaded: out_of_sequence 3"],
    ),
    (RdmaCounted(), counters(req_cqe_flush_error=9, rx_bytes=1), ["NOT_APPLICABLE a: there is no counter of errors"]),
    (EadmAnswer(), Eadm("0.2.38"), ["PASS host: the eRDMA driver 0.2.38 is loaded and answers"]),
    (
        EadmAnswer(),
        Eadm(device="erdma_0", counters={"connect_failed_cnt": 2, "hw_tx_bytes_cnt": 9}),
        ["WARN erdma_0: since the driver was loaded: connect_failed_cnt 2"],
    ),
    (EadmAnswer(), Eadm(counters={"accept_failed_cnt": 0}), ["PASS eRDMA: 1 error counter, all zero"]),
    (RdmaPorts(), RdmaDevices(()), ["WARN host: the tool found no RDMA device"]),
    (
        RaidWhole(),
        RaidArrays((RaidArray("md0", True, "raid0", ("a", "b")),)),
        ["PASS md0: raid0 with 2 members is whole"],
    ),
    (
        RaidWhole(),
        RaidArrays((RaidArray("md0", True, "raid1", ("a", "b"), ("b",), 1),)),
        ["FAIL md0: raid1 is degraded: b gone"],
    ),
    (RaidWhole(), RaidArrays((RaidArray("md0", False, "", ("a",)),)), ["FAIL md0: is inactive"]),
    (
        RaidWhole(),
        RaidArrays((RaidArray("md0", True, "raid5", ("a", "b", "c"), missing=1, progress="recovery 8.5%"),)),
        ["WARN md0: raid5 is degraded: 1 member gone, recovery 8.5%"],
    ),
    (
        RaidWhole(),
        RaidArrays((RaidArray("md0", True, "raid1", ("a", "b"), ("c",), spares=("c",)),)),
        ["FAIL md0: raid1 has all its members, and c failed and is still in it"],
    ),
    (
        RaidWhole(),
        RaidArrays((RaidArray("md0", True, "raid1", ("a", "b"), spares=("c",), progress="check 5.7%"),)),
        ["PASS md0: raid1 with 2 members and 1 spare is whole, check 5.7%"],
    ),
    (
        RaidWhole(),
        RaidArrays((RaidArray("md127", False, "", (), spares=("a", "b"), container=True),)),
        ["NOT_APPLICABLE md127: a container, which only holds the disks of arrays: a, b"],
    ),
    (RaidWhole(), RaidArrays(()), ["NOT_APPLICABLE host: there is no RAID array"]),
    (VgpuLicensed(), VgpuLicenses((VgpuLicense("vWS", "Licensed (Expiry: N/A)"),)), ["PASS vGPU0: vWS: Licensed"]),
    (VgpuLicensed(), VgpuLicenses((VgpuLicense("vWS", "Unlicensed"),)), ["FAIL vGPU0: vWS: Unlicensed"]),
    (VgpuLicensed(), VgpuLicenses((VgpuLicense("", "Unlicensed (Unrestricted)"),)), ["UNKNOWN vGPU0: licence: Unl"]),
    (VgpuLicensed(), VgpuLicenses((VgpuLicense("A40-4Q", "N/A"),)), ["NOT_APPLICABLE vGPU0: A40-4Q: N/A; its guest"]),
    (FioRun(), FioResult("3", (FioJob("seq", 5e6, 0, 9, 0, 0),)), ["NOT_APPLICABLE seq: read 5 MB/s"]),
    (FioRun(), FioResult("3", (FioJob("seq", 0, 0, 0, 0, 0),)), ["UNKNOWN seq: measured nothing"]),
    (FioRun(), FioResult("3", (FioJob("seq", 5e6, 0, 9, 0, 5),)), ["FAIL seq: ended with error 5"]),
    (StressRun(), StressNg(True, 8, 0, 0, ()), ["PASS host: 8 stressors passed"]),
    (StressRun(), StressNg(True, 0, 0, 0, ()), ["PASS host: the run was successful"]),
    (StressRun(), StressNg(True, 7, 0, 1, ()), ["UNKNOWN host: 1 stressor skipped"]),
    (StressRun(), StressNg(False, 7, 1, 0, ("cpu: wrong",)), ["FAIL host: the run was not successful, 1 failed: cpu"]),
    (ContainersSeeGpus(), ContainerGpus(("nvidia.com/gpu=0",)), ["PASS host: containers can be given"]),
    (ContainersSeeGpus(), ContainerGpus(()), ["WARN host: no CDI device"]),
    (
        NvlinkErrorCounters(),
        NvLinkErrors((0,), (LinkErrors(0, 1, "CRC Errors", 0),)),
        ["PASS host: 1 error counter, all zero"],
    ),
    (
        NvlinkErrorCounters(),
        NvLinkErrors((0,), (LinkErrors(0, 1, "CRC Errors", 2),)),
        ["WARN GPU0/link1: CRC Errors: 2"],
    ),
    (
        NvlinkErrorCounters(),
        NvLinkErrors((0,), (LinkErrors(0, 1, "Replay Errors", 5),)),
        ["FAIL GPU0/link1: Replay Errors: 5"],
    ),
    (NvlinkErrorCounters(), NvLinkErrors((0,), (LinkErrors(0, 1, "Tx packets", 9),)), ["PASS host"]),
    (NvlinkErrorCounters(), NvLinkErrors((0,), (), ((0, NOTHING),)), ["NOT_APPLICABLE GPU0"]),
    (
        NvlinkAlone(),
        inventory(linked(True, True), linked(True, True, index=1)),
        ["PASS host: every link listed is active: 2"],
    ),
    (NvlinkAlone(), inventory(linked(True, False), linked(True, True, index=1)), ["FAIL GPU0: link 1 is down"]),
    (NvlinkAlone(), inventory(linked(index=6)), ["FAIL GPU6: all NVLinks are down"]),
    (NvlinkAlone(), inventory(linked()), ["WARN GPU0: all NVLinks are down"]),
    (NvlinkAlone(), inventory(linked(True, False, index=1, name="NVIDIA H100 NVL")), []),
    (NvlinkAlone(), inventory(Gpu(0, name=H100, nvlinks=NOTHING)), []),
    (PeersAlone(), peers("OK"), ["PASS host: all 2 pairs OK"]),
    (PeersAlone(), peers("CNS"), []),
    (PeersAlone(), peers("U"), ["UNKNOWN host: the driver does not know of 2 pairs"]),
    (PeersAlone(), peers("DR"), ["WARN host: 2 pairs disabled by a driver setting"]),
    (RetiredPagesListed(), RetiredPageList(()), ["PASS host: no page is retired"]),
    (RetiredPagesListed(), pages(61), ["PASS host: at most 61 pages on one GPU"]),
    (RetiredPagesListed(), pages(62), ["FAIL 0000:3b:00.0: 62 pages are retired, 62 or more"]),
    (SmiTableRead(), table(0, 1), ["PASS host: no cell of 2 GPUs prints an error"]),
    (SmiTableRead(), table(0, 1, errors=("fan", "power")), ["FAIL GPU1: the table prints ERR! for fan, power"]),
    (SmiTableRead(), table(0, 1, errors=("power",)), ["UNKNOWN GPU1: the table prints ERR! for power"]),
    (SmiVersionsMatch(), SmiVersion("580.95.05", "580.95.05", nvml="580.95"), ["PASS host: kernel module 580.95.05"]),
    (SmiVersionsMatch(), SmiVersion("580.95.05", "580.95.05", nvml="580.126"), ["FAIL host: kernel module 580.95.05"]),
    (SmiVersionsMatch(), SmiVersion("580.1", "580.1"), []),
]


@pytest.mark.parametrize(("check", "fact", "wanted"), ROWS, ids=lambda value: getattr(value, "id", ""))
def test_a_result_means_what_its_numbers_say(check: Check, fact: object, wanted: list[str]) -> None:
    findings = list(check.evaluate(Facts({type(fact): fact}), Expectation(instance_type="")))
    found = [f"{finding.verdict.value} {finding.subject}: {finding.message}" for finding in findings]
    assert len(found) == len(wanted), found
    for text, start in zip(found, wanted, strict=True):
        assert text.startswith(start), text
    assert all(
        finding.remedy for finding in findings if finding.verdict in (Verdict.WARN, Verdict.UNKNOWN, Verdict.FAIL)
    )


def test_every_check_of_explain_has_a_row_here_or_in_the_test_of_its_own_module() -> None:
    own = {f"validation.checks.tool_{name}" for name in ("containers", "services")}
    checks = {type(check) for check in TOOL_CHECKS} - {type(check) for check in CHECKS}
    assert {type(check) for check, _, _ in ROWS} == {check for check in checks if check.__module__ not in own}


def test_with_a_profile_the_gates_own_checks_judge_links_and_peers() -> None:
    expected = Expectation(instance_type="p5.48xlarge", profile=catalog.load("p5.48xlarge"))
    assert list(NvlinkAlone().evaluate(Facts({GpuInventory: inventory(linked())}), expected)) == []
    assert list(PeersAlone().evaluate(Facts({P2pMatrix: peers("OK")}), expected)) == []


def test_nvlink_trouble_that_dcgm_sees_is_judged_by_the_machine() -> None:
    facts = Facts({DcgmHealth: health("Failure", "NVLINK system")})
    for instance_type, verdict in (("p5.48xlarge", Verdict.FAIL), ("g5.xlarge", Verdict.NOT_APPLICABLE)):
        expected = Expectation(instance_type=instance_type, profile=catalog.load(instance_type))
        assert [finding.verdict for finding in DcgmHealthResult().evaluate(facts, expected)] == [verdict]


def test_containers_must_be_given_every_gpu_of_the_machine() -> None:
    expected = Expectation(instance_type="p5.48xlarge", profile=catalog.load("p5.48xlarge"))
    facts = Facts({ContainerGpus: ContainerGpus(("nvidia.com/gpu=0", "nvidia.com/gpu=all"))})
    findings = list(ContainersSeeGpus().evaluate(facts, expected))
    assert [(finding.verdict, finding.message) for finding in findings] == [
        (Verdict.FAIL, "1 GPU of 8 are there for containers")
    ]


def test_limits_are_those_of_exactly_one_board() -> None:
    assert peak_of("NVIDIA L4") is not None
    assert peak_of("NVIDIA L4-3Q") is None
    assert peak_of("NVIDIA H200 NVL") is None
    assert peak_of("Tesla T4") == peak_of("T4")
    assert all(peak.memory_gbps > 0 and peak.fp16_tflops > 0 for peak in PEAKS)
