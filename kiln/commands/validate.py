"""``kiln validate``: judge hosts that exist."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kiln import inventory
from kiln.output import Outputs, report_options
from kiln.progress import progress
from kiln.user_profiles import profiles_option
from profiles import catalog
from profiles.errors import ConfigError, Problem
from profiles.models import BURN_IN_LEVELS
from validation import unit_memory
from validation.runner import Options, Target, validate
from validation.unit_file import of_setting

EXIT_INTERRUPTED = 130


@click.command(short_help="Judge hosts that already exist, without a cloud.")
@click.option("--hosts", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The inventory (YAML).")
@click.option("--profile", metavar="TYPE", help="Judge every host as this instance type, whatever the inventory says.")
@click.option(
    "--burn-in",
    type=click.Choice(BURN_IN_LEVELS),
    default="none",
    show_default=True,
    help="Load the GPUs too. They must be idle.",
)
@click.option("--deadline", "deadline_s", type=click.FloatRange(min=1), default=900.0, show_default=True, metavar="S")
@click.option("--concurrency", type=click.IntRange(1, 1024), default=32, show_default=True, help="Hosts at once.")
@click.option(
    "--keep-evidence", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), help="For kiln check."
)
@click.option("--accept-new", is_flag=True, help="Take whatever key answers, where the inventory has no hostKey.")
@click.option("--bad-units", default="", metavar="FILE|none", help="Where GPUs rejected for their hardware are kept.")
@profiles_option
@report_options
def command(hosts: Path, profile: str | None, accept_new: bool, bad_units: str, **options: Any) -> int:
    """Judge the hosts of an inventory over SSH and exit with the verdict: 0 healthy, 1 FAIL, 3 UNKNOWN.

    The inventory has `hosts:`, a list with name, address, instanceType, user, privateKeyFile and hostKey each, and
    `defaults:` for what they share; docs/inventory.md lists every key.
    """
    outputs = Outputs.of(options)
    targets = inventory.load(hosts, accept_new=accept_new)
    if profile is not None:
        targets = tuple(_as_type(target, profile) for target in targets)
    memory = of_setting(bad_units, {key: value for key, value in os.environ.items() if key == "XDG_STATE_HOME"})
    targets = unit_memory.informed(targets, memory)
    choice = Options(
        burn_in=options["burn_in"],
        deadline_s=options["deadline_s"],
        concurrency=options["concurrency"],
        keep_evidence=options["keep_evidence"],
    )
    cancel = threading.Event()
    with _cancelling(cancel), progress() as shown:
        report = validate(targets, choice, progress=shown, cancel=cancel)
    report = unit_memory.remembered(report, memory)
    code = outputs.deliver(replace(report, title=report.title or hosts.stem))
    return EXIT_INTERRUPTED if cancel.is_set() else code


def _as_type(target: Target, instance_type: str) -> Target:
    profile = catalog.load(instance_type)
    if profile is None:
        problem = Problem("--profile", instance_type, f"one of {', '.join(catalog.types())}")
        raise ConfigError("unknown profile", [problem])
    changes = {"instance_type": instance_type, "profile": profile}
    return replace(target, expectation=target.expectation.model_copy(update=changes))


@contextlib.contextmanager
def _cancelling(cancel: threading.Event) -> Iterator[None]:
    """The first Ctrl-C ends the work in order: hosts not yet judged become UNKNOWN. The second ends it at once."""

    def handler(_signal: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
