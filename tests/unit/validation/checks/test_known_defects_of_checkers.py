"""More defects of public checkers, by name: Kiln does not have them. Sources: the systems read for the project, 2026.

The first are in test_known_defects.py, those of tools in ../test_known_defects_of_tools.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from profiles import catalog
from profiles.expectation import expect
from profiles.models import Expected
from validation.checks import CHECKS
from validation.checks.errors import RecoveryAction, RowRemap, Throttle
from validation.checks.fabric import FabricState
from validation.checks.kernel import KernelXid
from validation.checks.links import NvlinkActive, NvlinkRate
from validation.checks.machine import EfaDevices
from validation.checks.network import EfaCount
from validation.checks.presence import GpuCount, GpuName, GpuPciBus
from validation.checks.settings import Firmware
from validation.checks.topology import NumaAffinity, TopologyPairs
from validation.checks.xid import xids
from validation.facts.gpu import Fabric, GpuInventory, NvLink, RemappedRows
from validation.facts.host import KernelEvent, KernelLog, NumaMap, Topology
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.judge import judge_facts
from validation.verdict import FaultClass, Finding, Verdict, combine, exit_code

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

Hosts = Callable[..., "Host"]
NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
P5 = "p5.48xlarge"


def findings(host: Host) -> tuple[Finding, ...]:
    return judge_facts(host.facts(), host.expected, "host", CHECKS)


def verdict(host: Host) -> Verdict:
    return combine(findings(host))


def xid(code: int, **changes: Any) -> KernelEvent:
    return KernelEvent("xid", 9, f"NVRM: Xid (PCI:0000:53:00): {code}, x", code, "0000:53:00.0", **changes)


# --- exits that say nothing: of azurehpc-health-checks, soperator, superbenchmark, deepops, crusoe, autopilot


@pytest.mark.parametrize("bad", [Verdict.FAIL, Verdict.UNKNOWN])
def test_what_is_not_good_never_ends_with_0(bad: Verdict) -> None:
    """superbenchmark 411, deepops gpu_diag.sh, gpu-burn 12, crusoe's "|| true", soperator's ERROR."""
    assert exit_code(bad) != 0


class Broken(KernelXid):
    def evaluate(self, facts: Facts, expected: Any) -> Any:
        raise RuntimeError("out of luck")


def test_a_check_that_ends_in_an_error_does_not_pass(host: Hosts) -> None:
    """soperator: a health-checker that ends with status ERROR exits 0."""
    healthy = host(P5)
    assert combine(judge_facts(healthy.facts(), healthy.expected, "host", [GpuCount(), Broken()])) is Verdict.UNKNOWN


@pytest.mark.parametrize("name", ["g5.xlarge", P5])
def test_a_host_without_any_gpu_does_not_pass(host: Hosts, name: str) -> None:
    """IBM autopilot says SKIP and exits 0; eks-node-monitoring-agent 241: 0 GPUs, and the node is Ready."""
    assert verdict(host(name).only(0)) is Verdict.FAIL


def test_a_tool_that_is_not_there_does_not_pass(host: Hosts) -> None:
    """az-hop 1796: exit status 127, and the node was taken for good."""
    assert verdict(host(P5).drop(GpuInventory, "nvidia-smi: not found")) is Verdict.UNKNOWN


def test_a_value_that_the_profile_does_not_give_does_not_pass(host: Hosts) -> None:
    """gpud: a threshold that is not set is Healthy."""
    assert host(P5).profiled(links={"nvlinks": None}).says(NvlinkActive())[0].startswith("UNKNOWN")


def test_a_finding_that_only_warns_is_told_as_a_warning_and_not_as_a_pass(host: Hosts) -> None:
    """AWS's NCCL check warns below its floor and then records a pass."""
    warned = host(P5).log(xid(13))
    assert verdict(warned) is Verdict.WARN
    assert [f.verdict for f in findings(warned) if f.check == "kernel.xid"] == [Verdict.WARN]


