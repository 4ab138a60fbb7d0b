"""The figures for a reader: seconds of the wall, processor seconds of the asking side, and the ratios that count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Figures = Mapping[str, Any]
SECONDS = {
    "openssh_true": "OpenSSH runs true",
    "openssh_facts": "OpenSSH gathers the same facts",
    "kiln": "Kiln validates",
    "one_task": "Ansible gathers them in one task",
    "task_a_tool": "Ansible gathers them in a task a tool",
    "empty": "an empty program",
    "one": "one host",
    "many": "{nodes} hosts",
}


def table(figures: Figures) -> str:
    """Every part that was measured; what was not says why."""
    parts = {"simulated": _simulated, "replayed": _replayed, "preview": _preview, "commands": _commands}
    how = f"{figures['processors']} processors, {figures['concurrency']} logins at once; medians"
    lines = [f"{how:<42}{'wall':>10}{'cpu of the asking side':>26}"]
    for name, part in parts.items():
        if name in figures:
            lines += part(figures[name], figures)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _row(name: str, taken: Figures, note: str = "") -> str:
    return f"  {name:<40}{taken['wall_s']:>8.2f} s{taken['cpu_s']:>12.2f} s   {note}"


def _times(one: Figures, other: Figures) -> str:
    """``one`` as a multiple of ``other``, in wall seconds: ``0.87 x``."""
    return f"{one['wall_s'] / other['wall_s']:.2f} x"


def _simulated(part: Figures, figures: Figures) -> Iterator[str]:
    ways = part["ways"]
    yield f"{part['hosts']} simulated {figures['instance_type']} on a real sshd, which work on these processors too"
    yield from (_row(SECONDS[name], ways[name]) for name in ("openssh_true", "openssh_facts"))
    asked = part["ansible"]
    for name, taken in asked.get("ways", {}).items():
        yield _row(SECONDS[name], taken, f"{_times(taken, ways['kiln'])} Kiln")
    note = f"{_times(ways['kiln'], ways['openssh_true'])} true, {_times(ways['kiln'], ways['openssh_facts'])} the facts"
    yield _row(SECONDS["kiln"], ways["kiln"], note)
    yield f"  Ansible: {asked.get('version') or 'not measured, ' + asked['absent']}"
    yield f"  parses {part['parsed_hosts_per_s']:.0f} hosts/s, judges {part['judged_hosts_per_s']:.0f} hosts/s"


def _replayed(part: Figures, _: Figures) -> Iterator[str]:
    ways, many = part["ways"], part["many"]
    yield f"{part['hosts']} hosts behind real sshd on {part['addresses']} addresses, which replay recorded evidence"
    yield _row(SECONDS["openssh_true"], ways["openssh_true"])
    yield _row(SECONDS["kiln"], ways["kiln"], f"{_times(ways['kiln'], ways['openssh_true'])} true")
    memory = f"peak memory {many['memory_mib']:.0f} MiB, {many['memory_before_mib']:.0f} before"
    yield _row(f"Kiln validates {many['hosts']}", many, memory)


def _preview(part: Figures, _: Figures) -> Iterator[str]:
    if "absent" in part:
        yield f"pulumi preview: not measured, {part['absent']}"
        return
    ways = part["ways"]
    yield "pulumi preview: the real engine and SDK, the emulated cloud's provider"
    for name, taken in ways.items():
        more = "" if name == "empty" else f"{taken['wall_s'] - ways['empty']['wall_s']:+.2f} s"
        yield _row(SECONDS[name].format(nodes=part["nodes"]), taken, more)


def _commands(part: Figures, _: Figures) -> Iterator[str]:
    yield "the command line"
    yield from (_row(name, taken) for name, taken in part["ways"].items())
