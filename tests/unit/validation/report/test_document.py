from __future__ import annotations

import json
from typing import Any

import pytest

from profiles.errors import ParseError
from validation.report import document
from validation.report.model import StackReport


def test_every_report_is_read_back_as_it_was(
    good: StackReport, faulty: StackReport, unreached: StackReport, empty: StackReport, hostile: StackReport
) -> None:
    for report in (good, faulty, unreached, empty, hostile):
        assert document.read(document.render(report)) == report


def test_the_document_names_its_schema_and_is_ascii(hostile: StackReport) -> None:
    text = document.render(hostile)
    assert json.loads(text)["schema"] == "kiln/report/v1"
    assert text.isascii()


def change(report: StackReport, **values: Any) -> str:
    return json.dumps({**report.to_dict(), **values})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "report: line 1: not JSON: Expecting value"),
        ("[]", "report: expected one JSON object, found list"),
        ('{"schema": "other"}', "report: schema is 'other', not 'kiln/report/v1'"),
        ('{"schema": "kiln/report/v1"}', "report: field 'verdict' is missing"),
        ('{"schema": "kiln/report/v1", "verdict": "FINE"}', "report: 'FINE' is not a valid Verdict"),
        ('{"schema": "kiln/report/v1", "verdict": "PASS", "hosts": 7}', "report: 'int' object is not iterable"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        document.read(text)
    assert str(caught.value) == message


def test_a_stack_verdict_better_than_its_hosts_is_refused(faulty: StackReport) -> None:
    with pytest.raises(ParseError, match="the stack says PASS, but the findings come to FAIL"):
        document.read(change(faulty, verdict="PASS", healthy=True))


def test_a_host_verdict_better_than_its_findings_is_refused(faulty: StackReport) -> None:
    hosts = faulty.to_dict()["hosts"]
    hosts[1]["verdict"] = "PASS"
    with pytest.raises(ParseError, match="host gpu-2 says PASS, but the findings come to FAIL"):
        document.read(change(faulty, hosts=hosts))


def test_healthy_without_hosts_is_refused(empty: StackReport) -> None:
    with pytest.raises(ParseError, match="says healthy True, but its verdict is UNKNOWN"):
        document.read(change(empty, healthy=True))


def test_a_verdict_worse_than_the_findings_is_kept(good: StackReport) -> None:
    report = document.read(change(good, verdict="UNKNOWN", healthy=False))
    assert not report.healthy
