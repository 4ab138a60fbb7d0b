"""``kiln up``: bring a stack up with the real engine, and take the exit code from its hosts."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kiln.engine import Engine, Run
from kiln.events import EngineProgress
from kiln.output import Outputs, report_options
from kiln.progress import progress
from kiln.project import is_own, open_engine, read_plan
from profiles.errors import KilnError, LookError
from stacks.gate import MODE_VARIABLE, RECORD
from stacks.status import recorded, together
from validation.report.model import StackReport
from validation.report.text import plain
from validation.verdict import Verdict

EXIT_INTERRUPTED = 130


@click.command(short_help="Bring a stack up and take the exit code from its hosts.")
@click.argument("stack")
@click.option(
    "-C", "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="Project."
)
@report_options
def command(stack: str, cwd: Path, **options: Any) -> int:
    """Run `pulumi up` on STACK to its end, show the gate, and exit with its verdict: 0 healthy, 1 FAIL, 3 UNKNOWN.

    Unlike plain `pulumi up`, the engine finishes while the gate is closed: hosts that were replaced or removed are
    deleted and cost nothing more.
    """
    outputs = Outputs.of(options)
    engine = open_engine(cwd, {MODE_VARIABLE: RECORD})
    engine.outputs(stack)  # an unknown stack, a wrong passphrase, no backend: told before anything is started
    if is_own(engine):
        read_plan(engine, stack)  # wrong settings likewise, all at once
    started = dt.datetime.now(dt.timezone.utc)
    with progress() as shown:
        run = engine.operate("up", stack, EngineProgress(shown))
    if run.interrupted:
        click.echo(f"kiln: interrupted; `kiln status {stack}` says where the stack stands", err=True)
        return EXIT_INTERRUPTED
    export = json.loads(engine.call(stack, "stack", "export"))
    result = read_result(engine.outputs(stack), recorded(export), run, started)
    if result.report is None:
        raise _failure(engine, stack, run)
    code = outputs.deliver(replace(result.report, title=result.report.title or stack))
    for text in result.reasons:
        click.echo(f"kiln: {plain(text)}", err=True)
    return code


@dataclass(frozen=True)
class Result:
    """What a run came to. ``report`` is None where this run judged nothing; it is closed if ``reasons`` say so."""

    report: StackReport | None
    reasons: tuple[str, ...] = ()


def read_result(
    outputs: Mapping[str, Any], recorded: Sequence[StackReport | None], run: Run, started: dt.datetime
) -> Result:
    """What a run came to: never better than the engine's exit, the output ``healthy`` and every gate's report.

    ``recorded`` is what the gates recorded, not the stack's output: a run that fails ends before the outputs are known.
    Such a run has not deleted gates that the program no longer has, so only what it judged itself counts.
    """
    if run.code:
        recorded = [report for report in recorded if report is not None and _is_fresh(report, started)]
    report = together(recorded)
    if report is None:
        return Result(None)
    reasons = [f"the engine failed: {message}" for message in run.messages()] if run.code else []
    if report.healthy and "healthy" not in outputs:
        reasons.append("the program does not conclude its gate; examples/own-program shows one that does")
    elif report.healthy and outputs.get("healthy") is not True:
        reasons.append(f"gate: {outputs.get('gate') or 'the stack output healthy is not true'}")
    if reasons and report.healthy:
        report = replace(report, verdict=Verdict.UNKNOWN)
    return Result(report, tuple(reasons))


def _is_fresh(report: StackReport, started: dt.datetime) -> bool:
    try:
        judged = dt.datetime.fromisoformat(report.started.replace("Z", "+00:00"))
    except ValueError:
        return False
    return judged.tzinfo is not None and judged >= started.replace(microsecond=0)


def _failure(engine: Engine, stack: str, run: Run) -> KilnError:
    if run.code == 0:
        text = "the stack has no HealthGate, or what it recorded cannot be read"
        return LookError(text, remedy="examples/own-program shows a program with a gate")
    return engine.failure(stack, run)