# --- counts: of cluster-health-scanner, NVSentinel, aicr


@pytest.mark.parametrize(("name", "count"), [("g6e.12xlarge", 4), ("p5.4xlarge", 1), (P5, 8)])
def test_the_number_of_gpus_is_the_machines_and_not_8(host: Hosts, name: str, count: int) -> None:
    """cluster-health-scanner asks for 8 on every machine."""
    assert host(name).says(GpuCount()) == [f"PASS host: {count} of {'1 GPU' if count == 1 else f'{count} GPUs'} found"]


def test_7_of_8_gpus_are_named_before_the_job_fails(host: Hosts) -> None:
    """NVIDIA/aicr 1858: it showed as an opaque error of NCCL."""
    assert host(P5).without(5).says(GpuCount()) == ["FAIL host: 7 of 8 GPUs found"]


def test_a_gpu_on_the_bus_that_the_driver_does_not_hold_is_found_and_audio_is_no_gpu(host: Hosts) -> None:
    """NVSentinel PR 684 and 833."""
    missing = host(P5).without(7)
    assert missing.says(GpuPciBus()) == ["FAIL 0000:ca:00.0: is on the PCI bus, but the driver does not hold it"]


def test_an_l4_is_not_taken_for_an_l40s(host: Hosts) -> None:
    """awsome-distributed-training labels g6 as L40S."""
    profile = catalog.load("g6.48xlarge")
    assert profile is not None
    assert profile.gpu.names.value == ("NVIDIA L4",)
    assert host("g6.48xlarge").gpu(3, name="NVIDIA L40S").says(GpuName())[0].startswith("FAIL GPU3")


# --- repairs: of azurehpc-health-checks, awsome-distributed-training


def test_more_than_512_remapped_rows_fail(host: Hosts) -> None:
    """azurehpc-health-checks reads the fourth of three columns, so that its limit never fires."""
    rows = RemappedRows(300, 300, pending=False, failure=False)
    assert host("p4d.24xlarge").gpu(0, remapped_rows=rows).says(RowRemap())[0].startswith("FAIL GPU0: 600 rows")


@pytest.mark.parametrize("name", ["p4d.24xlarge", P5])
def test_a_pending_remap_fails_on_a100_and_h100(host: Hosts, name: str) -> None:
    """awsome-distributed-training never looks there; azurehpc-health-checks reads Yes as 0."""
    rows = RemappedRows(0, 1, pending=True, failure=False)
    assert verdict(host(name).gpu(0, remapped_rows=rows)) is Verdict.FAIL


def test_two_versions_of_vbios_are_told(host: Hosts) -> None:
    """azurehpc-health-checks' test for it never fires."""
    assert host(P5).gpu(6, vbios="96.00.74.00.01").says(Firmware())[0].startswith("WARN host: 2 versions of VBIOS")


def test_a_gpu_that_throttles_fails(host: Hosts) -> None:
    """azurehpc-health-checks PR 3: the check of throttling has no way to fail."""
    assert host(P5).gpu(1, throttle_reasons=frozenset({"hw_slowdown"})).says(Throttle())[0].startswith("FAIL GPU1")


def test_the_drivers_own_verdict_is_read(host: Hosts) -> None:
    """gpu_recovery_action is in every query, and almost nobody reads it."""
    assert host(P5).gpu(1, recovery_action="Drain and Reset").says(RecoveryAction())[0].startswith("FAIL GPU1")


# --- Xid: of azurehpc-health-checks, gpud, DCGM

LEFT_OUT = (61, 62, 78, 79, 94, 95, 109, 119, 120, 136, 140, *range(143, 156))


@pytest.mark.parametrize("code", LEFT_OUT)
def test_an_xid_that_a_public_list_leaves_out_is_known(host: Hosts, code: int) -> None:
    """azurehpc-health-checks lacks these; DCGM 235 does not export 62; awsome's table ends with driver 590."""
    told = verdict(host(P5).log(xid(code)))
    assert (told is Verdict.PASS) == (xids()[code].effect is Verdict.PASS)  # 152 and 153 are information


