"""``kiln doctor``: is everything here that Kiln needs?"""

from __future__ import annotations

import json as json_module
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from kiln.output import json_option
from kiln.project import project_folder
from profiles import catalog
from profiles.errors import KilnError
from stacks.cli import find

MIN_PYTHON = (3, 10)
EXIT_MISSING = 2


@dataclass(frozen=True)
class Answer:
    """One thing looked for. ``state`` is ``ok``, ``missing`` (something will not work) or ``note``."""

    name: str
    state: str
    text: str
    remedy: str = ""


@click.command(short_help="Is everything here that Kiln needs?")
@click.option(
    "-C", "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="Project."
)
@json_option
def command(cwd: Path, json: bool) -> int:
    """Look for everything Kiln needs and say how to get what is missing. Exits 0 if nothing is, else 2."""
    answers = [answer for look in LOOKS for answer in look(cwd)]
    if json:
        click.echo(json_module.dumps({"schema": "kiln/doctor/v1", "answers": [asdict(a) for a in answers]}, indent=2))
    else:
        for answer in answers:
            click.echo(f"{answer.state:8} {answer.name}: {answer.text}")
            if answer.remedy:
                click.echo(f"{'':8}   -> {answer.remedy}")
    return EXIT_MISSING if any(answer.state == "missing" for answer in answers) else 0


def _python(_: Path) -> Iterator[Answer]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= MIN_PYTHON
    yield Answer("python", "ok" if good else "missing", f"{version} at {sys.executable}", "" if good else "use 3.10+")


def _pulumi(_: Path) -> Iterator[Answer]:
    try:
        folder = find(os.environ)
    except KilnError as error:
        yield Answer("pulumi", "missing", error.message, error.remedy)
        return
    try:
        done = subprocess.run(
            [folder / "pulumi", "version"], capture_output=True, text=True, timeout=30, check=True, env=_quiet()
        )
    except (OSError, subprocess.SubprocessError) as error:
        yield Answer("pulumi", "missing", f"{folder / 'pulumi'} does not run: {error}", "run `make setup`")
        return
    yield Answer("pulumi", "ok", f"{done.stdout.strip()} at {folder / 'pulumi'}")


def _quiet() -> dict[str, str]:
    return {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}


def _project(cwd: Path) -> Iterator[Answer]:
    try:
        folder = project_folder(cwd)
    except KilnError as error:
        yield Answer("project", "note", error.message, "needed by up, status and plan only")
        return
    yield Answer("project", "ok", str(folder / "Pulumi.yaml"))
    plugin = folder / "plugins" / "kiln" / "pulumi-resource-kiln"
    if plugin.exists() and not os.access(plugin, os.X_OK):
        yield Answer("provider", "missing", f"{plugin} is not executable", f"chmod +x {plugin}")


def _backend(_: Path) -> Iterator[Answer]:
    url = os.environ.get("PULUMI_BACKEND_URL")
    yield Answer(
        "backend", "ok" if url else "note", url or "whatever `pulumi login` chose; PULUMI_BACKEND_URL is unset"
    )
    named = [name for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE") if name in os.environ]
    text = f"{named[0]} is set" if named else "no passphrase is set; a stack with secrets may need one"
    yield Answer("passphrase", "ok" if named else "note", text)


def _catalogue(_: Path) -> Iterator[Answer]:
    wrong = [text for name in catalog.types() if (text := _defect(name))]
    if wrong:
        yield Answer("profiles", "missing", "; ".join(wrong), "correct the file")
    else:
        yield Answer("profiles", "ok", f"{len(catalog.types())} instance types")


def _defect(instance_type: str) -> str:
    try:
        catalog.load(instance_type)
    except KilnError as error:
        return str(error)
    return ""


def _compiler(_: Path) -> Iterator[Answer]:
    compiler = shutil.which("cc")
    if compiler:
        yield Answer("compiler", "ok", compiler)
    else:
        yield Answer("compiler", "note", "no C compiler", "needed by the sandbox only; on Debian: apt-get install gcc")


LOOKS: tuple[Callable[[Path], Iterator[Answer]], ...] = (_python, _pulumi, _project, _backend, _catalogue, _compiler)
