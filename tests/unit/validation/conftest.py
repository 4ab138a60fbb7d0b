"""A scripted host for the tests of waiting, collecting and running: no network, no SSH, no time lost."""

from __future__ import annotations

import dataclasses
import shlex
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from profiles.expectation import expect
from profiles.models import Expectation
from validation import bootstrap
from validation.checks.base import Check
from validation.connection import CommandResult, Ending, Endpoint, Failure, RemoteError
from validation.evidence import Bundle
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.host import HostInfo
from validation.facts.missing import ABSENT
from validation.facts.store import Facts
from validation.probe.wire import Wire
from validation.report.model import HostReport
from validation.runner import Options, Target, validate
from validation.verdict import Finding, Verdict

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
    clock: str = ""  # what the host's clock says; by default, the time
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
        started = self._host.clock or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        wire.start({"root": self._host.root, "started": started, "probe": digest})
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


def judged(facts: Facts, expected: Expectation, host: str) -> tuple[Finding, ...]:
    """A judge that says what the ``verdict`` item says, and of a burn-in what its result says."""
    items = facts.need(Bundle).items
    verdict = items["verdict"].stdout if "verdict" in items else "PASS"
    findings = [Finding("gpu.count", host, Verdict(verdict), "as scripted")]
    if expected.burn_in != "none":
        burn_in = items["burn-in"]
        bad = "bad" in burn_in.stdout or burn_in.error
        findings.append(Finding("burnin.gemm", host, Verdict.FAIL if bad else Verdict.PASS, burn_in.error))
    return tuple(findings)


def assembled(bundle: Bundle) -> Facts:
    """Facts from the scripted items ``boot-id``, ``instance`` and ``uuids``."""

    def text(name: str, default: str) -> str:
        return bundle.items[name].stdout if name in bundle.items else default

    host = HostInfo("node", "ubuntu", "24.04", "6.8", "x86_64", text("boot-id", "boot-1"), ABSENT, bundle.root)
    host = dataclasses.replace(host, instance_id=text("instance", "") or ABSENT)
    names = text("uuids", f"GPU-{bundle.host}-0 GPU-{bundle.host}-1").split()
    gpus = tuple(Gpu(index=number, uuid=uuid) for number, uuid in enumerate(names))
    inventory = GpuInventory("nvml", gpus, driver_version="580.105.08")
    return Facts({HostInfo: host, GpuInventory: inventory, Bundle: bundle})


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted evidence read and judged by what it says of itself."""
    monkeypatch.setattr("validation.host_run.judge.judge_facts", judged)
    monkeypatch.setattr("validation.host_run.assemble", assembled)


def _target(name: str, **changes: Any) -> Target:
    fields: dict[str, Any] = {
        "name": name,
        "address": "192.0.2.1",
        "user": "root",
        "private_key": "very secret",
        "host_key": "ssh-ed25519 AAAA",
        "expectation": Expectation(instance_type="p5.48xlarge"),
    }
    return Target(**{**fields, **changes})


def _run(remote: Any, *targets: Target, options: Options | None = None, **how: Any) -> tuple[HostReport, ...]:
    how.setdefault("cancel", threading.Event())
    how.setdefault("progress", lambda *_: None)
    return validate(targets, options or Options(deadline_s=10.0), remote=remote, **how).hosts


def _nvml(**items: str) -> dict[str, dict[str, str]]:
    return {"nvml": {"stdout": "{}"}, **{name.replace("_", "-"): {"stdout": text} for name, text in items.items()}}


@pytest.fixture
def target() -> Callable[..., Target]:
    return _target


@pytest.fixture
def run() -> Callable[..., tuple[HostReport, ...]]:
    return _run


@pytest.fixture
def nvml() -> Callable[..., dict[str, dict[str, str]]]:
    return _nvml


@pytest.fixture
def said() -> Callable[..., list[str]]:
    """What a check says of one fact alone, "VERDICT subject: message" a finding. Every trouble must have a remedy."""

    def judge(check: Check, fact: object, instance_type: str = "") -> list[str]:
        expected = expect(instance_type) if instance_type else Expectation(instance_type="")
        findings = list(check.evaluate(Facts({type(fact): fact}), expected))
        assert all(finding.remedy for finding in findings if finding.verdict.value in ("WARN", "UNKNOWN", "FAIL"))
        return [f"{finding.verdict.value} {finding.subject}: {finding.message}" for finding in findings]

    return judge
