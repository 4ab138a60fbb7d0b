"""``kiln plan``: what a stack would create, and what is wrong with its settings, without a cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from kiln.output import json_option
from kiln.project import is_own, open_engine, read_plan
from profiles import catalog
from profiles.errors import ConfigError
from stacks.plan import Plan


@click.command(short_help="What a stack would create, and what is wrong with its settings.")
@click.argument("stack")
@click.option(
    "-C", "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="Project."
)
@json_option
def command(stack: str, cwd: Path, json: bool) -> int:
    """Read the settings of STACK, judge them by every rule, and print the plan. Exits 2 with all problems at once.

    Asks no cloud and runs no program; `pulumi preview` shows the same as resources.
    """
    engine = open_engine(cwd)
    if not is_own(engine):
        raise ConfigError(
            f"the project in {engine.directory} is not Kiln's own program, so its settings are not known here",
            remedy="`pulumi preview` shows what it would create",
        )
    plan = read_plan(engine, stack)
    if json:
        click.echo(document(plan))
    else:
        click.echo("\n".join(_lines(plan)))
    return 0


def document(plan: Plan) -> str:
    """The plan as JSON, schema ``kiln/plan/v1``."""
    settings = plan.settings.model_dump(mode="json", by_alias=True, exclude={"ssh_private_key"})
    data = {
        "schema": "kiln/plan/v1",
        "settings": settings,
        "hosts": [asdict(host) for host in plan.hosts],
        "inventory": settings.pop("inventory"),
        "interfaces": [asdict(interface) for interface in plan.interfaces],
        "image": plan.image.name if plan.image else None,
        "cluster": plan.cluster,
        "advisory": {name: _advisory(name, plan) for name in _types(plan)},
        "warnings": [str(warning) for warning in plan.warnings],
    }
    return json.dumps(data, indent=2)


def _lines(plan: Plan) -> Iterator[str]:
    asked = plan.settings
    if asked.provider == "static":
        yield f"{len(plan.inventory)} hosts that exist already:"
        yield from (f"  {host.name}  {host.instance_type}  {host.address}" for host in plan.inventory)
    else:
        yield f"{len(plan.hosts)} x {asked.instance_type} in {asked.zone}, image {asked.image}"
        yield from (f"  {host.name}" for host in plan.hosts)
        volume = asked.root_volume
        yield f"root volume: {volume.size_gib} GiB gp3, {volume.iops} IOPS, {volume.throughput_mibps} MiB/s"
        efas = sum(interface.kind == "efa-only" for interface in plan.interfaces)
        yield f"network: {len(plan.interfaces)} interfaces a host, {efas} of them EFA"
        yield f"cluster placement group: {'yes' if plan.cluster else 'no'}; SSH from {plan.ssh_from}"
    yield f"burn-in {asked.burn_in}, deadline {asked.deadline_seconds} s, software profile {asked.software_profile}"
    yield from (_judged(name, plan) for name in _types(plan))
    yield from (f"warning: {warning}" for warning in plan.warnings)


def _types(plan: Plan) -> tuple[str, ...]:
    hosts = [host.instance_type for host in plan.inventory]
    return tuple(dict.fromkeys(hosts if plan.settings.provider == "static" else [plan.settings.instance_type]))


def _advisory(name: str, plan: Plan) -> dict[str, str]:
    """The checks that only warn on a type, and why; those of the burn-in only where there is one."""
    profile = catalog.load(name)
    told = profile.advisory if profile else {}
    asked = plan.settings.burn_in != "none"
    return {check: why for check, why in told.items() if asked or not check.startswith("burnin.")}


def _judged(name: str, plan: Plan) -> str:
    """What the hosts of a type must be, and which of its checks could not close the gate."""
    profile, advisory = catalog.load(name), sorted(_advisory(name, plan))
    assert profile is not None  # the rules refuse an unknown type
    gpus = f"{name}: {profile.gpu.count.value} x {profile.gpu.names.value[0]}"
    if not advisory:
        return f"{gpus}; every check counts"
    return f"{gpus}; these only warn, docs/instance-types.md says why: {', '.join(advisory)}"
