"""A Pulumi project of its own over this checkout's program: state, settings and plugins in one folder, in the sandbox.

Nothing of the checkout is written to: no ``Pulumi.STACK.yaml``, no stack in the user's backend.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from kiln.engine import Engine
from sandbox.client import Sandbox
from stacks.cli import find, pulumi_environment
from stacks.settings import NAMESPACE

ROOT = Path(__file__).resolve().parent.parent
IMAGE = "sandbox-ubuntu"
PASSPHRASE = "sandbox"  # noqa: S105 - state in the sandbox holds no secret worth one


def create(home: Path, sandbox: Sandbox) -> Engine:
    """The engine of a new project in ``home``, its environment pointing at the running sandbox."""
    project, state = home / "project", home / "state"
    project.mkdir(parents=True)
    state.mkdir()
    data = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    data["main"] = str(ROOT / data["main"])
    data["runtime"]["options"]["virtualenv"] = str(ROOT / data["runtime"]["options"]["virtualenv"])
    for provider in data["plugins"]["providers"]:
        provider["path"] = str(ROOT / provider["path"])
    (project / "Pulumi.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    variables = {
        **os.environ,
        **sandbox.env(),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
    }
    variables.pop("KILN_GATE_MODE", None)
    return Engine(find(variables) / "pulumi", project, pulumi_environment(variables))


def make_stack(engine: Engine, stack: str, sandbox: Sandbox, settings: Mapping[str, str]) -> None:
    """A new stack with what a stack in the sandbox needs, and ``settings`` on top."""
    engine.call(stack, "stack", "init")
    for key, value in {**sandbox.settings(), "image": IMAGE, **settings}.items():
        engine.call(stack, "config", "set", f"{NAMESPACE}:{key}", value)
