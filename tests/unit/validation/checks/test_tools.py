"""Checks that only ``kiln explain`` makes: a row for every verdict, with words of the text."""

from __future__ import annotations

import pytest

from profiles import catalog
from profiles.models import Expectation
from validation.checks import CHECKS
from validation.checks.base import Check
from validation.checks.tool_network import EadmAnswer, EfaPresent, RdmaCounted, RdmaPorts
from validation.checks.tool_pci import AcsAlone, AcsLinesAlone, PciAlone
from validation.checks.tool_smi import NvlinkAlone, PeersAlone, RetiredPagesListed, SmiTableRead, SmiVersionsMatch
from validation.checks.tool_topology import TopologyAlone
from validation.checks.tools import (
    TOOL_CHECKS,
    NvlinkErrorCounters,
    RaidWhole,
    VgpuLicensed,
)
from validation.facts.eadm import Eadm
from validation.facts.gpu import Gpu, GpuInventory, NvLink
from validation.facts.host import Acs, EfaNics, P2pMatrix, PciBus, RdmaDevice, RdmaDevices, Topology
from validation.facts.lspci import AcsLines
from validation.facts.mdstat import RaidArray, RaidArrays
from validation.facts.missing import Missing, Reason
from validation.facts.nvlink_errors import LinkErrors, NvLinkErrors
from validation.facts.rdma_counters import PortCounters, RdmaCounters
from validation.facts.smi_list import SmiVersion
from validation.facts.smi_rows import RetiredPageCount, RetiredPageList
from validation.facts.smi_table import SmiTable
from validation.facts.store import Facts
from validation.facts.vgpu import VgpuLicense, VgpuLicenses
from validation.verdict import Verdict

H100 = "NVIDIA H100 80GB HBM3"
NOTHING = Missing(Reason.NOT_APPLICABLE, "N/A")


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


def heated(degrees: float) -> SmiTable:
    return SmiTable(GpuInventory("nvidia-smi", (Gpu(index=0, temperature_c=degrees),)))


def port(name: str = "a", **said: object) -> RdmaDevices:
    return RdmaDevices((RdmaDevice(name, **said),))  # type: ignore[arg-type]


def counters(**counted: int) -> RdmaCounters:
    return RdmaCounters((PortCounters("a", counted),))


ROWS: list[tuple[Check, object, list[str]]] = [
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
    (NvlinkAlone(), inventory(linked(True, False, name="NVIDIA H100 PCIe")), []),
    (NvlinkAlone(), inventory(linked(True, False, index=3, name="Tesla V100-SXM2-32GB")), ["UNKNOWN GPU3: link 1"]),
    (NvlinkAlone(), inventory(linked(False, False, index=3, name="Tesla V100-SXM2-32GB")), []),
    (NvlinkAlone(), inventory(Gpu(0, name=H100, nvlinks=NOTHING)), []),
    # dcgmi names no board.
    (NvlinkAlone(), inventory(Gpu(0, nvlinks=(NvLink(0, active=False),))), ["WARN GPU0: all NVLinks are down"]),
    (PeersAlone(), peers("OK"), ["PASS host: all 2 pairs OK"]),
    (PeersAlone(), peers("CNS"), []),
    (PeersAlone(), peers("U"), ["UNKNOWN host: the driver does not know of 2 pairs"]),
    (PeersAlone(), peers("DR"), ["WARN host: 2 pairs disabled by a driver setting"]),
    # More of these four in test_tool_pci.py and test_tool_topology.py.
    (TopologyAlone(), Topology((0,), {}, {}, {}), []),
    (PciAlone(), PciBus(()), ["NOT_APPLICABLE host: no NVIDIA GPU among 0 PCI functions"]),
    (AcsAlone(), PciBus(()), []),
    (AcsLinesAlone(), AcsLines((Acs(frozenset()),)), ["PASS host: none of 1 function redirects"]),
    (RetiredPagesListed(), RetiredPageList(()), ["PASS host: no page is retired"]),
    (RetiredPagesListed(), pages(61), ["PASS host: at most 61 pages on one GPU"]),
    (RetiredPagesListed(), pages(62), ["FAIL 0000:3b:00.0: 62 pages are retired, 62 or more"]),
    (SmiTableRead(), table(0, 1), ["PASS host: no cell of 2 GPUs prints an error"]),
    (SmiTableRead(), heated(88), ["PASS host: no cell of 1 GPU prints an error"]),
    (
        SmiTableRead(),
        heated(105),
        ["WARN GPU0: 105 degrees C; boards slow down from 89", "PASS host: no cell of 1 GPU"],
    ),
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
    names = ("bandwidth", "containers", "dcgm", "host", "results", "services")
    own = {f"validation.checks.tool_{name}" for name in names}
    checks = {type(check) for check in TOOL_CHECKS} - {type(check) for check in CHECKS}
    assert {type(check) for check, _, _ in ROWS} == {check for check in checks if check.__module__ not in own}


def test_with_a_profile_the_gates_own_checks_judge_links_and_peers() -> None:
    expected = Expectation(instance_type="p5.48xlarge", profile=catalog.load("p5.48xlarge"))
    assert list(NvlinkAlone().evaluate(Facts({GpuInventory: inventory(linked())}), expected)) == []
    assert list(PeersAlone().evaluate(Facts({P2pMatrix: peers("OK")}), expected)) == []
