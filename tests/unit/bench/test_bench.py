"""The bench's own arithmetic and wording; its figures are no test's business."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import ansible, openssh
from bench.__main__ import main
from bench.replay import NONCE, SCRIPT
from bench.table import table
from sandbox.hosts.host import SimulatedHost
from validation.probe.collectors import collectors
from validation.probe.files import Root
from validation.transcript import Transcript
from validation.waiting import READY_COMMAND


def way(wall_s: float, cpu_s: float) -> dict[str, Any]:
    return {"wall_s": wall_s, "cpu_s": cpu_s, "rounds_wall_s": [wall_s]}


FIGURES: dict[str, Any] = {
    "instance_type": "p5.48xlarge",
    "concurrency": 32,
    "processors": 2,
    "simulated": {
        "hosts": 20,
        "ways": {"openssh_true": way(4.0, 1.4), "openssh_facts": way(5.0, 1.5), "kiln": way(3.0, 0.6)},
        "ansible": {
            "version": "ansible-playbook [core 2.19.14]",
            "ways": {"one_task": way(12.0, 6.0), "task_a_tool": way(60.0, 33.0)},
        },
        "parsed_hosts_per_s": 55.4,
        "judged_hosts_per_s": 812.2,
    },
    "replayed": {
        "hosts": 50,
        "addresses": 64,
        "ways": {"openssh_true": way(4.0, 3.8), "kiln": way(2.0, 1.7)},
        "many": {**way(38.2, 33.3), "hosts": 1000, "memory_before_mib": 110.0, "memory_mib": 161.0},
    },
    "preview": {"nodes": 64, "ways": {"empty": way(0.8, 0.7), "one": way(2.6, 2.5), "many": way(4.6, 4.4)}},
    "commands": {"ways": {"kiln --help": way(0.05, 0.04)}},
}


def test_the_table_shows_seconds_and_ratios() -> None:
    assert table(FIGURES).splitlines() == [
        "2 processors, 32 logins at once; medians        wall    cpu of the asking side",
        "20 simulated p5.48xlarge on a real sshd, which work on these processors too",
        "  OpenSSH runs true                           4.00 s        1.40 s",
        "  OpenSSH gathers the same facts              5.00 s        1.50 s",
        "  Ansible gathers them in one task           12.00 s        6.00 s   4.00 x Kiln",
        "  Ansible gathers them in a task a tool      60.00 s       33.00 s   20.00 x Kiln",
        "  Kiln validates                              3.00 s        0.60 s   0.75 x true, 0.60 x the facts",
        "  Ansible: ansible-playbook [core 2.19.14]",
        "  parses 55 hosts/s, judges 812 hosts/s",
        "50 hosts behind real sshd on 64 addresses, which replay recorded evidence",
        "  OpenSSH runs true                           4.00 s        3.80 s",
        "  Kiln validates                              2.00 s        1.70 s   0.50 x true",
        "  Kiln validates 1000                        38.20 s       33.30 s   peak memory 161 MiB, 110 before",
        "pulumi preview: the real engine and SDK, the emulated cloud's provider",
        "  an empty program                            0.80 s        0.70 s",
        "  one host                                    2.60 s        2.50 s   +1.80 s",
        "  64 hosts                                    4.60 s        4.40 s   +3.80 s",
        "the command line",
        "  kiln --help                                 0.05 s        0.04 s",
    ]


def test_what_could_not_be_measured_says_why() -> None:
    simulated = {**FIGURES["simulated"], "ansible": {"absent": ansible.ABSENT}}
    shown = table({**FIGURES, "simulated": simulated, "preview": {"absent": "no Pulumi CLI"}})
    assert "  Ansible: not measured, no ansible-playbook on PATH: python3 -m venv" in shown
    assert "pulumi preview: not measured, no Pulumi CLI\n" in shown


def test_an_ansible_that_is_not_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ansible.find(None) is None
    assert ansible.find(tmp_path / "ansible-playbook") is None
    (tmp_path / "ansible-playbook").write_text("#!/bin/sh\n")
    (tmp_path / "ansible-playbook").chmod(0o755)
    assert ansible.find(None) == ansible.find(tmp_path / "ansible-playbook") == tmp_path / "ansible-playbook"


def test_the_loop_runs_every_tool_that_the_probe_runs(tmp_path: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "h1", "g4dn.xlarge")
    commands = openssh.fact_commands(host).split("; ")
    tools = [collector.ways[0][0] for collector in collectors(Root("/")) if not collector.is_file]
    assert tools
    assert commands[: len(tools)] == tools


@pytest.fixture
def replay(tmp_path: Path) -> Path:
    """The script of a replayed host with two items."""
    gpu = "GPU-0123abcd-1111-2222-3333-444455556666"
    items = [
        f'{{"event":"evidence","item":{{"name":"{name}","outcome":"ok","source":"x","stdout":"{gpu}"}},"kiln":"{NONCE}"}}\n'
        for name in ("a", "b")
    ]
    (tmp_path / "ready").write_text("KILN cloud-init\n")
    (tmp_path / "start").write_text(f'{{"event":"start","kiln":"{NONCE}","root":"/"}}\n')
    (tmp_path / "evidence").write_text("".join(items))
    script = tmp_path / "replay"
    script.write_text(SCRIPT.format(folder=tmp_path, nonce=NONCE, items=2))
    script.chmod(0o755)
    return script


def said(script: Path, command: str) -> bytes:
    environment = {"SSH_ORIGINAL_COMMAND": command, "PATH": "/usr/bin:/bin"}
    return subprocess.run([script], env=environment, input=b"zip", capture_output=True, check=True).stdout


def test_a_replayed_host_speaks_as_the_probe_with_gpus_of_its_own(replay: Path) -> None:
    seen = set()
    for nonce in ("0123456789abcdef", "fedcba9876543210"):
        transcript = Transcript(nonce)
        assert transcript.feed(said(replay, f"exec /bin/sh -c x 3 collect {nonce}"))
        bundle = transcript.bundle("h")
        assert bundle.complete
        assert sorted(bundle.items) == ["a", "b"]
        seen |= {item.stdout for item in bundle.items.values()}
    assert seen == {
        "GPU-0123abcd-0123-4567-3333-444455556666",
        "GPU-0123abcd-fedc-ba98-3333-444455556666",
    }
    assert sorted(path.name for path in replay.parent.iterdir()) == ["evidence", "ready", "replay", "start"]


def test_a_replayed_host_is_ready_and_runs_other_commands(replay: Path) -> None:
    assert said(replay, READY_COMMAND) == b"KILN cloud-init\n"
    assert said(replay, "echo hello") == b"hello\n"


@pytest.mark.parametrize(("option", "value"), [("--hosts", "251"), ("--hosts", "0"), ("--many", "no")])
def test_an_impossible_number_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", option, value])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"argument {option}: invalid" in capsys.readouterr().err