@pytest.mark.parametrize("code", range(144, 151))
def test_an_error_of_nvlink_5_that_is_not_fatal_is_not_called_fatal(host: Hosts, code: int) -> None:
    """gpud 1160 and 1174."""
    assert host(P5).log(xid(code, fatal=False)).says(KernelXid())[0].startswith("WARN")
    assert host(P5).log(xid(code, fatal=True)).says(KernelXid())[0].startswith("FAIL")


def test_an_xid_that_nobody_knows_is_not_passed_over(host: Hosts) -> None:
    """A list of known numbers is silent about the next one."""
    assert host(P5).log(xid(999)).says(KernelXid())[0].startswith("WARN")


def test_a_line_of_a_driver_that_nobody_knows_is_told(host: Hosts) -> None:
    """Only imbue-ai/cluster-health reports what is on no list."""
    line = KernelEvent("driver-unknown", 9, "NVRM: a new kind of trouble: error 7")
    assert verdict(host(P5).log(line)) is Verdict.WARN


def test_a_log_that_cannot_be_read_does_not_pass(host: Hosts) -> None:
    """azurehpc-health-checks: no syslog, so the scan is skipped, so it passes."""
    assert verdict(host(P5).drop(KernelLog, "dmesg: Operation not permitted")) is Verdict.UNKNOWN


# --- links: of awsome-distributed-training, imbue, gpud, NVSentinel, azhpc-images, cluster-toolkit


@pytest.mark.parametrize("up", [1, 17])
def test_some_links_are_not_all_links(host: Hosts, up: int) -> None:
    """awsome-distributed-training: one NVLink anywhere passes, and an inactive one only warns."""
    links = tuple(NvLink(index, index < up, 26.562) for index in range(18))
    assert (
        host(P5).gpu(3, nvlinks=links).says(NvlinkActive())[0].startswith(f"FAIL GPU3{'/link17' if up == 17 else ''}")
    )


def test_number_0_is_a_number(host: Hosts) -> None:
    """imbue-ai/cluster-health: "if not rail" is true of rail 0."""
    links = tuple(NvLink(index, index != 0, 26.562) for index in range(18))
    assert host(P5).gpu(0, nvlinks=links).says(NvlinkActive()) == [
        "FAIL GPU0/link0: 17 of 18 NVLinks active, link 0 is down"
    ]
    away = host(P5)
    numa = away.facts().need(NumaMap)
    away.put(replace(numa, gpu_node={**numa.gpu_node, "0000:97:00.0": 0}))
    assert away.says(NumaAffinity()) == ["FAIL GPU4: on NUMA node 0"]


def test_boards_without_a_bridge_need_no_link(host: Hosts) -> None:
    """DCGM 49, NVSentinel PR 1481: a PCIe card without a bridge lists links, all of them inactive."""
    none = Expected[int](value=0, source="golden")
    down = tuple(NvLink(index, active=False) for index in range(12))
    card = host("p4d.24xlarge").profiled(links={"nvlinks": none}).every(nvlinks=down)
    assert card.says(NvlinkActive()) == ["NOT_APPLICABLE host: this machine has no NVLink by design"]
    card.every(nvlinks=())
    assert card.says(NvlinkActive()) == ["NOT_APPLICABLE host: this machine has no NVLink by design"]


def test_the_rate_of_a_link_is_its_machines(host: Hosts) -> None:
    """cluster-toolkit PR 5942: a daemon that expects 53.125 GB/s of every link."""
    for name, rate in ((P5, 26.562), ("p6-b200.48xlarge", 53.125)):
        assert host(name).says(NvlinkRate())[0].startswith(f"PASS host: {rate} GB/s")
    slow = tuple(NvLink(index, active=True, rate_gbps=26.562) for index in range(18))
    assert host("p6-b200.48xlarge").gpu(0, nvlinks=slow).says(NvlinkRate())[0].startswith("FAIL GPU0")


