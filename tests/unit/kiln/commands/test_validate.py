from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kiln.__main__ import main
from kiln.commands import validate as command
from validation.report.model import HostReport, StackReport
from validation.runner import Options, Target
from validation.verdict import Finding, Verdict

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGa7nVGQnB0c9j0aZ7nY7oKjVJzGMHJ3PuR+a2Yi9aM"


class Runner:
    """Stands in for the runner: records what it is given, returns one verdict for every host."""

    def __init__(self, verdict: Verdict = Verdict.PASS) -> None:
        self.verdict = verdict
        self.targets: list[Target] = []
        self.options = Options()
        self.interrupt: signal.Signals | None = None

    def __call__(self, targets: list[Target], options: Options, *, progress: Any, cancel: threading.Event) -> Any:
        self.targets, self.options = list(targets), options
        if self.interrupt is not None:
            os.kill(os.getpid(), self.interrupt)
            assert cancel.wait(5)
        hosts = []
        for target in targets:
            progress(target.name, "probe", "gathering")
            finding = Finding("gpu.count", target.name, self.verdict, "m")
            hosts.append(HostReport(target.name, target.address, "", "", self.verdict, (finding,)))
        return StackReport(self.verdict, tuple(hosts), started=time.strftime("%Y-%m-%dT%H:%M:%SZ"))


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    fake = Runner()
    monkeypatch.setattr(command, "validate", fake)
    return fake


@pytest.fixture
def hosts(tmp_path: Path, private_key: bytes) -> str:
    (tmp_path / "key").write_bytes(private_key)
    entry = f"{{name: gpu-1, address: 10.0.0.1, instanceType: g5.xlarge, privateKeyFile: key, hostKey: '{HOST_KEY}'}}"
    (tmp_path / "rack.yaml").write_text(f"hosts: [{entry}]\n")
    return str(tmp_path / "rack.yaml")


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.PASS, 0), (Verdict.FAIL, 1), (Verdict.UNKNOWN, 3)])
def test_the_exit_code_is_the_verdict_s(
    runner: Runner, hosts: str, verdict: Verdict, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.verdict = verdict
    assert main(["validate", "--hosts", hosts]) == code
    captured = capsys.readouterr()
    assert captured.out.startswith("rack: gate ")
    assert "gpu-1  probe: gathering" in captured.err


def test_json_is_the_report_and_nothing_else(runner: Runner, hosts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--hosts", hosts, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["title"], data["healthy"]) == ("kiln/report/v1", "rack", True)


def test_the_options_reach_the_runner(runner: Runner, hosts: str, tmp_path: Path) -> None:
    words = ["--burn-in", "quick", "--deadline", "60", "--concurrency", "4", "--keep-evidence", str(tmp_path / "e")]
    assert main(["validate", "--hosts", hosts, *words]) == 0
    asked = runner.options
    assert (asked.burn_in, asked.deadline_s, asked.concurrency) == ("quick", 60.0, 4)
    assert asked.keep_evidence == tmp_path / "e"


def test_a_profile_of_the_command_line_replaces_the_inventory_s(runner: Runner, hosts: str) -> None:
    assert main(["validate", "--hosts", hosts, "--profile", "p5.48xlarge"]) == 0
    expected = runner.targets[0].expectation
    assert expected.instance_type == "p5.48xlarge"
    assert expected.profile is not None
    assert expected.profile.instance_type == "p5.48xlarge"


def test_an_unknown_profile_is_wrong_usage(runner: Runner, hosts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--hosts", hosts, "--profile", "p99.bogus"]) == 2
    assert "--profile: found p99.bogus; expected one of" in capsys.readouterr().err
    assert runner.targets == []


def test_a_wrong_inventory_is_told_before_any_host_is_touched(
    runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text("hosts: []")
    assert main(["validate", "--hosts", str(tmp_path / "x.yaml")]) == 2
    assert "x.yaml:1: hosts: found no host" in capsys.readouterr().err
    assert runner.targets == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_work_in_order_shows_the_report_and_is_130(
    number: signal.Signals, runner: Runner, hosts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.interrupt = number
    runner.verdict = Verdict.UNKNOWN
    assert main(["validate", "--hosts", hosts]) == 130
    assert "gate CLOSED: UNKNOWN" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
