from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from kiln.commands.up import read_result
from kiln.engine import Run
from profiles.errors import ParseError
from validation.report import document
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict, combine

STARTED = dt.datetime(2026, 5, 1, 10, 0, 0, 500, tzinfo=dt.timezone.utc)
FAILED = Run(code=1, errors={"u": ["no capacity"]})


def outputs(verdict: Verdict, *, started: str = "2026-05-01T10:00:00Z", **changes: Any) -> dict[str, Any]:
    findings = (Finding("gpu.count", "h", verdict, "m"),)
    host = HostReport("h", "", "i-1", "p5.48xlarge", combine(findings), findings)
    report = StackReport(host.verdict, (host,), started=started)
    return {"healthy": report.healthy, "gate": "text", "report": document.render(report), **changes}


def test_a_good_run_is_healthy() -> None:
    result = read_result(outputs(Verdict.PASS), Run(), STARTED)
    assert result.report is not None
    assert result.report.healthy
    assert result.reasons == ()


def test_a_failing_host_is_fail() -> None:
    result = read_result(outputs(Verdict.FAIL), Run(), STARTED)
    assert result.report is not None
    assert result.report.verdict is Verdict.FAIL


@pytest.mark.parametrize("healthy", [False, None, "true", 1])
def test_a_good_report_is_not_believed_where_the_output_healthy_is_not_true(healthy: object) -> None:
    result = read_result(outputs(Verdict.PASS, healthy=healthy, gate="other hosts"), Run(), STARTED)
    assert result.report is not None
    assert result.report.verdict is Verdict.UNKNOWN
    assert result.reasons == ("gate: other hosts",)


def test_a_good_report_is_not_believed_where_the_engine_failed() -> None:
    result = read_result(outputs(Verdict.PASS), FAILED, STARTED)
    assert result.report is not None
    assert not result.report.healthy
    assert result.reasons == ("the engine failed: no capacity",)


def test_a_failing_host_stays_fail_where_the_engine_failed_too() -> None:
    result = read_result(outputs(Verdict.FAIL), FAILED, STARTED)
    assert result.report is not None
    assert result.report.verdict is Verdict.FAIL


@pytest.mark.parametrize("started", ["2026-05-01T09:59:59Z", "", "soon", "2026-05-01T10:00:00"])
def test_a_report_of_an_earlier_run_is_none_of_a_run_that_failed(started: str) -> None:
    assert read_result(outputs(Verdict.PASS, started=started), FAILED, STARTED).report is None


@pytest.mark.parametrize("report", [None, "", {}])
def test_a_stack_without_a_gate_has_no_result(report: object) -> None:
    result = read_result({"report": report}, Run(), STARTED)
    assert result.report is None
    assert "does not conclude a HealthGate" in result.reasons[0]


def test_a_report_that_flatters_is_refused() -> None:
    text = str(outputs(Verdict.FAIL)["report"]).replace('"verdict": "FAIL"', '"verdict": "PASS"', 1)
    with pytest.raises(ParseError):
        read_result({"healthy": True, "report": text.replace('"healthy": false', '"healthy": true')}, Run(), STARTED)
