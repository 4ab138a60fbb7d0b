"""The report as Markdown: for a pull request, a job summary or a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable

from validation.report.model import StackReport
from validation.report.summary import SEVERITY, Entry, closing, comparison, counts, headline, warnings
from validation.report.text import line
from validation.verdict import Verdict

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!&@])")


def escape(text: str) -> str:
    """The text on one line, with everything escaped that Markdown, HTML or a table could take for its own."""
    return _SPECIAL.sub(r"\\\1", line(text))


def render(report: StackReport) -> str:
    """The report as GitHub-flavoured Markdown: verdict, hosts, then what closes the gate, then warnings."""
    lines = [f"## {escape(headline(report))}", ""]
    if report.started:
        lines += [f"Judged {escape(report.started)} in {report.duration_s:.1f} s.", ""]
    lines += _hosts(report)
    lines += _section("What closes the gate", closing(report))
    lines += _section("Warnings", warnings(report))
    return "\n".join(lines).rstrip() + "\n"


def _hosts(report: StackReport) -> list[str]:
    if not report.hosts:
        return []
    shown = ("host", "instance", "type", "verdict", *(verdict.value for verdict in SEVERITY))
    lines = ["| " + " | ".join(shown) + " |", "|" + " --- |" * 4 + " ---: |" * len(SEVERITY)]
    for host in report.hosts:
        number = counts(host)
        cells = [escape(host.host), escape(host.instance_id), escape(host.instance_type), _bold(host.verdict)]
        cells += [str(number[verdict]) for verdict in SEVERITY]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _bold(verdict: Verdict) -> str:
    return verdict.value if verdict.opens_gate else f"**{verdict.value}**"


def _section(title: str, entries: Iterable[Entry]) -> list[str]:
    found = list(entries)
    if not found:
        return []
    lines = [f"### {title}", ""]
    for entry in found:
        finding = entry.finding
        kind = f", {finding.fault_class.value}" if finding.fault_class else ""
        subject, check, label = escape(finding.subject), escape(finding.check), escape(entry.label)
        lines.append(f"- **{label}** {subject} ({check}{kind}): {escape(finding.message)}")
        numbers = comparison(finding)
        if numbers:
            lines.append(f"  - {escape(numbers)}")
        if finding.remedy:
            lines.append(f"  - Remedy: {escape(finding.remedy)}")
    return [*lines, ""]