def test_a_cell_of_the_matrix_that_says_self_is_no_link(host: Hosts) -> None:
    """awsome-distributed-training's test for "X" is a no-op."""
    odd = host(P5)
    topology = odd.facts().need(Topology)
    cells = {**topology.links, (0, 1): "X", (1, 0): "X"}
    assert odd.put(replace(topology, links=cells)).says(TopologyPairs())[0].startswith("FAIL GPU0-GPU1")


# --- fabric: of gpud, NVSentinel, azhpc-images


def test_a_board_that_has_no_fabric_is_not_asked_for_one(host: Hosts) -> None:
    """gpud PR 1147: H100 PCIe says Not Supported, and was flagged."""
    assert host("g6e.xlarge").says(FabricState())[0].startswith("NOT_APPLICABLE")


def test_a_fabric_that_the_machine_has_and_the_driver_does_not_show_does_not_pass(host: Hosts) -> None:
    """NVSentinel 883: the fabric of an H100 was not detected, so nothing was checked."""
    assert host(P5).every(fabric=Fabric(NONE, NONE, NONE, NONE)).says(FabricState())[0].startswith("UNKNOWN")


def test_a_zero_clique_fails_where_a_rack_is_one_fabric(host: Hosts) -> None:
    """The rule of azhpc-images PR 506 is right for GB200 alone."""
    zero = "00000000-0000-0000-0000-000000000000"
    rack = host("p6e-gb200.36xlarge")
    assert rack.says(FabricState())[0].startswith("PASS")
    assert rack.every(fabric=Fabric("Completed", "Success", 0, zero)).says(FabricState())[0].startswith("FAIL")


def test_completed_and_success_do_not_hide_a_fabric_that_calls_itself_unhealthy(host: Hosts) -> None:
    sick = Fabric("Completed", "Success", 7, "a-b", "Unhealthy", (("route_unhealthy", "True"),))
    assert host("p6e-gb200.36xlarge").gpu(0, fabric=sick).says(FabricState())[0].startswith("FAIL GPU0")


# --- EFA: of awsome-distributed-training, aws-k8s-tester


def test_as_many_efas_as_the_stack_asked_for_are_enough(host: Hosts) -> None:
    """awsome-distributed-training isolates a node that was given fewer EFAs than its type can have."""
    assert host(P5, efa_count=8).says(EfaCount()) == ["PASS host: 8 EFA NICs, as asked for"]
    assert host(P5).says(EfaDevices())[0].startswith("NOT_APPLICABLE")


# --- life of a verdict


def test_a_machine_that_no_list_has_can_be_drafted(host: Hosts) -> None:
    """azurehpc-health-checks 54, 133, 134: "SKU currently not supported", and no way on."""
    (finding,) = [
        f for f in judge_facts(host(P5).facts(), expect("new.1xlarge"), "h", CHECKS) if f.check == "host.profile"
    ]
    assert "kiln baseline record" in finding.remedy


def test_a_fault_says_which_kind_of_action_mends_it(host: Hosts) -> None:
    """Checkers that print text leave it to a person whether to reboot or to replace."""
    for broken, wanted in (
        (host(P5).without(3), FaultClass.REPLACE_NOW),
        (host(P5).gpu(0, remapped_rows=RemappedRows(0, 1, pending=True, failure=False)), FaultClass.REBOOT_ONCE),
        (host(P5).driver(driver_version="535.104.05").pinning(driver="580"), FaultClass.SOFTWARE),
        (host(P5).gpu(0, mig_enabled=True), FaultClass.CONFIGURATION),
    ):
        assert wanted in {finding.fault_class for finding in findings(broken) if finding.verdict is Verdict.FAIL}
