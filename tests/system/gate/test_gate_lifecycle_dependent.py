"""Somebody's own program: a slow sibling, and a resource that waits for health."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("gate-static")]


@pytest.fixture(scope="module")
def stack(dependent_project: Path, environment: dict[str, str], make_stack: Any) -> Any:
    return make_stack(dependent_project, "dev", environment)


def exists(stack: Any, name: str) -> bool:
    return any(item["urn"].endswith(f"::{name}") for item in stack.export()["deployment"]["resources"])


def test_a_dependent_of_healthy_is_not_created_while_the_gate_is_closed(stack: Any, world: Any) -> None:
    world.set(node_0={"verdict": "FAIL"})
    done = stack.up()
    assert done.code != 0
    assert "the gate is closed: FAIL" in done.text
    assert "Traceback" not in done.text
    assert exists(stack, "gate")
    assert not exists(stack, "healthy")
    assert not exists(stack, "dependent")
    assert stack.healthy() is False
    world.set()
    done = stack.up()
    assert done.code == 0, done.text
    assert exists(stack, "dependent")
    assert stack.healthy() is True
    assert stack.unchanged_preview().code == 0


def test_a_slow_sibling_does_not_leave_the_old_healthy_behind(stack: Any, world: Any) -> None:
    world.set()
    assert stack.up().code == 0
    world.set(node_0={"verdict": "FAIL"}, slow_0={"sleep_s": 3})
    done = stack.up()
    assert done.code != 0
    assert stack.healthy() is False
    assert not stack.status().healthy


def test_a_second_gate_that_is_closed_closes_the_stack_too(stack: Any, world: Any) -> None:
    world.set(slow_0={"verdict": "FAIL"})
    done = stack.up()
    assert done.code != 0
    assert "the gate is closed: sibling: FAIL" in done.text
    assert stack.healthy() is False
    assert stack.outputs()["verdict"] == "FAIL"
    assert not stack.status().healthy


def test_a_run_that_only_records_says_that_the_gate_is_closed(stack: Any, world: Any) -> None:
    world.set(slow_0={"verdict": "FAIL"})
    done = stack.up(KILN_GATE_MODE="record")
    assert done.code == 0, done.text
    assert "the gate is closed" in done.text
    assert "this run does not fail" in done.text
    assert stack.healthy() is False


def test_wrong_inputs_of_a_gate_are_named_by_property(stack: Any) -> None:
    stack.configure({"keyless": "true", "deadline": "-1"})
    done = stack.up()
    for key in ("keyless", "deadline"):
        stack.run("config", "rm", f"dependent:{key}", "--stack", "dev")
    assert done.code != 0
    assert "hosts[0].hostKey" in done.text
    assert "opt in with acceptNew" in done.text
    assert "deadlineSeconds" in done.text
    assert "Traceback" not in done.text
    assert stack.healthy() is False
