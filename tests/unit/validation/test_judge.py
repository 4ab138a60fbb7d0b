"""The judge: whatever is not an answer is UNKNOWN, and closes the gate."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

import profiles
from profiles import catalog
from profiles.expectation import expect
from profiles.models import Expectation
from validation import judge as judging
from validation.checks import CHECKS
from validation.checks.base import Check
from validation.evidence import Bundle
from validation.facts.gpu import GpuInventory
from validation.facts.host import HostInfo, KernelLog
from validation.facts.store import Facts, Gap
from validation.judge import judge, judge_facts
from validation.verdict import FaultClass, Finding, Verdict, combine

HERE = HostInfo("h", "ubuntu", "22.04", "6.8", "x86_64", "boot", "i-1", "/")


class Probe(Check):
    """A check that does what it is told."""

    id = "test.probe"
    title = why = source = remedy = "Text."
    fault_class = FaultClass.REPLACE_NOW
    requires = (KernelLog,)
    needs_profile = False

    def __init__(self, *verdicts: Verdict, raises: Exception | None = None, need: type | None = None) -> None:
        self.verdicts, self.raises, self.needed = verdicts, raises, need

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        for verdict in self.verdicts:
            yield self.finding(verdict, "GPU1", "said")
        if self.needed:
            facts.need(self.needed)
        if self.raises:
            raise self.raises


class Advised(Probe):
    id = "topology.p2p"


class NeedsProfile(Probe):
    id = "test.profiled"
    needs_profile = True


def judged(check: Check, facts: Facts | None = None, expected: Expectation | None = None) -> tuple[Finding, ...]:
    return judge_facts(facts or Facts({HostInfo: HERE}), expected or expect("g5.48xlarge"), "host1", [check])


def test_a_subject_is_prefixed_with_the_host() -> None:
    (finding,) = judged(Probe(Verdict.PASS))
    assert (finding.subject, finding.verdict, finding.required) == ("host1/GPU1", Verdict.PASS, True)


def test_a_missing_fact_is_unknown_and_names_the_fact_the_reason_and_the_evidence() -> None:
    facts = Facts({}, {KernelLog: Gap("dmesg: permission denied", "kernel-log")})
    (finding,) = judged(Probe(need=KernelLog), facts)
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.message == "could not look: dmesg: permission denied"
    assert finding.measured == "no kernel log"
    assert finding.evidence == "kernel-log"
    assert finding.remedy == "Make this readable and validate again: kernel log (evidence kernel-log)."
    assert finding.required


def test_what_was_found_before_the_gap_is_kept() -> None:
    verdicts = [finding.verdict for finding in judged(Probe(Verdict.FAIL, need=KernelLog))]
    assert verdicts == [Verdict.FAIL, Verdict.UNKNOWN]


def test_one_gap_that_stops_many_checks_is_told_once() -> None:
    facts = Facts({}, {KernelLog: Gap("dmesg: permission denied", "kernel-log")})
    findings = judge_facts(facts, expect("g5.xlarge"), "host1", [Probe(need=KernelLog), Advised(need=KernelLog)])
    assert findings[0].message == "could not look: dmesg: permission denied"
    assert findings[1].message.startswith("could not look: for the reason given at test.probe")
    assert findings[1].remedy == findings[0].remedy


def test_a_crash_is_unknown_with_its_traceback() -> None:
    (finding,) = judged(Probe(raises=KeyError("link")))
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.message.startswith("the check crashed: KeyError: 'link' [test_judge.py:")
    assert " evaluate < judge.py:" in finding.message


def test_a_check_that_says_nothing_is_unknown() -> None:
    (finding,) = judged(Probe())
    assert (finding.verdict, finding.message) == (Verdict.UNKNOWN, "the check said nothing")


def test_an_advisory_check_never_closes_the_gate_and_says_why() -> None:
    (finding,) = judged(Advised(Verdict.UNKNOWN))
    assert not finding.required
    assert finding.message == "said (advisory on this type: no capture of topo -p2p of this type)"
    good = judged(Probe(Verdict.PASS))
    assert combine((*good, finding)) is Verdict.WARN


def test_an_unknown_type_is_one_unknown_with_the_way_out_and_what_was_not_judged() -> None:
    checks = [Probe(Verdict.PASS), NeedsProfile(Verdict.PASS)]
    findings = judge_facts(Facts({}), expect("g5.49xlarge"), "host1", checks)
    assert findings[0].check == "host.profile"
    assert findings[0].verdict is Verdict.UNKNOWN
    assert findings[0].message.startswith("instance type 'g5.49xlarge' is not in the catalogue (nearest: g5.")
    assert findings[0].message.endswith("not judged: test.profiled")
    assert findings[1].verdict is Verdict.PASS
    assert combine(findings) is Verdict.UNKNOWN


def test_a_type_without_nvidia_gpus_is_unknown_and_nobody_is_sent_to_draft_a_profile() -> None:
    (finding,) = judge_facts(Facts({}), expect("trn2.48xlarge"), "host1", [NeedsProfile(Verdict.PASS)])
    assert finding.verdict is Verdict.UNKNOWN
    assert "it has AWS Trainium2, and Kiln judges NVIDIA GPUs only" in finding.message
    assert finding.remedy == "Take an instance type with NVIDIA GPUs, or leave the host out of the gate."


def test_evidence_that_did_not_arrive_whole_is_one_unknown() -> None:
    bundle = Bundle("host1", {}, complete=False, notes=("connection lost after 3 s",))
    (finding,) = judge(bundle, expect("g5.xlarge"), host="host1")
    assert (finding.check, finding.verdict, finding.required) == ("evidence.complete", Verdict.UNKNOWN, True)
    assert finding.message == "the evidence did not arrive whole: connection lost after 3 s"


def test_an_empty_bundle_passes_nothing() -> None:
    """Every check answers, and only what does not apply by the profile or the request is no UNKNOWN."""
    findings = judge(Bundle("host1", {}), expect("p5.48xlarge", efa_count=32, burn_in="quick"), host="host1")
    assert {finding.check for finding in findings} == {check.id for check in CHECKS}
    assert {finding.verdict for finding in findings} <= {Verdict.UNKNOWN, Verdict.NOT_APPLICABLE, Verdict.FAIL}
    assert combine(findings) in (Verdict.UNKNOWN, Verdict.FAIL)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_without_facts_no_check_passes_or_warns(check: Check) -> None:
    pins = catalog.software("dlami-base-2026-01").model_copy(update={"nccl": "2.28", "container_toolkit": "1.18"})
    everything_asked = expect("p4d.24xlarge", efa_count=4, software=pins, burn_in="quick")
    if check.id == "rdma.peer_memory":  # for InfiniBand, which no type with EFA has
        everything_asked = expect("g5.xlarge")
    findings = judge_facts(Facts({}), everything_asked, "host1", [check])
    assert [finding.verdict for finding in findings] == [Verdict.UNKNOWN]
    assert findings[0].remedy


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_an_inventory_without_gpus_passes_no_gpu(check: Check) -> None:
    facts = Facts({GpuInventory: GpuInventory("nvml", ())})
    if check.requires != (GpuInventory,) or check.id in ("driver.loaded", "driver.version", "gpu.lost"):
        return
    verdicts = {
        f.verdict for f in judge_facts(facts, expect("p5.48xlarge", software="dlami-base-2026-01"), "h", [check])
    }
    assert verdicts <= {Verdict.UNKNOWN, Verdict.FAIL}


@pytest.mark.parametrize(
    "changed",
    [
        "validation/judge.py",
        "validation/verdict.py",
        "validation/units.py",
        "validation/checks/xid.csv",
        "validation/facts/kernel_log.py",
        "profiles/software-matrix.csv",
    ],
)
def test_the_digest_changes_with_every_file_that_judges(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    for name in ("validation", "profiles"):
        shutil.copytree(repository / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(judging, "__file__", str(tmp_path / "validation" / "judge.py"))
    monkeypatch.setattr(profiles, "__file__", str(tmp_path / "profiles" / "__init__.py"))
    assert judging._digest() == judging.JUDGE_DIGEST
    (tmp_path / changed).write_text("changed")
    assert judging._digest() != judging.JUDGE_DIGEST


class Safety(Probe):
    id = "topology.p2p"  # advisory on g5.48xlarge
    safety = True


def test_no_profile_excuses_a_fault_of_safety_that_was_seen() -> None:
    (finding,) = judged(Safety(Verdict.FAIL))
    assert finding.required
    (unknown,) = judged(Safety(Verdict.UNKNOWN))  # what cannot be known of a type may be excused
    assert not unknown.required
