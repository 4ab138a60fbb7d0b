"""The bench's own arithmetic and wording; its figures are no test's business."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import main, table
from bench.openssh import fact_commands
from sandbox.hosts.host import SimulatedHost
from validation.probe.collectors import collectors
from validation.probe.files import Root

FIGURES = {
    "hosts": 20,
    "instance_type": "p5.48xlarge",
    "concurrency": 32,
    "processors": 2,
    "rounds": {"kiln": [5.8, 5.2, 5.3]},
    "seconds": {"openssh_true": 4.9, "openssh_facts": 6.1, "kiln": 5.3},
    "ratios": {"kiln_to_openssh_true": 1.082, "kiln_to_openssh_facts": 0.869},
    "parsed_hosts_per_s": 35.4,
    "judged_hosts_per_s": 1608.2,
    "peak_memory_mib": 97.9,
}


def test_the_table_shows_seconds_and_ratios() -> None:
    assert table(FIGURES).splitlines() == [
        "20 simulated p5.48xlarge on a real sshd, 32 at once, 2 processors, median of 3",
        "  OpenSSH runs true                   4.90 s",
        "  OpenSSH gathers the same facts      6.10 s",
        "  Kiln validates                      5.30 s   1.08 x true, 0.87 x the same facts",
        "  parses 35 hosts/s, judges 1608 hosts/s; peak memory 98 MiB",
    ]


def test_the_loop_runs_every_tool_that_the_probe_runs(tmp_path: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "h1", "g4dn.xlarge")
    commands = fact_commands(host).split("; ")
    tools = [collector.ways[0][0] for collector in collectors(Root("/")) if not collector.is_file]
    assert tools
    assert commands[: len(tools)] == tools


@pytest.mark.parametrize("hosts", ["0", "251", "many"])
def test_an_impossible_number_of_hosts_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hosts: str
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--hosts", hosts])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"invalid _count value: '{hosts}'" in capsys.readouterr().err
