"""The gate's table, as the terminal shows it: the verdict, a line per host, then every finding that closes the gate."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from validation.report.model import HostReport, StackReport
from validation.report.summary import SEVERITY, Entry, areas, closing, comparison, counts, headline, warnings
from validation.report.text import line
from validation.verdict import Verdict

STYLE = {
    Verdict.PASS: "green",
    Verdict.NOT_APPLICABLE: "dim",
    Verdict.WARN: "yellow",
    Verdict.UNKNOWN: "bold magenta",
    Verdict.FAIL: "bold red",
}
SHORT = {Verdict.NOT_APPLICABLE: "n/a"}


def render(report: StackReport, *, width: int = 100, color: bool = False) -> str:
    """The table as text, ``width`` columns wide; ANSI colours only if ``color``."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=max(width, 40),
        force_terminal=color,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
        color_system="standard" if color else None,
        _environ={},
    )
    console.print(build(report))
    rows = (row.rstrip() for row in buffer.getvalue().split("\n"))
    return "\n".join(rows).rstrip("\n") + "\n"


def build(report: StackReport) -> RenderableType:
    """The table for a rich console. Texts of hosts are never read as markup."""
    parts: list[RenderableType] = [Text(headline(report), style="bold green" if report.healthy else "bold red")]
    if report.hosts:
        parts.append(_hosts(report.hosts))
    parts += [_finding(entry) for entry in (*closing(report), *warnings(report))]
    return Group(*parts)


def _hosts(hosts: Iterable[HostReport]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("host", no_wrap=True, overflow="ellipsis")
    table.add_column("instance", no_wrap=True, overflow="ellipsis")
    table.add_column("type", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("checks", ratio=1)
    table.add_column("burn-in", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for host in hosts:
        table.add_row(
            Text(line(host.host)),
            Text(line(host.instance_id or host.address)),
            Text(line(host.instance_type)),
            Text(host.verdict.value, style=STYLE[host.verdict]),
            _areas(host),
            _burn_in(host),
            f"{host.duration_s:.1f} s",
        )
    return table


def _areas(host: HostReport) -> Text:
    text = Text()
    number = counts(host)
    for verdict in SEVERITY:
        names = areas(host)[verdict]
        if names:
            text.append(f"{number[verdict]} {SHORT.get(verdict, verdict.value)} ", style=STYLE[verdict])
            text.append(line(" ".join(names)) + "  ")
    text.rstrip()
    return text


def _burn_in(host: HostReport) -> Text:
    if host.burn_in is None:
        return Text("none", style="dim")
    return Text(f"{line(host.burn_in.level)}{' (reused)' if host.burn_in_reused else ''}")


def _finding(entry: Entry) -> RenderableType:
    finding = entry.finding
    style = STYLE[Verdict.WARN] if finding.verdict.opens_gate or not finding.required else STYLE[finding.verdict]
    head = Text.assemble(
        (entry.label, style), "  ", (line(finding.subject), "bold"), "  ", (line(finding.check), "dim")
    )
    if finding.fault_class:
        head.append(f"  [{finding.fault_class.value}]", style="cyan")
    body = [line(finding.message), comparison(finding), finding.remedy and f"-> {line(finding.remedy)}"]
    return Group(head, Padding(Text("\n".join(text for text in body if text)), (0, 0, 1, 6)))
