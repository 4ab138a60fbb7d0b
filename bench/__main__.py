"""``python -m bench``: how fast hosts are validated, as ratios to OpenSSH and to Ansible in the same run.

All hosts are on this machine. Simulated hosts do their own work on the same processors as Kiln, so it is part of every
figure of theirs; hosts that replay recorded evidence stand for hosts elsewhere. Seconds depend on the machine; the
ratios count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import ansible, commands, fleet, judging, openssh, preview, replay, sshd
from bench.clock import Taken, median, peak_memory_mib, taken
from bench.table import table
from profiles.errors import KilnError
from validation.runner import Options, Target, validate

INSTANCE_TYPE, EFA_COUNT = "p5.48xlarge", 32
DEADLINE_S = 600.0
EXIT_TERMINATED = 143
Ways = dict[str, Callable[[], Taken]]


def main() -> int:
    """Measure, print the table, write the JSON. 1 where a host was not found healthy or a command failed."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))  # so that the daemons are stopped
    try:
        with tempfile.TemporaryDirectory(prefix="kiln-bench-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            figures = measure(arguments, folder)
    except KilnError as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    sys.stdout.write(table(figures))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--hosts", type=_hosts, default=20, help="simulated hosts (default 20)")
    parser.add_argument("--replayed", type=_count, default=50, help="hosts that replay evidence (default 50)")
    parser.add_argument("--many", type=_count, default=1000, help="the same, for time and memory (default 1000)")
    parser.add_argument("--rounds", type=_count, default=3, help="rounds, taken in turn; the median counts (default 3)")
    parser.add_argument("--concurrency", type=_count, default=32, help="logins at once, on all sides (default 32)")
    parser.add_argument("--ansible", type=Path, help="the ansible-playbook to compare with (default: on PATH)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be repeated")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="where the figures go")
    return parser.parse_args()


def _count(text: str) -> int:
    """A number from 1. Raises ValueError otherwise."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def _hosts(text: str) -> int:
    """A number from 1 to 250: that many loopback addresses there are in one network. Raises ValueError otherwise."""
    if (number := _count(text)) > sshd.ADDRESSES_MAX:
        raise ValueError(text)
    return number


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The figures of every part that is asked for."""
    found: dict[str, Any] = {
        "schema": "kiln/bench/v2",
        "instance_type": INSTANCE_TYPE,
        "concurrency": arguments.concurrency,
        "processors": len(os.sched_getaffinity(0)),
    }
    for name, part in PARTS.items():
        if not arguments.only or name in arguments.only:
            own = folder / name
            own.mkdir()
            found[name] = part(arguments, own)
    return found


