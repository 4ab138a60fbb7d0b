"""The one rule of the program: open only if judged good, in this run, for exactly these hosts."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.output import UNKNOWN

from stacks.gate import NOT_JUDGED, OTHER_HOSTS, Decision, decision, together

GOOD: dict[str, Any] = {
    "healthy": True,
    "verdict": "PASS",
    "summary": "PASS: 2 of 2",
    "recheck": "now",
    "judged": ["i-1", "i-2"],
    "hosts": ["i-2", "i-1"],
}

CASES: list[tuple[Any, Decision]] = [
    (GOOD, Decision(True, "PASS", "PASS: 2 of 2")),
    ({**GOOD, "verdict": "WARN"}, Decision(True, "WARN", "PASS: 2 of 2")),
    ({**GOOD, "healthy": False, "verdict": "FAIL", "summary": "FAIL: x"}, Decision(False, "FAIL", "FAIL: x")),
    ({**GOOD, "healthy": 1}, Decision(False, "PASS", "PASS: 2 of 2")),
    ({**GOOD, "recheck": "then"}, Decision(False, "UNKNOWN", f"UNKNOWN: {NOT_JUDGED}")),
    ({**GOOD, "hosts": ["i-1", "i-3"]}, Decision(False, "UNKNOWN", f"UNKNOWN: {OTHER_HOSTS}")),
    ({**GOOD, "hosts": ["i-1"]}, Decision(False, "UNKNOWN", f"UNKNOWN: {OTHER_HOSTS}")),
    ({**GOOD, "hosts": [], "judged": []}, Decision(False, "UNKNOWN", f"UNKNOWN: {OTHER_HOSTS}")),
    ({**GOOD, "judged": None}, Decision(False, "UNKNOWN", f"UNKNOWN: {OTHER_HOSTS}")),
    ({**GOOD, "judged": UNKNOWN}, Decision(False, "UNKNOWN", f"UNKNOWN: {NOT_JUDGED}")),
    (UNKNOWN, Decision(False, "UNKNOWN", f"UNKNOWN: {NOT_JUDGED}")),
]


@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_the_gate_is_open_only_for_what_was_judged_good_in_this_run(facts: Any, expected: Decision) -> None:
    assert decision(facts, token="now") == expected


OPEN = Decision(healthy=True, verdict="PASS", summary="PASS: 1 of 1")
WARN = Decision(healthy=True, verdict="WARN", summary="WARN: 1 of 1")
UNSEEN = Decision(healthy=False, verdict="UNKNOWN", summary="UNKNOWN: x")
BAD = Decision(healthy=False, verdict="FAIL", summary="FAIL: x")


@pytest.mark.parametrize(
    ("decisions", "healthy", "verdict", "first"),
    [
        ([OPEN], True, "PASS", "PASS: 1 of 1"),
        ([OPEN, WARN], True, "WARN", "gate-1: WARN: 1 of 1"),
        ([OPEN, UNSEEN], False, "UNKNOWN", "gate-1: UNKNOWN: x"),
        ([UNSEEN, BAD, OPEN], False, "FAIL", "gate-1: FAIL: x"),
        ([BAD, UNSEEN], False, "FAIL", "gate-0: FAIL: x"),
    ],
)
def test_a_program_is_as_good_as_the_worst_of_its_gates(
    decisions: list[Decision], healthy: bool, verdict: str, first: str
) -> None:
    found = together({f"gate-{number}": decision for number, decision in enumerate(decisions)})
    assert (found.healthy, found.verdict, found.summary.splitlines()[0]) == (healthy, verdict, first)
