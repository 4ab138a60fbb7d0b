"""The sandbox's daemon as a process: started once, found again, stopped cleanly, and clear when it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiles.errors import CloudError, ConfigError
from sandbox import client
from sandbox.client import Sandbox
from sandbox.cloud.errors import SandboxDownError

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("sandbox-cloud")]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path / "home")
    yield made
    made.stop()


def ended(pid: int, seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not client._alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_running_sandbox_is_used_again_and_stops_without_a_trace(sandbox: Sandbox) -> None:
    assert sandbox.status() == {"running": False, "home": str(sandbox.home)}
    first = sandbox.start()
    assert Sandbox(sandbox.home).start() == first
    assert sandbox.status()["pid"] == first.pid
    assert sandbox.resources() == {}
    assert sandbox.stop()
    assert ended(first.pid)
    assert sandbox.status()["running"] is False
    assert [path.name for path in sandbox.home.iterdir()] == [client.LOG_NAME]
    assert sandbox.stop() is False


def test_two_sandboxes_have_ports_of_their_own(sandbox: Sandbox, tmp_path: Path) -> None:
    other = Sandbox(tmp_path / "other")
    try:
        assert sandbox.start().ssh_port != other.start().ssh_port
        assert sandbox.settings()["sshPort"] == str(sandbox.endpoint().ssh_port)
    finally:
        other.stop()


def test_a_termination_signal_ends_it_cleanly(sandbox: Sandbox) -> None:
    running = sandbox.start()
    os.kill(running.pid, signal.SIGTERM)
    assert ended(running.pid)
    assert not (sandbox.home / "endpoint.json").exists()
    assert "Traceback" not in (sandbox.home / client.LOG_NAME).read_text()


def test_a_killed_sandbox_is_seen_as_down_and_started_anew(sandbox: Sandbox) -> None:
    first = sandbox.start()
    os.kill(first.pid, signal.SIGKILL)
    assert ended(first.pid)
    with pytest.raises(SandboxDownError, match="does not answer"):
        sandbox.hosts()
    assert sandbox.status()["running"] is False
    assert sandbox.start().pid != first.pid


def test_a_sandbox_that_nobody_uses_ends_by_itself(sandbox: Sandbox) -> None:
    running = sandbox.start(idle_hours=0.0001)
    assert ended(running.pid)


def test_a_start_that_fails_ends_with_what_the_log_says(sandbox: Sandbox) -> None:
    (sandbox.home / "endpoint.tmp").mkdir(parents=True)  # in the way of the file that it writes when it is ready
    with pytest.raises(CloudError, match="at its start:\n") as caught:
        sandbox.start()
    assert "endpoint.tmp" in str(caught.value)


def test_a_request_without_the_token_is_turned_away(sandbox: Sandbox) -> None:
    running = sandbox.start()
    host, port = running.control.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(b"GET /instances HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert link.recv(100).startswith(b"HTTP/1.1 403")


def test_an_unknown_host_or_fault_is_told_with_the_known_ones(sandbox: Sandbox) -> None:
    sandbox.start()
    with pytest.raises(ConfigError, match="unknown host 'nobody'; the sandbox has none"):
        sandbox.fault("nobody", "gpu-lost")
    with pytest.raises(ConfigError, match=r"unknown fault 'rust'; .*gpu-lost"):
        sandbox.fault("nobody", "rust", pending=True)
    with pytest.raises(ConfigError, match=r"unknown cloud fault 'rain'; .*no-capacity"):
        sandbox.cloud_fault("rain")
    assert sandbox.fault("later", "gpu-lost", pending=True) is True
