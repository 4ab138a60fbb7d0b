"""``kiln units``: the GPUs that were rejected for their hardware."""

from __future__ import annotations

import json as json_module
import os
from collections.abc import Sequence
from pathlib import Path

import click

from kiln.output import json_option
from profiles.errors import ConfigError
from validation import units
from validation.report.text import line
from validation.unit_file import UnitFile, default_path
from validation.units import BadUnit

_FILE = click.option(
    "--bad-units",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The memory; else the user's own.",
)


@click.group(short_help="The GPUs that were rejected for their hardware, and forgetting one.")
def command() -> None:
    """GPUs that `kiln validate` and the gate rejected for their hardware: one that comes back is known again.

    \b
    The user's memory is ${XDG_STATE_HOME:-~/.local/state}/kiln/bad-units.json; a stack with its state
    in a folder keeps its own there, in .kiln/bad-units.json. docs/units-and-baselines.md says more.
    """


@command.command("list")
@_FILE
@json_option
def list_units(file: Path | None, json: bool) -> int:
    """List the bad units, and the suspects: units whose fault must repeat after a reboot to count."""
    known = _memory(file).read()
    if json:
        click.echo(units.dump(known), nl=False)
    else:
        click.echo("\n".join(_lines(known)) or "no unit is known to be bad")
    return 0


@command.command()
@click.argument("uuid")
@_FILE
@json_option
def forget(uuid: str, file: Path | None, json: bool) -> int:
    """Forget the unit with this UUID, because it was repaired or was rejected by mistake."""
    memory = _memory(file)
    known = memory.read()
    gone = [unit for unit in known if unit not in units.forget(known, uuid)]
    if not gone:
        raise ConfigError(f"{uuid} is not in {memory.path}", remedy="`kiln units list` lists what is")
    memory.change(lambda now: units.forget(now, uuid))
    if json:
        data = {"schema": "kiln/units-forgotten/v1", "forgotten": [unit.to_dict() for unit in gone]}
        click.echo(json_module.dumps(data, indent=2))
    else:
        click.echo(f"forgotten: {gone[0].uuid} ({', '.join(unit.check for unit in gone)})")
    return 0


def _memory(file: Path | None) -> UnitFile:
    return UnitFile(file or default_path(os.environ))


def _lines(known: Sequence[BadUnit]) -> list[str]:
    return [
        f"{'bad' if unit.bad else 'suspect':7} {unit.uuid}  serial {line(unit.serial) or '-'}  {unit.date}  "
        f"{line(unit.host)}{' as a whole' if unit.whole_host else ''}  {unit.check}: {line(unit.message)}"
        for unit in known
    ]