def simulated(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Hosts that run here: OpenSSH, Ansible and Kiln ask the same of them."""
    with fleet.running(folder / "fleet", arguments.hosts, INSTANCE_TYPE, EFA_COUNT) as hosts:
        facts = [openssh.fact_commands(host) for host in hosts.hosts]
        ways = {
            "openssh_true": _openssh(hosts, ["true"] * len(hosts.hosts), arguments),
            "openssh_facts": _openssh(hosts, facts, arguments),
            "kiln": _kiln(hosts.targets, arguments),
        }
        result = _rounds(ways, arguments.rounds)
        result |= {"hosts": arguments.hosts, "ansible": _ansible(hosts, arguments, folder)}
        _say("parsing and judging")
        first = hosts.targets[0]
        _validated([first], Options(keep_evidence=folder / "evidence"))
        kept = next((folder / "evidence").rglob("manifest.json")).parent
        parsed, judged = judging.per_second(kept, first.expectation)
        return result | {"parsed_hosts_per_s": round(parsed, 1), "judged_hosts_per_s": round(judged, 1)}


def replayed(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Hosts that cost this machine nothing but their sshd, some and then very many."""
    recording = _recorded(folder)
    with replay.running(folder / "some", recording, arguments.replayed) as hosts:
        ways = {
            "openssh_true": _openssh(hosts, ["true"] * len(hosts.targets), arguments),
            "kiln": _kiln(hosts.targets, arguments),
        }
        result = _rounds(ways, arguments.rounds)
    before = peak_memory_mib()
    with replay.running(folder / "many", recording, arguments.many) as hosts:
        _say(f"{arguments.many} hosts")
        many = _figures([_kiln(hosts.targets, arguments)()])
    many |= {"hosts": arguments.many, "memory_before_mib": before, "memory_mib": peak_memory_mib()}
    return result | {"hosts": arguments.replayed, "many": many, "addresses": replay.ADDRESSES}


def previewed(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """``pulumi preview`` of an empty program, one host and many."""
    try:
        with preview.projects(folder / "projects") as projects:
            rounds = []
            for number in range(arguments.rounds):
                _say(f"preview, round {number + 1} of {arguments.rounds}")
                rounds.append(projects.previews())
    except KilnError as error:
        return {"absent": str(error)}
    return {"nodes": preview.NODES, "ways": {name: _figures([taken[name] for taken in rounds]) for name in rounds[0]}}


def answering(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:  # noqa: ARG001 - as every part
    """The command line's own start."""
    ways: Ways = {name: lambda name=name: commands.run(name) for name in commands.COMMANDS}  # type: ignore[misc]
    return _rounds(ways, arguments.rounds)


PARTS: dict[str, Callable[[argparse.Namespace, Path], dict[str, Any]]] = {
    "simulated": simulated,
    "replayed": replayed,
    "preview": previewed,
    "commands": answering,
}


def _rounds(ways: Ways, rounds: int) -> dict[str, Any]:
    """All ways take turns, so that a busy moment of this machine spoils none of them alone."""
    results: dict[str, list[Taken]] = {name: [] for name in ways}
    for number in range(rounds):
        _say(f"round {number + 1} of {rounds}: {', '.join(ways)}")
        for name, way in ways.items():
            results[name].append(way())
    return {"ways": {name: _figures(taken) for name, taken in results.items()}}


def _figures(results: Sequence[Taken]) -> dict[str, Any]:
    """Medians; ``cpu_s`` is the processor time of the asking side: this process and the clients it started."""
    return {
        "wall_s": median([result.wall_s for result in results]),
        "cpu_s": median([result.own_s + result.children_s for result in results]),
        "rounds_wall_s": [round(result.wall_s, 3) for result in results],
    }


def _openssh(hosts: fleet.Fleet, lines: list[str], arguments: argparse.Namespace) -> Callable[[], Taken]:
    def run() -> Taken:
        with taken() as took:
            openssh.loop(hosts, lines, arguments.concurrency)
        return took

    return run


def _kiln(targets: Sequence[Target], arguments: argparse.Namespace) -> Callable[[], Taken]:
    return lambda: _validated(targets, Options(deadline_s=DEADLINE_S, concurrency=arguments.concurrency))


def _validated(targets: Sequence[Target], options: Options) -> Taken:
    """What a good verdict takes. Raises KilnError for any other: a figure for sick hosts would mean nothing."""
    with taken() as took:
        report = validate(targets, options, progress=lambda *_: None, cancel=threading.Event())
    if not report.healthy:
        bad = [
            f"{f.check} {f.subject}: {f.message}" for h in report.hosts for f in h.findings if not f.verdict.opens_gate
        ]
        raise KilnError(f"verdict {report.verdict.value}, so nothing was measured: {'; '.join(bad[:3])}")
    return took


def _ansible(hosts: fleet.Fleet, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    playbook = ansible.find(arguments.ansible)
    if playbook is None:
        return {"absent": ansible.ABSENT}
    ways = {}
    for name, lines in (("one_task", ansible.one_task(hosts)), ("task_a_tool", ansible.task_a_tool(hosts))):
        _say(f"Ansible, {name.replace('_', ' ')}")
        took = ansible.play(playbook, hosts, lines, folder / name, arguments.concurrency)
        ways[name] = _figures([took])
    return {"version": ansible.version(playbook), "ways": ways}


def _recorded(folder: Path) -> replay.Recording:
    with fleet.running(folder / "recorded", 1, INSTANCE_TYPE, EFA_COUNT) as hosts:
        return replay.record(hosts.targets[0])


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
