"""The whole path: real engine, real provider, real SSH and probe, on simulated hosts of the sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("gate-hosts")]


@pytest.fixture(scope="module")
def stack(real_project: Path, cloud_environment: dict[str, str], make_stack: Any, cloud: Sandbox) -> Iterator[Any]:
    stack = make_stack(real_project, "hosts", cloud_environment)
    wanted = {"image": "sandbox-ubuntu", "count": "2", "instanceType": "g5.48xlarge", "efaCount": "1"}
    stack.configure({**cloud.settings(), **wanted, "deadlineSeconds": "120"})
    yield stack
    assert stack.run("destroy", "--yes", "--skip-preview", "--stack", "hosts").code == 0


@pytest.fixture
def good(stack: Any, cloud: Sandbox) -> Any:
    for host in cloud.hosts():
        cloud.clear(host["name"])
    stack.configure({"deadlineSeconds": "120"})
    done = stack.up()
    assert done.code == 0, done.text
    assert stack.healthy() is True
    return stack


def report_of(stack: Any) -> dict[str, dict[str, Any]]:
    """The report's hosts by name."""
    text = stack.outputs()["report"]
    return {host["host"]: host for host in json.loads(text.split("\n", 1)[1])["hosts"]}


def test_a_burn_in_is_reused_while_nothing_changed_and_not_after_a_reboot(good: Any, cloud: Sandbox) -> None:
    done = good.up()
    assert done.code == 0, done.text
    assert {name: host["burn_in_reused"] for name, host in report_of(good).items()} == {"node-0": True, "node-1": True}
    cloud.reboot("node-0")
    done = good.up()
    assert done.code == 0, done.text
    assert {name: host["burn_in_reused"] for name, host in report_of(good).items()} == {"node-0": False, "node-1": True}


def test_a_gpu_that_fell_off_the_bus_is_named_with_what_to_do(good: Any, cloud: Sandbox) -> None:
    cloud.fault("node-1", "gpu-lost")
    done = good.up()
    assert done.code != 0
    assert "the gate is closed: FAIL: 1 of 2 hosts judged good" in done.text
    assert "node-1/GPU" in done.text
    assert "node-0/GPU" not in done.text
    assert "Traceback" not in done.text
    assert good.healthy() is False
    assert not good.status().healthy


def test_a_host_that_cannot_be_reached_is_unknown_and_says_which_stage(good: Any, cloud: Sandbox) -> None:
    cloud.fault("node-0", "ssh-refused")
    good.configure({"deadlineSeconds": "6"})
    done = good.up()
    assert done.code != 0
    assert "UNKNOWN host.reachable node-0" in done.text
    assert "reachable" in done.text
    assert good.healthy() is False
    assert good.outputs()["verdict"] == "UNKNOWN"


def test_a_host_that_shows_another_key_is_refused(good: Any, cloud: Sandbox) -> None:
    cloud.fault("node-0", "wrong-host-key")
    done = good.up()
    assert done.code != 0
    assert "host.identity node-0" in done.text
    assert good.healthy() is False


def test_no_secret_is_in_what_was_printed_or_kept(good: Any) -> None:
    done = good.up()
    kept = json.dumps(good.export())
    for text in (done.text, kept):
        assert "OPENSSH PRIVATE KEY" not in text
