"""Where a report goes: stdout as a table or as JSON, and files in any format. The exit code comes from the verdict.

Every command has its options from here, and few write a report: what that takes is imported where it is done.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from profiles.errors import ConfigError
from validation.verdict import Verdict, exit_code

if TYPE_CHECKING:
    from validation.report.model import StackReport

F = TypeVar("F", bound=Callable[..., Any])
EXIT_UNKNOWN = exit_code(Verdict.UNKNOWN)
FILES = {"junit": "JUnit XML", "html": "a web page", "markdown": "Markdown", "prometheus": "Prometheus text"}


@dataclass(frozen=True)
class Outputs:
    """``json``: the JSON document on stdout instead of the table. ``files``: format name to path."""

    json: bool
    files: Mapping[str, Path]

    @classmethod
    def of(cls, options: dict[str, Any]) -> Outputs:
        """Take the options of :func:`report_options` out of a command's keyword arguments."""
        files = {name: options.pop(name) for name in FILES}
        return cls(options.pop("json"), {name: path for name, path in files.items() if path is not None})

    def deliver(self, report: StackReport) -> int:
        """Show the report, write every file asked for, and return the exit code that the report comes to.

        A file that cannot be written does not cost the verdict: it is told, and exits 2 where all else is well.
        """
        if self.json:
            from validation.report import document

            click.echo(document.render(report), nl=False)
        else:
            show(report)
        lost = [error for name, path in self.files.items() if (error := self._file(report, name, path))]
        for error in lost:
            click.echo(f"kiln: {error}", err=True)
        return code(report) or (lost[0].exit_code if lost else 0)

    def _file(self, report: StackReport, name: str, path: Path) -> ConfigError | None:
        from validation.report.formats import FORMATS

        try:
            write(path, FORMATS[name](report))
        except ConfigError as error:
            return error
        if not self.json:
            click.echo(f"report: {path}", err=True)
        return None


def code(report: StackReport) -> int:
    """0 only where the report is healthy; 1 for FAIL; 3 for everything else."""
    return 0 if report.healthy else exit_code(report.verdict) or EXIT_UNKNOWN


def show(report: StackReport) -> None:
    """The gate's table on stdout, in colour where stdout is a terminal that has it."""
    from rich.console import Console

    from validation.report import table

    console = Console(file=sys.stdout)
    width = console.width if console.is_terminal else 120
    click.echo(table.render(report, width=width, color=console.is_terminal and not console.no_color), nl=False)


def json_option(function: F) -> F:
    """``--json`` for a command that prints one document."""
    return click.option("--json", is_flag=True, help="Print one JSON document, and nothing else, on stdout.")(function)


def report_options(function: F) -> F:
    """``--json`` and a file option for each format."""
    for name, what in reversed(FILES.items()):
        help_text = f"Also write the report as {what}."
        kind = click.Path(dir_okay=False, writable=True, path_type=Path)
        function = click.option(f"--{name}", metavar="FILE", type=kind, callback=_in_a_folder, help=help_text)(function)
    return json_option(function)


def _in_a_folder(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse before the work, not after it."""
    if value is not None and not value.resolve().parent.is_dir():
        raise click.BadParameter(f"the folder of '{value}' does not exist", ctx, parameter)
    return value


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all: a collector that reads it meanwhile never sees half of it.

    What is no file (a pipe, ``/dev/stdout``) is written to, a link keeps pointing where it points.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
