from __future__ import annotations

import datetime as dt

import pytest

from kiln.commands.up import Result, read_result
from kiln.engine import Run
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict, combine

STARTED = dt.datetime(2026, 5, 1, 10, 0, 0, 500, tzinfo=dt.timezone.utc)
FAILED = Run(code=1, errors={"u": ["no capacity"]})


def judged(verdict: Verdict, *, started: str = "2026-05-01T10:00:00Z") -> StackReport:
    findings = (Finding("gpu.count", "h", verdict, "m"),)
    host = HostReport("h", "", "i-1", "p5.48xlarge", combine(findings), findings)
    return StackReport(host.verdict, (host,), started=started)


def read(report: StackReport | None, run: Run, **outputs: object) -> Result:
    healthy = report is not None and report.healthy
    return read_result({"healthy": healthy, "gate": "text", **outputs}, [report] if report else [], run, STARTED)


def test_a_good_run_is_healthy() -> None:
    result = read(judged(Verdict.PASS), Run())
    assert result.report is not None
    assert result.report.healthy
    assert result.reasons == ()


@pytest.mark.parametrize("run", [Run(), FAILED])
def test_a_failing_host_is_fail_whether_the_engine_failed_or_not(run: Run) -> None:
    result = read(judged(Verdict.FAIL), run)
    assert result.report is not None
    assert result.report.verdict is Verdict.FAIL


def test_the_report_of_a_run_that_ended_before_its_outputs_is_the_gates() -> None:
    result = read_result({"healthy": False}, [judged(Verdict.FAIL)], FAILED, STARTED)
    assert result.report is not None
    assert result.report.verdict is Verdict.FAIL


@pytest.mark.parametrize("healthy", [False, None, "true", 1])
def test_a_good_report_is_not_believed_where_the_output_healthy_is_not_true(healthy: object) -> None:
    result = read(judged(Verdict.PASS), Run(), healthy=healthy, gate="other hosts")
    assert result.report is not None
    assert result.report.verdict is Verdict.UNKNOWN
    assert result.reasons == ("gate: other hosts",)


def test_a_good_report_is_not_believed_where_the_program_does_not_conclude() -> None:
    result = read_result({}, [judged(Verdict.PASS)], Run(), STARTED)
    assert result.report is not None
    assert not result.report.healthy
    assert "does not conclude" in result.reasons[0]


def test_a_good_report_is_not_believed_where_the_engine_failed() -> None:
    result = read(judged(Verdict.PASS), FAILED)
    assert result.report is not None
    assert not result.report.healthy
    assert result.reasons == ("the engine failed: no capacity",)


@pytest.mark.parametrize("started", ["2026-05-01T09:59:59Z", "", "soon", "2026-05-01T10:00:00"])
def test_a_report_of_an_earlier_run_is_none_of_a_run_that_failed(started: str) -> None:
    assert read(judged(Verdict.PASS, started=started), FAILED).report is None


def test_a_stack_without_a_gate_has_no_result() -> None:
    assert read(None, Run()).report is None


def test_a_failed_run_is_judged_by_the_gates_it_judged_and_not_by_one_it_would_have_deleted() -> None:
    before = judged(Verdict.PASS, started="2026-05-01T09:00:00Z")
    result = read_result({"healthy": False}, [before, judged(Verdict.FAIL), None], FAILED, STARTED)
    assert result.report == judged(Verdict.FAIL)


def test_a_run_to_the_end_counts_every_gate() -> None:
    bad = judged(Verdict.FAIL, started="2026-05-01T09:00:00Z")
    result = read_result({"healthy": True}, [judged(Verdict.PASS), bad], Run(), STARTED)
    assert result.report is not None
    assert result.report.verdict is Verdict.FAIL
    assert read_result({"healthy": True}, [judged(Verdict.PASS), None], Run(), STARTED).report is None
