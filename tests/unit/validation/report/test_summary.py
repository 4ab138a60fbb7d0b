from __future__ import annotations

from validation.report import summary
from validation.report.model import StackReport
from validation.report.text import line, plain
from validation.verdict import Finding, Verdict


def test_the_headline_of_a_good_stack_says_open(good: StackReport) -> None:
    assert summary.headline(good) == "demo: gate OPEN: PASS, 1 of 1 host good"


def test_the_headline_of_a_faulty_stack_says_how_many_hosts_are_good(faulty: StackReport) -> None:
    assert summary.headline(faulty) == "demo: gate CLOSED: FAIL, 1 of 2 hosts good"


def test_a_stack_without_hosts_is_closed(empty: StackReport) -> None:
    assert summary.headline(empty) == "demo: gate CLOSED: UNKNOWN, no host was judged"


def test_only_required_trouble_closes_and_an_advisory_failure_warns(faulty: StackReport) -> None:
    assert [entry.finding.subject for entry in summary.closing(faulty)] == ["gpu-2/GPU3/link7"]
    assert [entry.label for entry in summary.warnings(faulty)] == ["WARN (advisory FAIL)"]


def test_failures_come_before_unknowns(faulty: StackReport, unreached: StackReport) -> None:
    both = StackReport(Verdict.FAIL, (*unreached.hosts, *faulty.hosts))
    assert [entry.finding.verdict for entry in summary.closing(both)] == [Verdict.FAIL, Verdict.UNKNOWN]


def test_an_area_shows_its_worst_verdict(faulty: StackReport) -> None:
    found = summary.areas(faulty.hosts[1])
    assert found[Verdict.FAIL] == ("nvlink",)
    assert found[Verdict.WARN] == ("gpu",)
    assert found[Verdict.PASS] == ()


def test_the_comparison_names_both_numbers_and_whose_expectation_it_is() -> None:
    finding = Finding("a.b", "h", Verdict.FAIL, "m", measured="17", expected="18", source="profile x")
    assert summary.comparison(finding) == "measured 17, expected 18 (profile x)"


def test_the_comparison_is_empty_where_nothing_was_measured() -> None:
    assert summary.comparison(Finding("a.b", "h", Verdict.FAIL, "m", source="profile x")) == ""


def test_control_characters_are_written_out() -> None:
    assert plain("a\x1b[31m\u202e\ud800\x00b\tc\nd") == "a\\x1b[31m\\u202e\\ud800\\x00b c\nd"


def test_a_line_has_no_line_breaks() -> None:
    assert line(" a\n\n b\r\nc ") == "a b c"
