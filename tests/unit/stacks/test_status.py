"""The status: healthy only if nothing that the engine keeps speaks against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacks import status
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict


def report(verdict: Verdict) -> str:
    host = HostReport("node-0", "", "i-1", "g5.xlarge", verdict, (Finding("gpu.count", "node-0", verdict, "looked"),))
    return json.dumps(StackReport(verdict, (host,), started="2026-01-01T00:00:00Z").to_dict())


def gate(verdict: Verdict = Verdict.PASS, judged: tuple[str, ...] = ("i-1",), **outputs: Any) -> dict[str, Any]:
    found = {
        "verdict": verdict.value,
        "healthy": verdict.opens_gate,
        "report": report(verdict),
        "judged": list(judged),
        **outputs,
    }
    return {"type": status.GATE, "urn": "urn::gate", "outputs": found}


def instance(identity: str = "i-1", *, delete: bool = False) -> dict[str, Any]:
    return {
        "type": "aws:ec2/instance:Instance",
        "urn": f"urn::{identity}",
        "id": identity,
        "outputs": {"instanceType": "g5.xlarge"},
        **({"delete": True} if delete else {}),
    }


def export(*resources: dict[str, Any], pending: tuple[dict[str, Any], ...] = (), **root: Any) -> dict[str, Any]:
    stack = {"type": "pulumi:pulumi:Stack", "urn": "urn::stack", "outputs": {"healthy": True, **root}}
    return {"deployment": {"resources": [stack, *resources], "pending_operations": list(pending)}}


UPDATE = {"kind": "update", "result": "succeeded", "resourceChanges": {"update": 1}}


def test_a_stack_with_nothing_against_it_is_healthy() -> None:
    found = status.assess(export(gate(), instance()), [UPDATE])
    assert found.healthy
    assert (found.verdict, found.reasons, found.leftovers) == (Verdict.PASS, (), ())
    assert found.judged_at == "2026-01-01T00:00:00Z"
    assert found.report is not None


AGAINST: list[tuple[str, dict[str, Any], list[dict[str, Any]], bool, Verdict, str]] = [
    ("locked", export(gate(), instance()), [UPDATE], True, Verdict.UNKNOWN, "the stack is locked"),
    (
        "interrupted",
        export(gate(), instance(), pending=({"type": "updating", "resource": {"urn": "a::gate"}},)),
        [UPDATE],
        False,
        Verdict.UNKNOWN,
        "updating gate was interrupted; run pulumi up",
    ),
    (
        "failed",
        export(gate(), instance()),
        [{"kind": "update", "result": "failed"}],
        False,
        Verdict.UNKNOWN,
        "the last update failed",
    ),
    (
        "refreshed",
        export(gate(), instance()),
        [{"kind": "refresh", "result": "succeeded", "resourceChanges": {"delete": 1, "same": 3}}, UPDATE],
        False,
        Verdict.UNKNOWN,
        "a refresh since the hosts were judged changed something (delete); run pulumi up",
    ),
    ("no gate", export(instance()), [UPDATE], False, Verdict.UNKNOWN, "the stack has no gate, or it has not run yet"),
    ("empty", {}, [], False, Verdict.UNKNOWN, "the stack has no gate, or it has not run yet"),
    (
        "false",
        export(gate(), instance(), healthy=False, gate="UNKNOWN: x\ny"),
        [UPDATE],
        False,
        Verdict.UNKNOWN,
        "UNKNOWN: x",
    ),
    (
        "no output",
        export(gate(), instance(), healthy=None),
        [UPDATE],
        False,
        Verdict.UNKNOWN,
        "the last run did not conclude",
    ),
    (
        "stranger",
        export(gate(), instance(), instance("i-2")),
        [UPDATE],
        False,
        Verdict.UNKNOWN,
        "not judged: i-2; run pulumi up",
    ),
    (
        "gone",
        export(gate(judged=("i-1", "i-2")), instance("i-2")),
        [UPDATE],
        False,
        Verdict.UNKNOWN,
        "judged, but no longer there: i-1; run pulumi up",
    ),
    (
        "failed host",
        export(gate(Verdict.FAIL), instance(), healthy=False, gate="FAIL: 0 of 1"),
        [UPDATE],
        False,
        Verdict.FAIL,
        "FAIL: 0 of 1",
    ),
]


@pytest.mark.parametrize(
    ("export", "history", "locked", "verdict", "reason"),
    [case[1:] for case in AGAINST],
    ids=[case[0] for case in AGAINST],
)
def test_what_speaks_against_a_stack_closes_it(
    export: dict[str, Any], history: list[dict[str, Any]], locked: bool, verdict: Verdict, reason: str
) -> None:
    found = status.assess(export, history, locked=locked)
    assert not found.healthy
    assert found.verdict is verdict
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_a_verdict_that_the_gate_itself_does_not_call_healthy_is_unknown() -> None:
    assert status.assess(export(gate(healthy=False), instance())).verdict is Verdict.UNKNOWN
    nonsense = gate()
    nonsense["outputs"]["verdict"] = "nonsense"
    assert status.assess(export(nonsense, instance())).verdict is Verdict.UNKNOWN


def test_the_worst_of_several_gates_counts() -> None:
    found = status.assess(export(gate(), gate(Verdict.FAIL, ("i-2",)), instance(), instance("i-2")))
    assert found.verdict is Verdict.FAIL
    assert not found.healthy


def test_a_quiet_refresh_changes_nothing() -> None:
    quiet = {"kind": "refresh", "result": "succeeded", "resourceChanges": {"same": 4}}
    assert status.assess(export(gate(), instance()), [quiet, UPDATE]).healthy


def test_instances_that_wait_to_be_deleted_are_left_over_and_no_strangers() -> None:
    found = status.assess(export(gate(), instance(), instance("i-0", delete=True)), [UPDATE])
    assert found.healthy
    assert [left.instance_id for left in found.leftovers] == ["i-0"]


def test_a_lock_file_locks_its_stack_only(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi" / "locks" / "organization" / "kiln" / "dev"
    folder.mkdir(parents=True)
    environment = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    assert not status.is_locked(environment, "kiln", "dev")
    (folder / "a.json").write_text("{}")
    assert status.is_locked(environment, "kiln", "dev")
    assert not status.is_locked(environment, "kiln", "other")
    assert not status.is_locked({"PULUMI_BACKEND_URL": "s3://bucket"}, "kiln", "dev")


def test_the_words_of_an_earlier_run_are_no_reason() -> None:
    found = status.assess(export(gate(), instance(), healthy=False, verdict="PASS", gate="PASS: 1 of 1"), [UPDATE])
    assert found.reasons == ("the last run did not conclude that the stack is healthy",)


@pytest.mark.parametrize("text", [None, "", "{}", report(Verdict.FAIL).replace('"FAIL"', '"PASS"', 1)])
def test_a_gate_whose_report_cannot_be_read_or_flatters_is_not_healthy(text: str | None) -> None:
    found = status.assess(export(gate(report=text), instance()), [UPDATE])
    assert not found.healthy
    assert found.verdict is Verdict.UNKNOWN
    assert "the gate's report cannot be read; run pulumi up" in found.reasons


def test_a_gate_that_says_better_than_its_report_is_as_bad_as_that() -> None:
    found = status.assess(export(gate(report=report(Verdict.FAIL)), instance()), [UPDATE])
    assert found.verdict is Verdict.FAIL


def test_hosts_that_another_stack_made_need_no_instance_in_this_one() -> None:
    assert status.assess(export(gate()), [UPDATE]).healthy


def test_two_gates_are_one_report_as_bad_as_the_worse() -> None:
    both = export(gate(), gate(Verdict.FAIL, ("i-2",)), instance(), instance("i-2"))
    found = status.together(status.recorded(both))
    assert found is not None
    assert (found.verdict, len(found.hosts)) == (Verdict.FAIL, 2)
    assert status.assess(both, [UPDATE]).report == found


def test_nothing_is_recorded_without_a_gate_or_where_one_cannot_be_read() -> None:
    assert status.together(status.recorded(export(instance()))) is None
    assert status.together(status.recorded(export(gate(), gate(report=None)))) is None
