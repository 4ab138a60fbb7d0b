"""``kiln explain``: what the output of a GPU tool says, and what is wrong with it."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator

import click

from kiln import facts_view
from kiln.output import json_option
from kiln.textfile import read_text
from validation.explain import Explanation, explain
from validation.report.summary import SEVERITY, comparison
from validation.report.text import line
from validation.verdict import Finding, Verdict, exit_code

CSV = "nvidia-smi-csv"


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
    explanation = explain(text, kind=kind, profile=profile)
    if json:
        click.echo(json_module.dumps(explanation.to_dict(), indent=2))
    else:
        click.echo("\n".join(_lines(explanation)))
    return exit_code(explanation.verdict)


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.title} ({explanation.kind}): {explanation.verdict.value}"
    worst_first = sorted(explanation.findings, key=lambda finding: SEVERITY.index(finding.verdict))
    for finding in worst_first:
        yield ""
        yield from _finding(finding)
    facts = facts_view.lines(explanation.to_dict()["facts"])
    if facts:
        yield ""
        yield "What it says"
        yield from (f"  {row}" for row in facts)
    if explanation.not_judged:
        yield ""
        yield "Not judged"
        for item in explanation.not_judged:
            yield f"  {item.check}: needs {item.needs}"


def _finding(finding: Finding) -> Iterator[str]:
    label = finding.verdict.value
    if not finding.required and finding.verdict in (Verdict.FAIL, Verdict.UNKNOWN):
        label = f"WARN (advisory {label})"
    kind = f"  [{finding.fault_class.value}]" if finding.fault_class else ""
    yield f"{label}  {line(finding.subject)}  {finding.check}{kind}"
    yield from (f"      {text}" for text in (line(finding.message), comparison(finding)) if text)
    if finding.remedy:
        yield f"      -> {line(finding.remedy)}"
