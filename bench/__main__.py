"""``python -m bench``: how fast hosts are validated, as ratios to OpenSSH in the same run.

Simulated p5.48xlarge hosts behind a real sshd, all on this machine: the hosts' own work (their Python, their tools)
runs on the same processors as Kiln's and is part of every figure. Seconds depend on the machine; the ratios count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import fleet, judging, openssh
from profiles.errors import KilnError
from validation.runner import Options, Target, validate

INSTANCE_TYPE, EFA_COUNT = "p5.48xlarge", 32


def main() -> int:
    """Measure, print the table, write the JSON. 1 where a host was not found healthy or a command failed."""
    arguments = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="kiln-bench-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            with fleet.running(folder, arguments.hosts, INSTANCE_TYPE, EFA_COUNT) as hosts:
                figures = measure(hosts, folder, arguments.rounds, arguments.concurrency)
    except KilnError as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    sys.stdout.write(table(figures))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--hosts", type=_count, default=20, help="simulated hosts (default 20)")
    parser.add_argument("--rounds", type=_count, default=3, help="rounds, taken in turn; the median counts (default 3)")
    parser.add_argument("--concurrency", type=_count, default=32, help="logins at once, on both sides (default 32)")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="where the figures go")
    return parser.parse_args()


def _count(text: str) -> int:
    """A number from 1 to 250: that many loopback addresses there are in one network. Raises ValueError otherwise."""
    if not 1 <= (number := int(text)) <= 250:
        raise ValueError(text)
    return number


def measure(hosts: fleet.Fleet, folder: Path, rounds: int, concurrency: int) -> dict[str, Any]:
    """All figures. The three ways take turns, so that a busy moment of this machine spoils none of them alone."""
    nothing = ["true"] * len(hosts.hosts)
    facts = [openssh.fact_commands(host) for host in hosts.hosts]
    seconds: dict[str, list[float]] = {"openssh_true": [], "openssh_facts": [], "kiln": []}
    read = 0
    for number in range(rounds):
        _say(f"round {number + 1} of {rounds}")
        seconds["openssh_true"].append(openssh.loop(hosts, nothing, concurrency)[0])
        took, read = openssh.loop(hosts, facts, concurrency)
        seconds["openssh_facts"].append(took)
        seconds["kiln"].append(_validated(hosts.targets, Options(deadline_s=300.0, concurrency=concurrency)))
    _say("parsing and judging")
    first = hosts.targets[0]
    _validated([first], Options(keep_evidence=folder / "evidence"))
    kept = next((folder / "evidence").rglob("manifest.json")).parent
    parsed, judged = judging.per_second(kept, first.expectation)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "schema": "kiln/bench/v1",
        "hosts": len(hosts.hosts),
        "instance_type": INSTANCE_TYPE,
        "concurrency": concurrency,
        "processors": len(os.sched_getaffinity(0)),
        "rounds": {name: [round(value, 3) for value in values] for name, values in seconds.items()},
        "seconds": {name: round(value, 3) for name, value in median.items()},
        "ratios": {
            "kiln_to_openssh_true": round(median["kiln"] / median["openssh_true"], 3),
            "kiln_to_openssh_facts": round(median["kiln"] / median["openssh_facts"], 3),
        },
        "openssh_facts_bytes": read,
        "parsed_hosts_per_s": round(parsed, 1),
        "judged_hosts_per_s": round(judged, 1),
        "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _validated(targets: Sequence[Target], options: Options) -> float:
    """Seconds to the verdict. Raises KilnError where it is not good: a figure for sick hosts would mean nothing."""
    report = validate(targets, options, progress=lambda *_: None, cancel=threading.Event())
    if not report.healthy:
        bad = [
            f"{f.check} {f.subject}: {f.message}" for h in report.hosts for f in h.findings if not f.verdict.opens_gate
        ]
        raise KilnError(f"verdict {report.verdict.value}, so nothing was measured: {'; '.join(bad[:3])}")
    return report.duration_s


def table(figures: dict[str, Any]) -> str:
    """The figures for a reader."""
    seconds, ratios = figures["seconds"], figures["ratios"]
    against = f"{ratios['kiln_to_openssh_true']:.2f} x true, {ratios['kiln_to_openssh_facts']:.2f} x the same facts"
    rows = [
        ("OpenSSH runs true", seconds["openssh_true"], ""),
        ("OpenSSH gathers the same facts", seconds["openssh_facts"], ""),
        ("Kiln validates", seconds["kiln"], against),
    ]
    hosts = f"{figures['hosts']} simulated {figures['instance_type']} on a real sshd"
    how = f"{figures['concurrency']} at once, {figures['processors']} processors"
    speed = f"parses {figures['parsed_hosts_per_s']:.0f} hosts/s, judges {figures['judged_hosts_per_s']:.0f} hosts/s"
    lines = [
        f"{hosts}, {how}, median of {len(figures['rounds']['kiln'])}",
        *(f"  {name:<32}{value:8.2f} s   {note}".rstrip() for name, value, note in rows),
        f"  {speed}; peak memory {figures['peak_memory_mib']:.0f} MiB",
    ]
    return "\n".join(lines) + "\n"


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
