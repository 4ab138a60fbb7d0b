"""The gate through the life of a stack of hosts that exist, on the real CLI, with a scripted validation."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stacks.gate import MODE_VARIABLE, RECORD

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("gate-static")]

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"


@pytest.fixture(scope="module")
def private_key() -> str:
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
        .decode()
    )


@pytest.fixture(scope="module")
def stack(own_project: Path, environment: dict[str, str], make_stack: Any, private_key: str) -> Any:
    stack = make_stack(own_project, "static", environment)
    inventory = [
        {"name": f"node-{index}", "address": f"127.0.0.{index + 1}", "instanceType": "p5.48xlarge", "hostKey": HOST_KEY}
        for index in range(2)
    ]
    stack.configure({"provider": "static"})
    stack.configure_object("inventory", inventory)
    stack.configure_secret("sshPrivateKey", private_key)
    return stack


@pytest.fixture
def good(stack: Any, world: Any) -> Any:
    """The stack, healthy, and nothing in the log of hosts looked at."""
    world.set()
    done = stack.up()
    assert done.code == 0, done.text
    assert stack.healthy() is True
    world.looked_at()
    return stack


def test_good_hosts_make_a_healthy_stack(good: Any) -> None:
    outputs = good.outputs()
    assert outputs["verdict"] == "PASS"
    assert outputs["gate"] == "PASS: 2 of 2 hosts judged good"
    assert [host["name"] for host in outputs["hosts"]] == ["node-0", "node-1"]
    assert good.status().healthy


def test_a_host_that_went_bad_closes_the_gate_though_nothing_else_changed(good: Any, world: Any) -> None:
    world.set(node_1={"verdict": "FAIL"})
    done = good.up()
    assert done.code != 0
    assert "the gate is closed: FAIL: 1 of 2 hosts judged good" in done.text
    assert "FAIL nvlink.links_active node-1/GPU3: 17 of 18 NVLinks active" in done.text
    assert "Traceback" not in done.text
    assert good.healthy() is False
    assert not good.status().healthy


def test_a_host_that_could_not_be_judged_closes_the_gate(good: Any, world: Any) -> None:
    world.set(node_0={"verdict": "UNKNOWN"})
    assert good.up().code != 0
    assert good.healthy() is False
    assert good.outputs()["verdict"] == "UNKNOWN"


def test_a_preview_touches_no_host_and_shows_no_change_while_healthy(good: Any, world: Any) -> None:
    world.set(node_0={"verdict": "FAIL"})
    done = good.unchanged_preview()
    assert done.code == 0, done.text
    assert world.looked_at() == []
    assert good.healthy() is True


def test_a_preview_touches_no_host_and_shows_no_change_while_closed(good: Any, world: Any) -> None:
    world.set(node_0={"verdict": "FAIL"})
    assert good.up().code != 0
    world.looked_at()
    done = good.unchanged_preview()
    assert done.code == 0, done.text
    assert world.looked_at() == []
    assert good.healthy() is False


def test_every_real_run_looks_at_every_host(good: Any, world: Any) -> None:
    assert good.up().code == 0
    assert [line.split()[0] for line in world.looked_at()] == ["node-0", "node-1"]


def test_a_refresh_judges_nothing_and_leaves_a_closed_gate_closed(good: Any, world: Any) -> None:
    world.set(node_0={"verdict": "FAIL"})
    assert good.up().code != 0
    world.set()
    world.looked_at()
    assert good.run("refresh", "--yes", "--skip-preview", "--stack", "static").code == 0
    assert world.looked_at() == []
    assert good.healthy() is False
    assert not good.status().healthy


def test_a_target_that_leaves_the_gate_out_does_not_stay_healthy(good: Any) -> None:
    done = good.up("--target", good.urn("kiln-static"))
    assert done.code != 0
    assert "the hosts were not judged in this run" in done.text
    assert good.healthy() is False


def test_burn_in_results_reach_the_next_run_and_a_reboot_voids_them(good: Any, world: Any) -> None:
    world.set()
    good.up()
    assert world.looked_at() == ["node-0 reused", "node-1 reused"]
    world.set(node_1={"boot": "boot-2"})
    good.up()
    assert world.looked_at() == ["node-0 reused", "node-1 ran"]


def test_record_mode_says_false_and_leaves_the_exit_code_to_its_caller(good: Any, world: Any) -> None:
    world.set(node_0={"verdict": "FAIL"})
    done = good.up(**{MODE_VARIABLE: RECORD})
    assert done.code == 0, done.text
    assert good.healthy() is False


def test_a_crash_of_the_validation_is_unknown_and_shows_no_secret(good: Any, world: Any, private_key: str) -> None:
    world.set(node_0={"crash": True})
    done = good.up()
    assert done.code != 0
    assert "UNKNOWN host.reachable node-0: node-0: not judged: RuntimeError: the probe crashed" in done.text
    assert "Traceback" not in done.text
    assert good.healthy() is False
    secret_lines = private_key.splitlines()[1:-1]
    everything = done.text + json.dumps(good.export()) + json.dumps(good.outputs())
    assert not [line for line in secret_lines if line in everything]


@pytest.mark.parametrize("deaf", [False, True], ids=["a-runner-that-listens", "a-runner-that-does-not"])
def test_ctrl_c_in_the_middle_records_unknown_at_once(
    good: Any, world: Any, own_project: Path, deaf: bool, tools: Any
) -> None:
    world.set(node_0={"sleep_s": 40, "deaf": deaf})
    process = good.start_up()
    tools.wait_until(lambda: tools.judging(process), "the gate to look at the hosts")
    pressed = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    done = good.finish(process)
    assert time.monotonic() - pressed < 8
    assert done.code != 0
    assert good.healthy() is False
    assert not good.status().healthy
    gate = next(item for item in good.export()["deployment"]["resources"] if item["urn"].endswith("::gate"))
    assert gate["outputs"]["verdict"] == "UNKNOWN"
    tools.wait_until(lambda: not tools.providers_of(own_project), "the provider to end")


def test_a_killed_run_is_never_healthy_and_cancel_and_up_mend_it(
    good: Any, world: Any, own_project: Path, tools: Any
) -> None:
    world.set(node_0={"sleep_s": 40, "deaf": True})
    process = good.start_up()
    tools.wait_until(lambda: tools.judging(process), "the gate to look at the hosts")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    tools.wait_until(lambda: not tools.providers_of(own_project), "the orphaned provider to end by itself")
    status = good.status()
    assert not status.healthy
    assert any("locked" in reason for reason in status.reasons)
    world.set()
    assert good.run("cancel", "--yes", "--stack", "static").code == 0
    status = good.status()
    assert not status.healthy
    assert any("updating gate was interrupted" in reason for reason in status.reasons)
    done = good.up()
    assert done.code == 0, done.text
    assert good.healthy() is True
    assert good.status().healthy


def test_wrong_settings_are_told_all_at_once_and_change_nothing(good: Any) -> None:
    before = good.export()["deployment"]["resources"]
    good.configure({"sshPort": "0", "burnIn": "toast", "ttlHours": "0", "colour": "red"})
    done = good.up()
    for key in ("sshPort", "burnIn", "ttlHours", "colour"):
        good.run("config", "rm", f"kiln:{key}", "--stack", "static")
    assert done.code != 0
    for path in ("sshPort: found 0;", "burnIn: found 'toast';", "ttlHours: found 0;", "colour: found a key"):
        assert path in done.text
    assert "Traceback" not in done.text
    assert good.healthy() is False
    after = good.export()["deployment"]["resources"]
    assert [item["urn"] for item in after] == [item["urn"] for item in before]
