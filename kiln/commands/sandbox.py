"""``kiln sandbox``: the embedded cloud with simulated GPU hosts."""

from __future__ import annotations

import json as json_module
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kiln.output import json_option
from kiln.sandbox_project import IMAGE
from sandbox.client import Sandbox
from sandbox.hosts.faults import FAULTS
from stacks.settings import NAMESPACE
from validation.report.text import line

F = TypeVar("F", bound=Callable[..., Any])
SIMULATOR = "This is a simulator: nothing here says anything about real hardware."


def _home(function: F) -> F:
    return click.option(
        "--home",
        envvar="KILN_SANDBOX_HOME",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where the sandbox keeps its state (default: KILN_SANDBOX_HOME, else the cache folder).",
    )(function)


@click.group(short_help="An embedded cloud with simulated GPU hosts.")
def command() -> None:
    """An embedded cloud with simulated GPU hosts, to try Kiln without either. It is a simulator.

    \b
    kiln sandbox start
    eval "$(kiln sandbox env)"        # pulumi now talks to it
    kiln sandbox config STACK         # the settings that a stack in the sandbox needs
    kiln up STACK
    kiln sandbox fault node-0 nvlink-down && kiln up STACK
    kiln sandbox stop
    """


@command.command()
@_home
@click.option(
    "--idle-hours",
    type=click.FloatRange(min=0, min_open=True),
    help="End by itself after so long unused (4 otherwise).",
)
def start(home: Path | None, idle_hours: float | None) -> int:
    """Start it; one that runs already is left as it is."""
    endpoint = Sandbox(home).start(idle_hours=idle_hours)
    click.echo(f"sandbox runs (pid {endpoint.pid}), cloud at {endpoint.moto}, hosts' SSH on port {endpoint.ssh_port}")
    click.echo(SIMULATOR, err=True)
    return 0


@command.command()
@_home
def stop(home: Path | None) -> int:
    """Stop it, with all its hosts."""
    click.echo("sandbox stopped" if Sandbox(home).stop() else "no sandbox was running")
    return 0


@command.command()
@_home
@json_option
def status(home: Path | None, json: bool) -> int:
    """Does it run, and where? Exits 0 either way."""
    found = Sandbox(home).status()
    if json:
        _print_json("status", found)
    else:
        for key, value in found.items():
            click.echo(f"{key}: {line(str(value))}")
    return 0


@command.command()
@_home
@json_option
def hosts(home: Path | None, json: bool) -> int:
    """List the simulated hosts and the faults they have."""
    found = Sandbox(home).hosts()
    if json:
        _print_json("hosts", found)
    elif not found:
        click.echo("no hosts; `kiln up STACK` makes some")
    else:
        columns = ("name", "id", "instance_type", "address", "faults")
        rows = [[_cell(host.get(column)) for column in columns] for host in found]
        click.echo("\n".join(_aligned([columns, *rows])))
    return 0


@command.command()
@_home
@click.argument("host", required=False)
@click.argument("fault", required=False)
@click.option("--pending", is_flag=True, help="For a host that does not exist yet: it gets the fault at its creation.")
@click.option("--list", "listed", is_flag=True, help="List the faults.")
def fault(home: Path | None, host: str | None, fault: str | None, pending: bool, listed: bool) -> int:
    """Put FAULT into HOST (a name or an instance id)."""
    if listed:
        click.echo("\n".join(_aligned([[found.name, found.summary] for found in FAULTS.values()])))
        return 0
    if host is None or fault is None:
        raise click.UsageError("name a host and a fault; --list lists the faults", click.get_current_context())
    waits = Sandbox(home).fault(host, fault, pending=pending)
    click.echo(f"{host} will get {fault} at its creation" if waits else f"{host} has {fault}")
    return 0


@command.command("cloud-fault")
@_home
@click.argument("name")
@click.option("--host", default="*", show_default=True, help="The host it is about.")
@click.option("--value", type=float, default=0.0, help="Seconds, for slow-create.")
def cloud_fault(home: Path | None, name: str, host: str, value: float) -> int:
    """Arm a fault of the cloud itself: no-capacity, slow-create or vanish."""
    Sandbox(home).cloud_fault(name, host, value)
    click.echo(f"the cloud has {name}")
    return 0


@command.command()
@_home
@click.argument("host", required=False)
@click.option("--cloud", is_flag=True, help="Disarm the faults of the cloud.")
def clear(home: Path | None, host: str | None, cloud: bool) -> int:
    """Take every fault out of HOST, or out of the cloud."""
    if host is None and not cloud:
        raise click.UsageError("name a host, or --cloud", click.get_current_context())
    found = Sandbox(home)
    if host is not None:
        found.clear(host)
        click.echo(f"{host} has no faults")
    if cloud:
        found.clear_cloud_faults()
        click.echo("the cloud has no faults")
    return 0


@command.command()
@_home
@click.argument("host")
def reboot(home: Path | None, host: str) -> int:
    """Boot HOST again: the same instance, a new boot id."""
    Sandbox(home).reboot(host)
    click.echo(f"{host} was rebooted")
    return 0


@command.command()
@_home
@json_option
def env(home: Path | None, json: bool) -> int:
    """Print what makes Pulumi use it, for `eval "$(kiln sandbox env)"`."""
    found = Sandbox(home).env()
    if json:
        _print_json("env", found)
    else:
        click.echo("\n".join(exports(found)))
    return 0


@command.command()
@_home
@click.argument("stack")
def config(home: Path | None, stack: str) -> int:
    """Print the `pulumi config set` commands that a stack in the sandbox needs, for `eval "$(...)"`."""
    settings = {**Sandbox(home).settings(), "image": IMAGE}
    for key, value in settings.items():
        words = ["pulumi", "config", "set", "--stack", stack, f"{NAMESPACE}:{key}", value]
        click.echo(shlex.join(words))
    return 0


def exports(variables: Mapping[str, str]) -> list[str]:
    """Variables as lines for a POSIX shell."""
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]


def _print_json(kind: str, found: object) -> None:
    click.echo(json_module.dumps({"schema": f"kiln/sandbox-{kind}/v1", kind: found}, indent=2))


def _cell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(line(str(item)) for item in value) or "none"
    return line(str(value))


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    table = [list(row) for row in rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
