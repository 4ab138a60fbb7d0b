"""``--profiles DIR``: the user's own profiles beside the catalogue, for the commands that judge."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from profiles.catalog import VARIABLE, default

F = TypeVar("F", bound=Callable[..., Any])


def profiles_option(function: F) -> F:
    """The option; its value is in effect before the command begins, and reaches the commands it starts."""
    return click.option(
        "--profiles",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help=f"A folder with profiles of your own, TYPE.yaml each; ${VARIABLE} names it for good.",
        callback=_use,
        expose_value=False,
        is_eager=True,
    )(function)


def _use(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        os.environ[VARIABLE] = str(value.resolve())
        default.cache_clear()
