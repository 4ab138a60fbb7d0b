"""``pulumi preview`` of 64 hosts against that of an empty program: the real engine, the emulated cloud's provider."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from bench.clock import Taken, taken
from kiln import sandbox_project
from kiln.engine import Engine
from sandbox.client import Sandbox

NODES = 64
IDLE_HOURS = 0.2
SETTINGS = {"instanceType": "p5.48xlarge", "efaCount": "32", "owner": "bench"}


@dataclass(frozen=True)
class Projects:
    """An empty program, and this project's with a stack of one host and one of :data:`NODES`."""

    empty: Engine
    own: Engine

    def previews(self) -> dict[str, Taken]:
        """What each preview takes. Raises KilnError as the engine's error says."""
        return {
            "empty": _preview(self.empty, "empty"),
            "one": _preview(self.own, "one"),
            "many": _preview(self.own, "many"),
        }


@contextlib.contextmanager
def projects(folder: Path) -> Iterator[Projects]:
    """Both, below ``folder``; the sandbox is stopped at the end."""
    folder.mkdir()
    sandbox = Sandbox(folder / "sandbox")
    sandbox.start(idle_hours=IDLE_HOURS)
    try:
        own = sandbox_project.create(folder, sandbox)
        for stack, count in (("one", 1), ("many", NODES)):
            sandbox_project.make_stack(own, stack, sandbox, {**SETTINGS, "count": str(count)})
        yield Projects(_empty(folder, own), own)
    finally:
        sandbox.stop()


def _empty(folder: Path, own: Engine) -> Engine:
    project, program = folder / "empty", folder / "program"
    project.mkdir()
    program.mkdir()
    (program / "__main__.py").write_text("")
    data = yaml.safe_load((own.directory / "Pulumi.yaml").read_text(encoding="utf-8"))
    shared = {"runtime": data["runtime"], "name": "empty", "main": str(program)}
    (project / "Pulumi.yaml").write_text(yaml.safe_dump(shared))
    engine = replace(own, directory=project)
    engine.call("empty", "stack", "init")
    return engine


def _preview(engine: Engine, stack: str) -> Taken:
    with taken() as took:
        engine.call(stack, "preview", "--color=never")
    return took
