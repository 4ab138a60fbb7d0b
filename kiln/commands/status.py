"""``kiln status``: what is known of a stack's health, and whether it still holds."""

from __future__ import annotations

import datetime as dt
import json as json_module
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import click

from kiln.engine import Engine
from kiln.look import look
from kiln.output import EXIT_UNKNOWN, json_option, show
from kiln.project import open_engine, project_name
from profiles.errors import CloudError, KilnError
from stacks.status import Status, assess, is_locked
from validation import staleness
from validation.report.text import line
from validation.verdict import Verdict, exit_code

HISTORY = "20"  # runs looked at: as many refreshes in a row, and the status says UNKNOWN


@click.command(short_help="What is known of a stack's health, and whether it still holds.")
@click.argument("stack")
@click.option(
    "-C", "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="Project."
)
@click.option("--no-look", is_flag=True, help="Look at no host: only at what the engine keeps.")
@click.option(
    "--lifetime",
    "lifetime_h",
    type=click.FloatRange(min=0, min_open=True),
    default=staleness.LIFETIME_S / 3600,
    show_default=True,
    metavar="HOURS",
    help="How long a verdict holds.",
)
@json_option
def command(stack: str, cwd: Path, no_look: bool, lifetime_h: float, json: bool) -> int:
    """Read what the engine keeps of STACK: its gate, the lock, interrupted operations, the runs since it was judged.

    If nothing speaks against the verdict, a look at every host (without a burn-in) says whether it still holds: after
    a reboot, a change of driver or GPUs, or its lifetime, it is void. Never says healthy from an output alone. Exits 0
    healthy, 1 FAIL, 3 UNKNOWN.
    """
    engine = open_engine(cwd)
    export = _parsed(engine.call(stack, "stack", "export"))
    history = _parsed(engine.call(stack, "stack", "history", "--json", "--page-size", HISTORY))
    locked = is_locked(engine.environment, project_name(engine), stack)
    status = assess(
        export if isinstance(export, dict) else {}, history if isinstance(history, list) else [], locked=locked
    )
    status = _aged(status, lifetime_h * 3600)
    looks = status.healthy and not no_look
    if looks:
        status = _looked_at(engine, stack, status)
    if json:
        click.echo(document(stack, status, looked_at=looks))
    else:
        click.echo("\n".join(_lines(stack, status, dt.datetime.now(dt.timezone.utc))))
        if status.report is not None:
            show(status.report if status.healthy else replace(status.report, verdict=_closed(status)))
    return 0 if status.healthy else exit_code(status.verdict) or EXIT_UNKNOWN


def _aged(status: Status, lifetime_s: float) -> Status:
    """The status, void where its verdict is older than it holds."""
    if not status.healthy:
        return status
    reason = staleness.expired(status.judged_at, dt.datetime.now(dt.timezone.utc), lifetime_s)
    return replace(status, verdict=Verdict.UNKNOWN, reasons=(reason,)) if reason else status


def _looked_at(engine: Engine, stack: str, status: Status) -> Status:
    """The status after a look at the hosts; what prevents the look is a reason, for then nothing is known of them."""
    try:
        export = _parsed(engine.call(stack, "stack", "export", "--show-secrets"))
        found = look(export if isinstance(export, dict) else {})
    except KilnError as error:
        text = f"the hosts could not be looked at: {' '.join(str(error).split())}"
        return replace(status, verdict=Verdict.UNKNOWN, reasons=(text,))
    return replace(status, verdict=found.verdict, reasons=found.reasons)


def document(stack: str, status: Status, *, looked_at: bool) -> str:
    """The status as JSON, schema ``kiln/status/v1``. ``looked_at``: whether the hosts were, for this answer."""
    data = {
        "schema": "kiln/status/v1",
        "stack": stack,
        "healthy": status.healthy,
        "verdict": status.verdict.value,
        "reasons": list(status.reasons),
        "judged_at": status.judged_at,
        "looked_at": looked_at,
        "leftovers": [asdict(leftover) for leftover in status.leftovers],
        "report": status.report.to_dict() if status.report else None,
    }
    return json_module.dumps(data, indent=2)


def _lines(stack: str, status: Status, now: dt.datetime) -> Iterator[str]:
    judged = f", judged {status.judged_at}{_age(status.judged_at, now)}" if status.judged_at else ""
    yield f"{stack}: {'healthy' if status.healthy else 'not healthy'} ({status.verdict.value}){judged}"
    yield from (f"  - {line(reason)}" for reason in status.reasons)
    for left in status.leftovers:
        yield f"  - still running and costing: {line(left.instance_id)} ({line(left.instance_type)}); run kiln up"


def _age(judged_at: str, now: dt.datetime) -> str:
    """How long ago, as far as the time can be read."""
    try:
        minutes = int((now - dt.datetime.fromisoformat(judged_at.replace("Z", "+00:00"))).total_seconds() // 60)
    except (ValueError, TypeError):
        return ""
    if minutes < 120:
        return f", {minutes} min ago"
    return f", {minutes // 60} h ago" if minutes < 48 * 60 else f", {minutes // 1440} days ago"


def _closed(status: Status) -> Verdict:
    return Verdict.UNKNOWN if status.verdict.opens_gate else status.verdict


def _parsed(text: str) -> object:
    try:
        return json_module.loads(text)
    except ValueError as error:
        raise CloudError(f"the engine's answer is not JSON: {text[:200]!r}") from error
