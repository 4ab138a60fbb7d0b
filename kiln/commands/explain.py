"""``kiln explain``: what the output of a GPU tool says, and what is wrong with it."""

from __future__ import annotations

import json as json_module
import textwrap
from collections.abc import Iterator, Sequence

import click

from kiln import facts_view
from kiln.output import json_option
from kiln.textfile import read_text
from validation.explain import Explanation, NotJudged, explain
from validation.explain_paste import Output, Outputs, explain_paste
from validation.report.summary import SEVERITY, comparison, effective
from validation.report.text import line
from validation.verdict import Finding, Verdict, exit_code

CSV = "nvidia-smi-csv"
GOOD = (Verdict.PASS, Verdict.NOT_APPLICABLE)
SHORT = {Verdict.NOT_APPLICABLE: "n/a"}
COLORS = {
    Verdict.PASS: "green",
    Verdict.NOT_APPLICABLE: "bright_black",
    Verdict.WARN: "yellow",
    Verdict.UNKNOWN: "magenta",
    Verdict.FAIL: "red",
}


@click.command(short_help="Say what the output of a GPU tool means.")
@click.argument("file", metavar="FILE|-")
@click.option("--kind", metavar="KIND", help="Which tool printed it, where it is not recognised.")
@click.option("--profile", metavar="TYPE", help="The instance type it comes from: judges more.")
@click.option("--fields", metavar="LIST", help="What --query-gpu was asked for, where its CSV came without header.")
@json_option
def command(file: str, kind: str | None, profile: str | None, fields: str | None, json: bool) -> int:
    """Recognise the output of one tool in FILE (- is stdin), say what it says, what is wrong, and what to do.

    \b
    nvidia-smi -q -x | kiln explain -
    dmesg | kiln explain -
    nvidia-smi topo -m | kiln explain - --profile p5.48xlarge
    nvidia-smi --query-gpu=name,uuid --format=csv,noheader | kiln explain - --fields name,uuid

    Exits with the verdict: 0 nothing wrong, 1 FAIL, 3 UNKNOWN: not recognised, cut short, or could not be looked at.
    """
    text = read_text(file)
    if fields is not None:
        text, kind = f"{fields}\n{text}", kind or CSV
    if kind is None:
        outputs = explain_paste(text, profile=profile)
    else:
        outputs = Outputs((Output("", explain(text, kind=kind, profile=profile)),))
    if json:
        click.echo(json_module.dumps(outputs.to_dict(), indent=2))
    else:
        click.echo("\n".join(_all(outputs)))
    return exit_code(outputs.verdict)


def _all(found: Outputs) -> Iterator[str]:
    """Each output of a paste; of several, what they come to together first."""
    several = len(found.outputs) > 1
    if several:
        yield f"{len(found.outputs)} outputs: {_styled(found.verdict, found.verdict.value)}"
    for at, output in enumerate(found.outputs, start=1):
        if several:
            typed = f"  $ {line(output.command)}" if output.command else ""
            yield from ("", click.style(f"{at} of {len(found.outputs)}{typed}", bold=True))
        yield from _lines(output.explanation)


def _lines(explanation: Explanation) -> Iterator[str]:
    """What it is and what it comes to; the trouble, the worst first; what is good; what it says; what is left open."""
    verdict = _styled(explanation.verdict, explanation.verdict.value)
    yield f"{explanation.title} ({explanation.kind}): {verdict}"
    worst_first = sorted(explanation.findings, key=lambda finding: SEVERITY.index(finding.verdict))
    for finding in worst_first:
        if finding.verdict not in GOOD:
            yield ""
            yield from _trouble(finding)
    yield from _headed("Good", _good([finding for finding in worst_first if finding.verdict in GOOD]))
    yield from _headed("What it says", facts_view.lines(explanation.to_dict()["facts"]))
    yield from _headed("Not judged", _open(explanation.not_judged))


def _headed(head: str, rows: Sequence[str]) -> list[str]:
    return ["", click.style(head, bold=True), *(f"  {row}" for row in rows)] if rows else []


def _trouble(finding: Finding) -> Iterator[str]:
    label = finding.verdict.value
    if not finding.required and finding.verdict in (Verdict.FAIL, Verdict.UNKNOWN):
        label = f"WARN (advisory {label})"
    kind = f"  [{finding.fault_class.value}]" if finding.fault_class else ""
    yield f"{_styled(effective(finding), label)}  {line(finding.subject)}  {finding.check}{kind}"
    yield from (f"      {text}" for text in (line(finding.message), comparison(finding)) if text)
    if finding.remedy:
        yield f"      -> {line(finding.remedy)}"


def _good(findings: Sequence[Finding]) -> list[str]:
    """One row a finding: what was good, or does not apply."""
    wide = max((len(finding.check) for finding in findings), default=0)
    rows = []
    for finding in findings:
        whom = "" if finding.subject in ("host", "text") else f"{line(finding.subject)}: "
        short = SHORT.get(finding.verdict, finding.verdict.value)
        padding = " " * (len(Verdict.PASS.value) - len(short))
        label = _styled(finding.verdict, short) + padding
        rows.append(f"{label}  {finding.check:<{wide}}  {whom}{line(finding.message)}")
    return rows


def _open(items: Sequence[NotJudged]) -> list[str]:
    """The checks that could not be made, by what would make them."""
    by_need: dict[str, list[str]] = {}
    for item in items:
        by_need.setdefault(item.needs, []).append(item.check)
    return [
        row
        for need, checks in by_need.items()
        for row in textwrap.wrap(
            f"needs {need}: {', '.join(checks)}", facts_view.WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )
    ]


def _styled(verdict: Verdict, text: str) -> str:
    return click.style(text, fg=COLORS[verdict], bold=verdict in (Verdict.FAIL, Verdict.UNKNOWN))
