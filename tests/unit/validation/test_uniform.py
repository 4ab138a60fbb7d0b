"""Hosts of a stack are compared with each other: what differs, what it comes to, and what is not compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from validation import uniform
from validation.facts.components import Components
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.host import CudaToolkits, HostInfo
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.store import Facts
from validation.report.model import HostReport, StackReport
from validation.verdict import FaultClass, Finding, Verdict

ALIKE = {
    "driver": "580.105.08",
    "kernel": "6.8.0-1044-aws",
    "os": "ubuntu 22.04",
    "image": "ami-1",
    "cuda": "13.0.88",
    "nccl": "2.28.3",
    "aws_ofi_nccl": "1.17.2",
    "vbios": "96.00.99.00.01",
    "gsp_firmware": "580.105.08",
}


def host(name: str, kind: str = "p5.48xlarge", verdict: Verdict = Verdict.PASS, **changes: str) -> HostReport:
    finding = Finding("gpu.count", name, verdict, "8 GPUs")
    inventory = {key: value for key, value in {**ALIKE, **changes}.items() if value}
    return HostReport(name, "", f"i-{name}", kind, verdict, (finding,), inventory=inventory)


def judged(*hosts: HostReport) -> StackReport:
    return uniform.compared(StackReport(Verdict.PASS, hosts))


def test_hosts_that_are_alike_pass_and_say_so() -> None:
    report = judged(host("a"), host("b"))
    assert report.verdict is Verdict.PASS
    (finding,) = report.findings
    assert (finding.check, finding.subject, finding.verdict) == ("stack.uniform", "stack", Verdict.PASS)
    assert finding.message.startswith("2 hosts of p5.48xlarge are alike: driver, kernel, operating system")


def test_a_single_host_is_compared_with_nothing() -> None:
    assert judged(host("a")).findings == ()
    assert judged(host("a"), host("b", "g5.xlarge", driver="535.104.05")).findings == ()


@pytest.mark.parametrize("rule", uniform.RULES, ids=lambda rule: rule.key)
def test_a_difference_comes_to_what_its_rule_says(rule: uniform.Rule) -> None:
    report = judged(host("a"), host("b"), replace(host("c"), inventory={**ALIKE, rule.key: "other"}))
    (finding,) = report.findings
    assert (finding.check, finding.subject, finding.verdict) == (rule.check, "stack", rule.verdict)
    assert finding.message == f"the hosts have 2 versions of {rule.what}: {ALIKE[rule.key]} on a, b; other on c"
    assert finding.remedy == rule.remedy
    assert (finding.fault_class is not None) == (rule.verdict is Verdict.FAIL)
    assert report.verdict is rule.verdict


def test_driver_and_kernel_close_the_gate_and_board_firmware_does_not() -> None:
    assert judged(host("a"), host("b", driver="535.104.05")).healthy is False
    assert judged(host("a"), host("b", kernel="6.8.0-1050-aws")).healthy is False
    assert judged(host("a"), host("b", vbios="96.00.89.00.01")).healthy is True


def test_the_odd_host_is_named_beside_many() -> None:
    hosts = [host(f"gpu-{at}") for at in range(15)]
    report = judged(*hosts, host("gpu-15", driver="535.104.05"))
    assert report.findings[0].message.endswith("580.105.08 on 15 hosts; 535.104.05 on gpu-15")
    assert report.findings[0].fault_class is FaultClass.SOFTWARE


def test_types_are_compared_each_by_itself() -> None:
    pair = (host("c", "g5.xlarge", driver="535.104.05"), host("d", "g5.xlarge", driver="570.1"))
    report = judged(host("a"), host("b"), *pair)
    assert [(f.subject, f.check) for f in report.findings] == [
        ("stack/p5.48xlarge", "stack.uniform"),
        ("stack/g5.xlarge", "stack.driver"),
    ]


def test_what_was_not_read_on_a_host_is_no_difference_and_a_host_not_reached_stays_unknown() -> None:
    assert judged(host("a"), host("b", nccl="")).verdict is Verdict.PASS
    unreached = HostReport("c", "", "", "p5.48xlarge", Verdict.UNKNOWN, ())
    assert judged(host("a"), unreached).verdict is Verdict.UNKNOWN
    assert judged(host("a"), host("b"), unreached).verdict is Verdict.UNKNOWN


def test_the_inventory_holds_what_could_be_read_and_nothing_else() -> None:
    info = HostInfo("h", "ubuntu", "22.04", "6.8.0-1044-aws", "x86_64", "boot", ABSENT, "/", image="ami-1")
    gpus = (Gpu(0, vbios="96.00.99.00.01", gsp_firmware=Missing(Reason.NOT_APPLICABLE, "N/A")), Gpu(1, vbios="96.1"))
    components = Components(ABSENT, "1.45.0", ABSENT, "1.17.2", ("2.27.7", "2.28.3"), ABSENT, ABSENT, ABSENT)
    facts = [info, GpuInventory("nvml", gpus, driver_version="580.105.08"), components]
    facts.append(CudaToolkits({"/usr/local/cuda": "13.0.88", "/usr/local/cuda-12.8": "12.8.1"}))
    found = uniform.inventory_of(Facts({type(fact): fact for fact in facts}))
    assert found == {
        "os": "ubuntu 22.04",
        "image": "ami-1",
        "kernel": "6.8.0-1044-aws",
        "driver": "580.105.08",
        "vbios": "96.00.99.00.01, 96.1",
        "cuda": "13.0.88",
        "nccl": "2.27.7, 2.28.3",
        "aws_ofi_nccl": "1.17.2",
    }
    assert uniform.inventory_of(Facts({})) == {}


def test_every_rule_has_an_id_of_its_own_a_reason_and_a_way_out() -> None:
    ids = [rule.check for rule in uniform.RULES] + [uniform.UNIFORM]
    assert len(set(ids)) == len(ids)
    assert all(rule.check.startswith("stack.") for rule in uniform.RULES)
    assert all(rule.why.endswith(".") and rule.remedy.endswith(".") and rule.source for rule in uniform.RULES)
