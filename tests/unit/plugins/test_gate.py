"""The gate inside the provider: whatever happens, there is a verdict to record, and only findings open it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plugins.kiln import gate as gates
from plugins.kiln.gate import Gate
from validation.report.model import BurnInRecord, HostReport, Identity, StackReport
from validation.verdict import FaultClass, Finding, Verdict

KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    "c2VjcmV0LWxpbmUtb25l\nc2VjcmV0LWxpbmUtdHdv\n"
    "-----END OPENSSH PRIVATE KEY-----\n"
)
HOST = {
    "name": "node-0",
    "address": "192.0.2.1",
    "instanceType": "g5.xlarge",
    "user": "ubuntu",
    "privateKey": KEY,
    "hostKey": "ssh-ed25519 AAAA",
    "instanceId": "i-1",
}
INPUTS: dict[str, Any] = {"hosts": [HOST], "recheck": "token", "burnIn": "quick", "deadlineSeconds": 5}


def finding(verdict: Verdict, message: str = "looked") -> Finding:
    fault = FaultClass.REBOOT_ONCE if verdict is Verdict.FAIL else None
    return Finding("gpu.count", "node-0/GPU3", verdict, message, "7", "8", remedy="Replace it.", fault_class=fault)


def report(
    *verdicts: Verdict, host: str = "node-0", message: str = "looked", claim: Verdict | None = None
) -> StackReport:
    findings = tuple(finding(verdict, message) for verdict in verdicts)
    claimed = claim or verdicts[0]
    return StackReport(claimed, (HostReport(host, "192.0.2.1", "i-1", "g5.xlarge", claimed, findings),))


def judge(
    validate: Callable[..., StackReport],
    *,
    inputs: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    cancelled: threading.Event | None = None,
) -> dict[str, Any]:
    made = Gate(validate, cancelled or threading.Event())
    return made.judge(INPUTS if inputs is None else inputs, old or {}, frozenset({KEY}), lambda *_: None)


@pytest.mark.parametrize(
    ("verdict", "healthy"),
    [(Verdict.PASS, True), (Verdict.WARN, True), (Verdict.UNKNOWN, False), (Verdict.FAIL, False)],
)
def test_the_verdict_is_recorded_with_what_it_is_bound_to(verdict: Verdict, healthy: bool) -> None:
    found = judge(lambda *_, **__: report(verdict))
    assert (found["verdict"], found["healthy"]) == (verdict.value, healthy)
    assert (found["recheck"], found["judged"]) == ("token", ["i-1"])
    assert json.loads(found["report"])["schema"] == "kiln/report/v1"


def test_the_summary_names_check_subject_numbers_and_remedy() -> None:
    assert judge(lambda *_, **__: report(Verdict.FAIL))["summary"] == (
        "FAIL: 0 of 1 hosts judged good\nFAIL gpu.count node-0/GPU3: looked (measured 7, expected 8) -> Replace it."
    )


def test_a_long_list_of_causes_is_cut_and_says_so() -> None:
    lines = judge(lambda *_, **__: report(*[Verdict.FAIL] * 11))["summary"].splitlines()
    assert lines[-1] == "... and 3 more, in the report"
    assert len(lines) == 10


def test_a_report_better_than_its_findings_does_not_open_the_gate() -> None:
    found = judge(lambda *_, **__: report(Verdict.FAIL, claim=Verdict.PASS))
    assert (found["verdict"], found["healthy"]) == ("FAIL", False)


def test_what_was_found_about_the_hosts_together_closes_the_gate_and_is_kept() -> None:
    unlike = Finding("stack.driver", "stack", Verdict.FAIL, "two drivers", fault_class=FaultClass.SOFTWARE)
    found = judge(lambda *_, **__: replace(report(Verdict.PASS), findings=(unlike,)))
    assert (found["verdict"], found["healthy"]) == ("FAIL", False)
    assert found["summary"] == "FAIL: 1 of 1 hosts judged good\nFAIL stack.driver stack: two drivers"
    assert json.loads(found["report"])["findings"][0]["check"] == "stack.driver"


def test_a_host_that_was_left_out_is_unknown() -> None:
    found = judge(lambda *_, **__: report(Verdict.PASS, host="another"))
    assert (found["verdict"], found["healthy"]) == ("UNKNOWN", False)
    assert "the validation left this host out" in found["summary"]


def test_a_report_without_hosts_is_unknown() -> None:
    assert judge(lambda *_, **__: StackReport(Verdict.PASS, ()))["healthy"] is False


def test_a_crash_is_unknown_in_one_line_without_the_key() -> None:
    def crash(*_: Any, **__: Any) -> StackReport:
        raise ValueError(f"cannot load {KEY}")

    found = judge(crash)
    assert (found["verdict"], found["healthy"]) == ("UNKNOWN", False)
    assert "ValueError: cannot load" in found["summary"]
    everything = json.dumps(found)
    assert "c2VjcmV0" not in everything
    assert "Traceback" not in everything


def test_a_secret_in_a_finding_does_not_reach_the_outputs() -> None:
    everything = json.dumps(judge(lambda *_, **__: report(Verdict.FAIL, message=KEY)))
    assert "c2VjcmV0" not in everything


@pytest.mark.parametrize("change", [{"software": "no-such-profile"}, {"hosts": "nonsense"}, {"hosts": [{"name": "x"}]}])
def test_inputs_that_cannot_be_used_are_unknown_and_not_raised(change: dict[str, Any]) -> None:
    found = judge(lambda *_, **__: report(Verdict.PASS), inputs={**INPUTS, **change})
    assert (found["verdict"], found["healthy"]) == ("UNKNOWN", False)


def test_a_cancel_is_unknown_within_two_seconds_though_the_runner_does_not_listen() -> None:
    cancelled, release = threading.Event(), threading.Event()

    def deaf(*_: Any, **__: Any) -> StackReport:
        release.wait(30)
        return report(Verdict.PASS)

    threading.Timer(0.1, cancelled.set).start()
    begun = time.monotonic()
    found = judge(deaf, cancelled=cancelled)
    release.set()
    assert time.monotonic() - begun < 2
    assert found["verdict"] == "UNKNOWN"
    assert "interrupted before a verdict was reached" in found["summary"]


def test_a_good_verdict_that_comes_after_a_cancel_is_unknown() -> None:
    cancelled = threading.Event()

    def late(*_: Any, **__: Any) -> StackReport:
        cancelled.set()
        return report(Verdict.PASS)

    assert judge(late, cancelled=cancelled)["healthy"] is False


def test_a_runner_that_never_returns_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "DEADLINE_GRACE_S", 0.0)
    release = threading.Event()

    def stuck(*_: Any, **__: Any) -> StackReport:
        release.wait(30)
        return report(Verdict.PASS)

    found = judge(stuck, inputs={**INPUTS, "deadlineSeconds": 0.2})
    release.set()
    assert "no verdict within 0 s" in found["summary"]
    assert found["healthy"] is False


def test_the_last_burn_in_is_handed_to_the_next_run() -> None:
    record = BurnInRecord(Identity("i-1", "boot", (), "580", "e", "j"), "quick", "2026-01-01T00:00:00Z", "{}")
    host = HostReport("node-0", "", "i-1", "g5.xlarge", Verdict.PASS, (finding(Verdict.PASS),), burn_in=record)
    old = {"report": json.dumps(StackReport(Verdict.PASS, (host,)).to_dict())}
    seen: list[Any] = []

    def validate(*_: Any, previous: Any, **__: Any) -> StackReport:
        seen.append(dict(previous))
        return report(Verdict.PASS)

    judge(validate, old=old)
    judge(validate, old={"report": "{"})
    judge(validate)
    assert seen == [{"node-0": record}, {}, {}]
