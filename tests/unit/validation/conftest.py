"""A scripted host for the tests of waiting, collecting and running: no network, no SSH, no time lost."""

from __future__ import annotations

import shlex
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from validation import bootstrap
from validation.probe.wire import Wire
from validation.remote import CommandResult, Ending, Endpoint, Failure, RemoteError

READY = "KILN cloud-init\nKILN absent\nKILN driver\nKILN loaded\n"


class Recorder(Wire):
    """What a probe would write, kept instead of sent."""

    def __init__(self, nonce: str) -> None:
        super().__init__(-1, nonce)
        self.data = b""

    def _send(self, data: bytes) -> None:
        self.data += data


@dataclass
class ScriptedHost:
    """What a host does. ``readiness`` outputs come in turn, the last one again and again; so do ``refusals`` of the
    connection, until they are used up. ``items`` is the evidence; ``hang`` commands run until their time is up."""

    readiness: list[str] = field(default_factory=lambda: [READY])
    refusals: list[Failure] = field(default_factory=list)
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    after: dict[str, dict[str, Any]] | None = None  # the evidence once a burn-in has run, where it differs
    burn_in: str | None = '{"level": "quick"}'
    hang: bool = False
    unreachable: bool = False
    probe_result: CommandResult | None = None
    probe_digest: str = ""
    root: str = "/"
    log: list[str] = field(default_factory=list)


class ScriptedConnection:
    """A connection to a scripted host."""

    host_key = "ssh-ed25519 SHA256:shown"

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    def execute(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        on_stdout: Callable[[bytes], bool] | None = None,
        cancel: threading.Event | None = None,
    ) -> CommandResult:
        if self._host.hang:
            stopped = (cancel or threading.Event()).wait(timeout_s)
            return CommandResult(Ending.CANCELLED if stopped else Ending.TIMED_OUT, None, "", "", timeout_s)
        if on_stdout is None:
            self._host.log.append("ready?")
            outputs = self._host.readiness
            return CommandResult(Ending.EXITED, 0, outputs.pop(0) if len(outputs) > 1 else outputs[0], "", 0.1)
        assert stdin == bootstrap.archive()
        words = shlex.split(command)
        mode, nonce = words[words.index(str(len(stdin))) + 1 :][:2]
        self._host.log.append(mode)
        if self._host.probe_result is not None:
            return self._host.probe_result
        on_stdout(self._output(mode, nonce))
        return CommandResult(Ending.STOPPED, None, "", "", 0.1)

    def _output(self, mode: str, nonce: str) -> bytes:
        wire = Recorder(nonce)
        digest = self._host.probe_digest or bootstrap.digest()
        wire.start({"root": self._host.root, "started": "2026-11-30T12:00:00Z", "probe": digest})
        if mode == "burn-in":
            self._host.items = self._host.items if self._host.after is None else self._host.after
            if self._host.burn_in is not None:
                wire.evidence({"name": "burn-in", "source": "burn-in", "outcome": "ok", "stdout": self._host.burn_in})
        else:
            for name, fields in self._host.items.items():
                wire.evidence({"name": name, "source": name, "outcome": "ok", **fields})
        wire.end()
        return b"noise before\n" + wire.data

    def close(self) -> None:
        self._host.log.append("closed")


class ScriptedRemote:
    """A remote of scripted hosts by name."""

    def __init__(self, **hosts: ScriptedHost) -> None:
        self.hosts = hosts

    def knock(self, endpoint: Endpoint, timeout_s: float) -> socket.socket:
        host = self.hosts[endpoint.name]
        host.log.append("knock")
        if host.unreachable:
            raise RemoteError(endpoint.name, Failure.UNREACHABLE, "no route to host")
        if host.refusals:
            failure = host.refusals.pop(0)
            raise RemoteError(endpoint.name, failure, failure.value)
        return socket.socket()

    def login(self, endpoint: Endpoint, door: socket.socket, timeout_s: float) -> ScriptedConnection:
        door.close()
        return ScriptedConnection(self.hosts[endpoint.name])


@pytest.fixture
def scripted_host() -> type[ScriptedHost]:
    return ScriptedHost


@pytest.fixture
def scripted_remote() -> type[ScriptedRemote]:
    return ScriptedRemote


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture
def fast_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting without losing time: pauses start at 5 ms and grow to 20 ms."""
    monkeypatch.setattr("validation.waiting.FIRST_PAUSE_S", 0.005)
    monkeypatch.setattr("validation.waiting.PAUSE_MAX_S", 0.02)
