"""Burn-ins on scripted hosts: when one runs, when an earlier one counts, what it leaves behind."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from profiles.models import Expectation
from validation import host_findings
from validation.evidence import AFTER_BURN_IN, Bundle
from validation.report.model import BurnInRecord
from validation.runner import Options
from validation.verdict import Finding, Verdict

pytestmark = pytest.mark.usefixtures("fast_pauses", "judging")

QUICK = Options(deadline_s=10.0, burn_in="quick")


def test_a_burn_in_runs_after_the_rest_was_judged_good_and_is_recorded(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml())
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK)
    assert host.log == ["knock", "ready?", "collect", "burn-in", "collect", "closed"]
    assert report.verdict is Verdict.PASS
    assert report.burn_in is not None
    assert report.burn_in.identity == report.identity
    assert (report.burn_in.level, report.burn_in.result) == ("quick", '{"level": "quick"}')
    assert not report.burn_in_reused


@pytest.mark.parametrize(("items", "why"), [({"verdict": "FAIL"}, "already fail"), (None, "does not answer")])
def test_a_host_that_fails_or_does_not_answer_is_not_loaded(
    items: Any, why: str, scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items={} if items is None else nvml(**items))
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK)
    assert "burn-in" not in host.log
    assert report.findings[-1].check == "burnin.run"
    assert why in report.findings[-1].message
    assert not report.verdict.opens_gate


@pytest.mark.parametrize("result", [None, '{"bad": 1}'])
def test_a_burn_in_without_a_good_result_closes_the_gate(
    result: Any, scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml(), burn_in=result)
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK)
    assert report.verdict is Verdict.FAIL


@pytest.fixture
def earlier(scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any) -> BurnInRecord:
    """The record of a first run."""
    (report,) = run(scripted_remote(a=scripted_host(items=nvml())), target("a"), options=QUICK)
    record = report.burn_in
    assert isinstance(record, BurnInRecord)
    return record


def test_an_earlier_burn_in_of_the_same_host_is_reused_and_judged_again(
    earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml())
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK, previous={"a": earlier})
    assert "burn-in" not in host.log
    assert report.burn_in_reused
    assert report.burn_in == earlier
    assert report.findings[-1].check == "burnin.gemm"


@pytest.mark.parametrize(
    ("items", "changes", "options", "record"),
    [
        pytest.param({"boot_id": "boot-2"}, {}, {}, {}, id="rebooted"),
        pytest.param({}, {"instance_id": "i-9"}, {}, {}, id="another instance"),
        pytest.param({}, {"expectation": Expectation(instance_type="p4d.24xlarge")}, {}, {}, id="expectation"),
        pytest.param({}, {}, {"burn_in": "standard"}, {}, id="level"),
        pytest.param({}, {}, {"burn_in_lifetime_s": -1.0}, {}, id="too old"),
        pytest.param({}, {}, {}, {"ran_at": "2999-01-01T00:00:00Z"}, id="from the future"),
        pytest.param({}, {}, {}, {"ran_at": "yesterday"}, id="unreadable time"),
        pytest.param({}, {}, {}, {"ran_at": "2026-11-30T12:00:00"}, id="a time without zone"),
        pytest.param({}, {}, {}, {"result": '{"bad": 1}'}, id="no longer judged good"),
    ],
)
def test_an_earlier_burn_in_is_not_reused_where_anything_changed(
    items: Any,
    changes: Any,
    options: Any,
    record: Any,
    earlier: BurnInRecord,
    scripted_host: Any,
    scripted_remote: Any,
    run: Any,
    target: Any,
    nvml: Any,
) -> None:
    host = scripted_host(items=nvml(**items))
    (report,) = run(
        scripted_remote(a=host),
        target("a", **changes),
        options=dataclasses.replace(QUICK, **options),
        previous={"a": dataclasses.replace(earlier, **record)},
    )
    assert "burn-in" in host.log
    assert not report.burn_in_reused


def test_another_judge_does_not_reuse_a_burn_in(
    earlier: BurnInRecord,
    scripted_host: Any,
    scripted_remote: Any,
    monkeypatch: pytest.MonkeyPatch,
    run: Any,
    target: Any,
    nvml: Any,
) -> None:
    monkeypatch.setattr("validation.host_run.judge.JUDGE_DIGEST", "another")
    host = scripted_host(items=nvml())
    run(scripted_remote(a=host), target("a"), options=QUICK, previous={"a": earlier})
    assert "burn-in" in host.log


def test_a_record_of_one_host_is_not_used_for_another(
    earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml())
    run(scripted_remote(b=host), target("b"), options=QUICK, previous={"a": earlier})
    assert "burn-in" in host.log


@pytest.mark.parametrize(
    ("after", "said"),
    [
        pytest.param({"verdict": "FAIL"}, "FAIL gpu.count: as scripted", id="a fault that shows under load only"),
        pytest.param({"boot_id": "boot-2"}, "UNKNOWN host.identity: after the burn-in", id="rebooted"),
        pytest.param({"uuids": "GPU-a-0"}, "UNKNOWN host.identity: after the burn-in", id="a GPU is gone"),
    ],
)
def test_what_a_burn_in_leaves_behind_is_looked_at(
    after: Any, said: str, scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    (report,) = run(scripted_remote(a=scripted_host(items=nvml(), after=nvml(**after))), target("a"), options=QUICK)
    closing = [finding for finding in report.findings if not finding.verdict.opens_gate]
    assert [f"{f.verdict.value} {f.check}: {f.message}"[: len(said)] for f in closing] == [said]
    assert [finding.check for finding in report.findings].count("gpu.count") == 1
    assert not report.verdict.opens_gate


def test_what_was_looked_at_after_a_burn_in_is_kept_beside_what_was_before(
    scripted_host: Any, scripted_remote: Any, tmp_path: Path, run: Any, target: Any, nvml: Any
) -> None:
    options = dataclasses.replace(QUICK, keep_evidence=tmp_path)
    host = scripted_host(items=nvml(kernel="before"), after=nvml(kernel="after"))
    run(scripted_remote(a=host), target("a"), options=options)
    before, after = Bundle.read(tmp_path / "a"), Bundle.read(tmp_path / "a" / AFTER_BURN_IN)
    assert (before.items["kernel"].stdout, after.items["kernel"].stdout) == ("before", "after")
    # The next run into the same folder, without a burn-in, leaves nothing behind that would be judged with it.
    run(scripted_remote(a=scripted_host(items=nvml())), target("a"), options=Options(keep_evidence=tmp_path))
    assert not (tmp_path / "a" / AFTER_BURN_IN).exists()


def test_findings_made_anew_after_a_load_replace_their_own_and_no_others() -> None:
    def finding(check: str, verdict: Verdict, subject: str = "host") -> Finding:
        return Finding(check, subject, verdict, "")

    before = [finding("kernel.xid", Verdict.WARN, "a"), finding("kernel.xid", Verdict.WARN, "b")]
    before += [finding("gpu.throttle", Verdict.PASS), finding("ecc.mode", Verdict.PASS)]
    after = [finding("gpu.throttle", Verdict.FAIL), finding("kernel.xid", Verdict.FAIL)]
    after += [finding("evidence.complete", Verdict.UNKNOWN)]
    whole = [(f.check, f.verdict.value) for f in host_findings.after_load(before, after)]
    assert whole == [
        ("kernel.xid", "FAIL"),
        ("gpu.throttle", "PASS"),
        ("ecc.mode", "PASS"),
        ("evidence.complete", "UNKNOWN"),
    ]


def test_another_probe_does_not_reuse_a_burn_in(
    earlier: BurnInRecord,
    scripted_host: Any,
    scripted_remote: Any,
    monkeypatch: pytest.MonkeyPatch,
    run: Any,
    target: Any,
    nvml: Any,
) -> None:
    digest = "0" * 64
    monkeypatch.setattr("validation.host_run.bootstrap.digest", lambda: digest)
    host = scripted_host(items=nvml(), probe_digest=digest)
    run(scripted_remote(a=host), target("a"), options=QUICK, previous={"a": earlier})
    assert "burn-in" in host.log
