"""A Pulumi project as the commands use it: its engine, and whether its settings can be right at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kiln.engine import Engine
from profiles import yamlfile
from profiles.errors import ConfigError
from stacks import plan as plans
from stacks.cli import find, pulumi_environment
from stacks.plan import Plan
from stacks.settings import NAMESPACE

PROJECT = "kiln"  # the name in this checkout's Pulumi.yaml


def open_engine(directory: Path, variables: Mapping[str, str] | None = None) -> Engine:
    """The engine for the project in ``directory``, with ``variables`` added to its environment.

    Raises ConfigError where there is no project there or above, or no Pulumi command line.
    """
    base = {**os.environ, **(variables or {})}
    folder = project_folder(directory)
    return Engine(cli=find(base) / "pulumi", directory=folder, environment=pulumi_environment(base))


def project_folder(directory: Path) -> Path:
    """The folder of Pulumi.yaml, in ``directory`` or above it, as the engine looks for it."""
    start = directory.resolve()
    for folder in (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise ConfigError(
        f"no Pulumi.yaml in {start} or above it", remedy="run it in the project's folder, or name that with --cwd"
    )


def project_name(engine: Engine) -> str:
    """The project's name in its Pulumi.yaml."""
    return str(yamlfile.read(engine.directory / "Pulumi.yaml").data.get("name", ""))


def is_own(engine: Engine) -> bool:
    """Whether the project is Kiln's own program, whose settings are known here; anyone's program may use the gate."""
    return project_name(engine) == PROJECT


def read_plan(engine: Engine, stack: str) -> Plan:
    """The plan of a stack of Kiln's own program. Raises ConfigError with everything that is wrong with its settings."""
    prefix = f"{NAMESPACE}:"
    config = engine.config(stack)
    return plans.make({key.removeprefix(prefix): text for key, text in config.items() if key.startswith(prefix)})
