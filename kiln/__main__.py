"""The ``kiln`` command. Each command is a module of :mod:`kiln.commands`, loaded when it is used.

Exit codes: 0 healthy or done, 1 gate closed by FAIL, 3 gate closed by UNKNOWN only (or something could not be looked
at), 2 bad usage or configuration, 130 interrupted, 70 a defect in Kiln itself.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import click

from profiles.errors import KilnError

EXIT_USAGE = 2
EXIT_DEFECT = 70  # EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it

COMMANDS = {
    "up": "Bring a stack up and take the exit code from its hosts.",
    "status": "What is known of a stack's health, and whether it still holds.",
    "plan": "What a stack would create, and what is wrong with its settings.",
    "validate": "Judge hosts that already exist, without a cloud.",
    "check": "Judge a captured evidence bundle.",
    "baseline": "Draft a profile from a host believed good.",
    "units": "The GPUs that were rejected for their hardware, and forgetting one.",
    "explain": "Say what the output of a GPU tool means.",
    "report": "Write a JSON report in another format.",
    "sandbox": "An embedded cloud with simulated GPU hosts.",
    "doctor": "Is everything here that Kiln needs?",
}


class Commands(click.Group):
    """The commands by name; a module is imported only when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = _load(f"kiln.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load(name: str) -> ModuleType:
    """The module. What comes to be while modules are loaded stays, so that looking for garbage meanwhile is in vain."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()
        gc.freeze()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=__doc__.split("\n\n")[1])
@click.option("--debug", is_flag=True, envvar="KILN_DEBUG", help="Show tracebacks.")
@click.version_option(package_name="kiln")
def cli(debug: bool) -> None:
    """Provision GPU hosts, and do not call them healthy until they have proved it."""
    del debug  # read by main(), which also needs it where parsing fails


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error becomes a message on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result: Any = cli.main(args=words, prog_name="kiln", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit:
        # Click's end where the reader of our output left, as `| head` does; its code, 1, would read as FAIL.
        return EXIT_INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - each kind becomes a message and an exit code
        return _failed(error, debug="--debug" in words or bool(os.environ.get("KILN_DEBUG")))
    return result if isinstance(result, int) else 0


def _failed(error: BaseException, *, debug: bool) -> int:
    if debug and not isinstance(error, click.exceptions.Exit):
        traceback.print_exception(error)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo("kiln: interrupted", err=True)
        return EXIT_INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return EXIT_USAGE
    if isinstance(error, KilnError):
        click.echo(f"kiln: {error}", err=True)
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        # The reader of our output left, as `| head` does. Nothing more can be said there, and nothing should be.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERRUPTED
    return _defect(error)


def _defect(error: BaseException) -> int:
    text = " ".join(str(error).split()) or "no message"
    click.echo(f"kiln: defect: {type(error).__name__}: {text}", err=True)
    click.echo("  -> run it again as `kiln --debug ...` and report the traceback", err=True)
    return EXIT_DEFECT


if __name__ == "__main__":
    sys.exit(main())
