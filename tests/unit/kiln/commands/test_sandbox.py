from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from kiln.__main__ import main
from kiln.commands import sandbox as command
from sandbox.hosts.faults import FAULTS


class FakeSandbox:
    """Stands in for the client: records the calls."""

    calls: list[tuple[Any, ...]] = []

    def __init__(self, home: object) -> None:
        self.home = home

    def stop(self) -> bool:
        self.calls.append(("stop",))
        return False

    def status(self) -> dict[str, Any]:
        return {"running": False, "home": "somewhere"}

    def hosts(self) -> list[dict[str, Any]]:
        return [{"name": "node-0", "id": "i-1", "instance_type": "t", "address": "127.64.0.1", "faults": ["xid-13"]}]

    def fault(self, host: str, name: str, *, pending: bool = False) -> bool:
        self.calls.append(("fault", host, name, pending))
        return pending

    def clear(self, host: str) -> None:
        self.calls.append(("clear", host))

    def clear_cloud_faults(self) -> None:
        self.calls.append(("clear_cloud_faults",))

    def cloud_fault(self, name: str, host: str, value: float) -> None:
        self.calls.append(("cloud_fault", name, host, value))

    def reboot(self, host: str) -> None:
        self.calls.append(("reboot", host))

    def env(self) -> dict[str, str]:
        return {"PATH": "/a b:/c", "X": "it's"}

    def settings(self) -> dict[str, str]:
        return {"sshPort": "2222"}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.setattr(command, "Sandbox", FakeSandbox)
    monkeypatch.setattr(FakeSandbox, "calls", [])
    return FakeSandbox.calls


@pytest.mark.parametrize(
    ("words", "call", "printed"),
    [
        (["stop"], ("stop",), "no sandbox was running\n"),
        (["fault", "node-0", "xid-13"], ("fault", "node-0", "xid-13", False), "node-0 has xid-13\n"),
        (
            ["fault", "node-9", "xid-13", "--pending"],
            ("fault", "node-9", "xid-13", True),
            "node-9 will get xid-13 at its creation\n",
        ),
        (["clear", "node-0"], ("clear", "node-0"), "node-0 has no faults\n"),
        (["clear", "--cloud"], ("clear_cloud_faults",), "the cloud has no faults\n"),
        (["cloud-fault", "no-capacity"], ("cloud_fault", "no-capacity", "*", 0.0), "the cloud has no-capacity\n"),
        (["reboot", "node-0"], ("reboot", "node-0"), "node-0 was rebooted\n"),
    ],
)
def test_a_command_does_one_thing_and_says_it(
    calls: list[tuple[Any, ...]],
    words: list[str],
    call: tuple[Any, ...],
    printed: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sandbox", *words]) == 0
    assert calls == [call]
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("words", [["fault"], ["fault", "node-0"], ["clear"], ["reboot"], ["nonsense"]])
def test_a_command_that_lacks_something_is_wrong_usage(calls: list[tuple[Any, ...]], words: list[str]) -> None:
    assert main(["sandbox", *words]) == 2
    assert calls == []


def test_every_fault_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "fault", "--list"]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == list(FAULTS)


def test_the_environment_is_shell_and_survives_blanks_and_quotes(
    calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", "env"]) == 0
    lines = [shlex.split(row) for row in capsys.readouterr().out.splitlines()]
    assert lines == [["export", "PATH=/a b:/c"], ["export", "X=it's"]]


def test_the_settings_are_printed_as_commands(calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "config", "dev"]) == 0
    assert "pulumi config set --stack dev kiln:sshPort 2222\n" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["status", "hosts", "env"])
def test_json_has_a_schema(calls: list[tuple[Any, ...]], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", what, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == f"kiln/sandbox-{what}/v1"
    assert data[what]


def test_hosts_are_a_table(calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "hosts"]) == 0
    assert capsys.readouterr().out == (
        "name    id   instance_type  address     faults\nnode-0  i-1  t              127.64.0.1  xid-13\n"
    )
