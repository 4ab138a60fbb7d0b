"""``kiln status`` looks at the hosts: what changed since they were judged voids the verdict, and is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("gate-status")]


@pytest.fixture(scope="module")
def stack(real_project: Path, cloud_environment: dict[str, str], make_stack: Any, cloud: Sandbox) -> Iterator[Any]:
    stack = make_stack(real_project, "look", cloud_environment)
    wanted = {"image": "sandbox-ubuntu", "count": "1", "instanceType": "g5.xlarge", "burnIn": "none"}
    stack.configure({**cloud.settings(), **wanted, "deadlineSeconds": "120"})
    yield stack
    assert stack.run("destroy", "--yes", "--skip-preview", "--stack", "look").code == 0


def status(stack: Any, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kiln", "status", "look", "--cwd", str(stack.folder), *words]
    return subprocess.run(command, env=stack.environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("reboot", "it was rebooted (boot id "),
        ("wrong-driver", "its driver was changed ("),
        ("gpu-lost", "now FAIL gpu.lost: lost"),
        ("ssh-refused", "now UNKNOWN host.reachable: stage 'reachable' not reached"),
    ],
)
def test_a_host_that_changed_since_it_was_judged_voids_the_verdict(
    stack: Any, cloud: Sandbox, change: str, words: str
) -> None:
    if cloud.hosts():
        cloud.clear("node-0")
    done = stack.up()
    assert done.code == 0, done.text
    before = status(stack)
    assert before.returncode == 0, before.stdout + before.stderr
    if change == "reboot":
        cloud.reboot("node-0")
    else:
        cloud.fault("node-0", change)
    after = status(stack)
    assert after.returncode == (1 if change == "gpu-lost" else 3), after.stdout + after.stderr
    assert "look: not healthy" in after.stdout
    assert words in after.stdout
    assert "OPEN" not in after.stdout
    assert status(stack, "--no-look").returncode == 0
