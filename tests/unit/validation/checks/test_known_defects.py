"""Defects of public checkers, by name: Kiln does not have them. Sources: the systems read for the project, 2026."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from profiles.expectation import expect
from profiles.models import Expected, Range
from validation.checks import CHECKS
from validation.checks.fabric import FabricManager, FabricState
from validation.checks.links import NvlinkActive, PcieWidth
from validation.checks.presence import GpuCount, GpuName, GpuPciBus
from validation.checks.topology import NumaAffinity, P2pStatus, TopologyPairs
from validation.facts.gpu import Ecc, GpuInventory, NvLink, RemappedRows
from validation.facts.host import PciBus, PciDevice
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

NONE = Missing(Reason.NOT_APPLICABLE, "[N/A]")
Hosts = Callable[..., "Host"]


def verdict(host: Host) -> Verdict:
    return combine(judge_facts(host.facts(), host.expected, "host", CHECKS))


def test_an_unknown_machine_type_does_not_pass() -> None:
    """azurehpc-health-checks and soperator exit 0 there."""
    findings = judge_facts(Facts({}), expect("nd-unknown.8xlarge"), "host", CHECKS)
    assert combine(findings) is Verdict.UNKNOWN


def test_a_check_that_could_not_look_does_not_pass(host: Hosts) -> None:
    """gpud without NVML is Healthy; a missing syslog passes azurehpc-health-checks."""
    assert verdict(host("p5.48xlarge").drop(GpuInventory)) is Verdict.UNKNOWN


def test_all_nvlinks_down_does_not_pass(host: Hosts) -> None:
    """gpud 1085, DCGM 198; imbue's grep for <inactive> finds nothing where the driver lists no link at all."""
    down = tuple(NvLink(index, False) for index in range(18))
    assert verdict(host("p5.48xlarge").every(nvlinks=down)) is Verdict.FAIL
    assert verdict(host("p5.48xlarge").every(nvlinks=())) is Verdict.FAIL


def test_not_available_is_never_read_as_zero(host: Hosts) -> None:
    """azurehpc-health-checks compares [N/A] as a number, which is false, so a pending remap passes."""
    unread = RemappedRows(NONE, NONE, NONE, NONE)
    assert verdict(host("p4d.24xlarge").gpu(0, remapped_rows=unread)) is Verdict.UNKNOWN
    assert verdict(host("p4d.24xlarge").gpu(0, ecc=Ecc(True, NONE, NONE, NONE, NONE))) is Verdict.UNKNOWN


def test_x8_by_design_is_no_fault(host: Hosts) -> None:
    """DCGM and aws-k8s-tester PR 806: the board could do x16, the machine gives it x8."""
    for name in ("g4dn.xlarge", "g5.xlarge", "g6.xlarge", "g6e.xlarge"):
        assert host(name).says(PcieWidth()) == ["PASS host: x8 on each of 1 GPU"]


def test_generation_1_while_idle_is_no_fault(host: Hosts) -> None:
    assert verdict(host("p5.48xlarge")) is Verdict.PASS
    assert {gpu.pcie.generation for gpu in host("p5.48xlarge").gpus} == {1}


def test_a_zero_clique_on_hgx_is_no_fault(host: Hosts) -> None:
    """azhpc-images PR 506 asks for a non-zero clique, which is right for GB200 only."""
    assert host("p5.48xlarge").says(FabricState()) == ["PASS host: fabric Completed on each of 8 GPUs"]


def test_12_of_18_links_by_design_is_no_fault(host: Hosts) -> None:
    """azurehpc-health-checks 162: H100 NVL has 12. The number belongs to the machine, not to the chip."""
    links = tuple(NvLink(index, index < 12, 26.562) for index in range(18))
    nvl = host("p5.48xlarge").profiled(links={"nvlinks": Expected[int](value=12, source="golden")}).every(nvlinks=links)
    assert nvl.says(NvlinkActive()) == ["PASS host: 12 NVLinks active on each of 8 GPUs"]


def test_phb_on_v100_and_a10g_and_no_p2p_on_l4_are_no_faults(host: Hosts) -> None:
    """Checkers that ask for NVLink between all pairs fail p3; awsome-distributed-training counts P2P legend lines."""
    assert host("p3.16xlarge").says(TopologyPairs())[0].startswith("PASS")
    assert host("g5.48xlarge").says(TopologyPairs())[0].startswith("PASS")
    assert host("g6.48xlarge").says(P2pStatus())[0].startswith("NOT_APPLICABLE")


def test_a_numa_range_is_not_a_mismatch(host: Hosts) -> None:
    assert host("p3.16xlarge").says(NumaAffinity())[0].startswith("NOT_APPLICABLE")


def test_fabric_manager_is_not_asked_for_without_nvswitch(host: Hosts) -> None:
    """NVIDIA/gpu-operator 610: it ends at once with nothing to do."""
    assert host("g6e.xlarge").says(FabricManager())[0].startswith("NOT_APPLICABLE")


def test_a_dead_gpu_on_the_bus_does_not_count_as_one(host: Hosts) -> None:
    """A count of PCI devices passes with rev ff."""
    broken = host("p5.48xlarge")
    dead = tuple(d if d.address != "0000:ca:00.0" else replace(d, dead=True) for d in bus(broken))
    assert broken.put(PciBus(dead)).says(GpuPciBus())[0].startswith("FAIL 0000:ca:00.0")


def bus(host: Host) -> tuple[PciDevice, ...]:
    return host.facts().need(PciBus).devices


def test_3_of_4_gpus_does_not_pass(host: Hosts) -> None:
    """eks-node-monitoring-agent PR 121: g6e.12xlarge with 3 of 4 GPUs, no Xid, everything passed."""
    assert host("g6e.12xlarge").without(3).says(GpuCount()) == ["FAIL host: 3 of 4 GPUs found"]


def test_a_board_whose_name_begins_alike_does_not_pass(host: Hosts) -> None:
    """A prefix match takes L40S, and the vGPU L4-3Q, for an L4."""
    for name in ("NVIDIA L40S", "NVIDIA L40", "NVIDIA L4-3Q"):
        assert host("g6.xlarge").gpu(0, name=name).says(GpuName())[0].startswith("FAIL")


def test_every_floor_can_fail_and_has_a_ceiling() -> None:
    """DCGM 4.6.0 has floors a thousand times too low (H200: 2,333 MB/s); OCI's sample reports 4,276 GB/s as ideal."""
    for name in ("p5.48xlarge", "p4d.24xlarge", "p3.16xlarge", "g6.xlarge"):
        profile = expect(name).profile
        assert profile is not None
        ranges = [value for value in vars(profile.burn_in).values() if isinstance(value, Range)]
        assert ranges
        for limits in ranges:
            assert limits.ceiling / limits.floor < 7, name
