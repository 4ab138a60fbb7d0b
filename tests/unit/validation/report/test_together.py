"""What was found about the hosts together shows in every format, and closes the gate in each."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from profiles.errors import ParseError
from validation.report import document, junit, prometheus, summary, webpage
from validation.report.formats import FORMATS
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict, combine_stack


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_what_the_hosts_have_two_of(name: str, unlike: StackReport) -> None:
    text = FORMATS[name](unlike)
    assert "stack" in text
    assert "stack.driver" in text.replace("\\", "")


def test_two_good_hosts_that_differ_are_no_good_stack(unlike: StackReport) -> None:
    assert not unlike.healthy
    assert summary.headline(unlike) == "demo: gate CLOSED: FAIL, 2 of 2 hosts good"
    assert [entry.finding.check for entry in summary.closing(unlike)] == ["stack.driver"]


def test_the_document_keeps_it_and_refuses_a_better_verdict(unlike: StackReport) -> None:
    text = document.render(unlike)
    assert document.read(text) == unlike
    with pytest.raises(ParseError, match="the stack says PASS, but the findings come to FAIL"):
        document.read(text.replace('"verdict": "FAIL",\n  "healthy": false', '"verdict": "PASS",\n  "healthy": true'))


def test_a_report_without_such_findings_is_read_as_before(good: StackReport) -> None:
    data = good.to_dict()
    del data["findings"]
    for host in data["hosts"]:
        del host["inventory"]
    assert StackReport.from_dict(data) == good


def test_what_was_compared_is_kept_with_the_host() -> None:
    finding = Finding("gpu.count", "a", Verdict.PASS, "8 GPUs")
    host = HostReport("a", "", "i-1", "p5.48xlarge", Verdict.PASS, (finding,), inventory={"driver": "580.105.08"})
    assert HostReport.from_dict(host.to_dict()) == host


def test_junit_has_one_red_suite_for_it_and_none_for_an_unexplained_gate(unlike: StackReport) -> None:
    root = ET.fromstring(junit.render(unlike))
    assert [suite.get("name") for suite in root] == ["gpu-1", "gpu-2", "stack"]
    assert root.get("failures") == "1"


def test_prometheus_gives_it_no_host(unlike: StackReport) -> None:
    (sample,) = [line for line in prometheus.render(unlike).splitlines() if "stack.driver" in line]
    assert 'host=""' in sample


def test_the_page_has_a_table_of_its_own_for_it(unlike: StackReport, good: StackReport) -> None:
    assert "The hosts together" in webpage.render(unlike)
    assert "The hosts together" not in webpage.render(good)


def stack_finding(verdict: Verdict, *, required: bool = True) -> Finding:
    return Finding("stack.x", "stack", verdict, "text", required=required)


@pytest.mark.parametrize(
    ("hosts", "findings", "verdict"),
    [
        ((), (), Verdict.UNKNOWN),
        ((), (stack_finding(Verdict.PASS),), Verdict.UNKNOWN),
        ((Verdict.PASS,), (), Verdict.PASS),
        ((Verdict.PASS,), (stack_finding(Verdict.PASS),), Verdict.PASS),
        ((Verdict.PASS,), (stack_finding(Verdict.NOT_APPLICABLE),), Verdict.PASS),
        ((Verdict.PASS,), (stack_finding(Verdict.WARN),), Verdict.WARN),
        ((Verdict.PASS,), (stack_finding(Verdict.FAIL),), Verdict.FAIL),
        ((Verdict.PASS,), (stack_finding(Verdict.FAIL, required=False),), Verdict.WARN),
        ((Verdict.UNKNOWN,), (stack_finding(Verdict.PASS),), Verdict.UNKNOWN),
        ((Verdict.UNKNOWN,), (stack_finding(Verdict.WARN),), Verdict.UNKNOWN),
        ((Verdict.UNKNOWN,), (stack_finding(Verdict.FAIL),), Verdict.FAIL),
        ((Verdict.FAIL, Verdict.PASS), (stack_finding(Verdict.UNKNOWN),), Verdict.FAIL),
    ],
)
def test_findings_about_all_hosts_make_nothing_better(
    hosts: tuple[Verdict, ...], findings: tuple[Finding, ...], verdict: Verdict
) -> None:
    assert combine_stack(hosts, findings) is verdict
