"""The gate through the life of a stack on AWS as the sandbox emulates it: launches, replacements, targets, drift."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("gate-cloud")]


@pytest.fixture(scope="module")
def stack(own_project: Path, cloud_environment: dict[str, str], make_stack: Any, cloud: Sandbox) -> Iterator[Any]:
    stack = make_stack(own_project, "cloud", cloud_environment)
    stack.configure({**cloud.settings(), "image": "sandbox-ubuntu", "count": "2", "efaCount": "3", "owner": "tests"})
    yield stack
    assert stack.run("destroy", "--yes", "--skip-preview", "--stack", "cloud").code == 0


@pytest.fixture
def good(stack: Any, world: Any, cloud: Sandbox) -> Any:
    """Two good hosts, whatever the test before left behind."""
    world.set()
    cloud.clear_cloud_faults()
    stack.configure({"count": "2"})
    done = stack.up()
    assert done.code == 0, done.text
    assert stack.healthy() is True
    assert stack.status().healthy, stack.status().reasons
    world.looked_at()
    return stack


def hosts_of(stack: Any) -> list[str]:
    return [host["name"] for host in stack.outputs()["hosts"]]


def test_the_hosts_are_launched_as_planned(good: Any, cloud: Sandbox) -> None:
    instances = {item["name"]: item for item in cloud.instances()}
    assert sorted(instances) == ["node-0", "node-1"]
    layout = [(nic["card"], nic["device"], nic["type"]) for nic in instances["node-0"]["nics"]]
    assert layout == [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only"), (2, 0, "efa-only")]


def test_a_preview_shows_no_change_and_touches_no_host(good: Any, world: Any) -> None:
    done = good.unchanged_preview()
    assert done.code == 0, done.text
    assert world.looked_at() == []


def test_scaling_up_and_down_judges_exactly_the_hosts_there_are(good: Any, world: Any, cloud: Sandbox) -> None:
    good.configure({"count": "3"})
    assert good.up().code == 0
    assert [line.split()[0] for line in world.looked_at()] == ["node-0", "node-1", "node-2"]
    assert good.healthy() is True
    good.configure({"count": "1"})
    assert good.up().code == 0
    assert [line.split()[0] for line in world.looked_at()] == ["node-0"]
    assert good.healthy() is True
    assert [item["name"] for item in cloud.instances()] == ["node-0"]


def test_an_instance_that_fails_to_launch_does_not_leave_the_old_healthy_behind(
    good: Any, world: Any, cloud: Sandbox
) -> None:
    cloud.cloud_fault("no-capacity", "node-2")
    good.configure({"count": "3"})
    done = good.up()
    assert done.code != 0
    assert "InsufficientInstanceCapacity" in done.text
    assert "Traceback" not in done.text
    assert world.looked_at() == []
    assert good.healthy() is False
    assert not good.status().healthy


def test_replaced_hosts_are_judged_anew_and_the_old_ones_go(good: Any, world: Any) -> None:
    before = good.instances()
    good.configure_object("rootVolume", {"sizeGib": 201})
    done = good.up()
    assert done.code == 0, done.text
    after = good.instances()
    assert not {i for ids in before.values() for i in ids} & {i for ids in after.values() for i in ids}
    assert len(world.looked_at()) == 2
    assert good.healthy() is True


def test_while_the_gate_is_closed_replaced_hosts_stay_and_the_status_lists_them(good: Any, world: Any) -> None:
    before = {i for ids in good.instances().values() for i in ids}
    world.set(node_1={"verdict": "FAIL"})
    good.configure_object("rootVolume", {"sizeGib": 202})
    assert good.up().code != 0
    assert good.healthy() is False
    status = good.status()
    assert not status.healthy
    assert {left.instance_id for left in status.leftovers} == before
    world.set()
    assert good.up().code == 0
    assert not before & {i for ids in good.instances().values() for i in ids}
    assert good.status().leftovers == ()


def test_a_target_that_replaces_a_host_without_the_gate_is_not_healthy(good: Any, world: Any) -> None:
    node = good.urn("node-1")
    before = good.instances()["node-1"]
    done = good.up("--target-replace", node)
    assert world.looked_at() == []
    assert good.instances()["node-1"] != before
    assert done.code != 0
    assert "not judged in this run" in done.text
    assert good.healthy() is False
    status = good.status()
    assert not status.healthy
    assert any("not judged" in reason for reason in status.reasons)


def test_a_host_that_vanished_is_seen_by_the_status_after_a_refresh_and_by_the_next_up(
    good: Any, cloud: Sandbox, world: Any
) -> None:
    cloud.cloud_fault("vanish", "node-1")
    assert good.run("refresh", "--yes", "--skip-preview", "--stack", "cloud").code == 0
    status = good.status()
    assert not status.healthy
    assert any("no longer there" in reason or "refresh since" in reason for reason in status.reasons)
    done = good.up()
    assert done.code == 0, done.text
    assert hosts_of(good) == ["node-0", "node-1"]
    assert len(world.looked_at()) == 2
    assert good.healthy() is True


def test_destroy_leaves_nothing_behind(good: Any, cloud: Sandbox) -> None:
    assert good.run("destroy", "--yes", "--skip-preview", "--stack", "cloud").code == 0
    assert cloud.instances() == []
    assert {kind: names for kind, names in cloud.resources().items() if names} == {}
