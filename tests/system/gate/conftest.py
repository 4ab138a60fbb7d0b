"""A Pulumi stack as a test sees it: the real CLI, a state folder of its own, and the gate's provider over a script."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from stacks import status
from stacks.cli import pulumi_environment

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Done:
    """How a command ended; ``text`` is what a user saw, both streams."""

    code: int
    text: str


class World:
    """What the scripted provider finds on each host, and which hosts it looked at."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "world.json"
        self._log = folder / "looked-at.txt"
        self.set()

    def set(self, **hosts: Mapping[str, Any]) -> None:
        """Host names with ``_`` for ``-``: ``node_0={"verdict": "FAIL"}``. Hosts that are not named pass."""
        self.file.write_text(json.dumps({name.replace("_", "-"): script for name, script in hosts.items()}))

    def looked_at(self) -> list[str]:
        """The hosts looked at since the last call, in order, each with ``ran`` or ``reused`` for its burn-in."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return lines


class Stack:
    """One stack of one project folder."""

    def __init__(self, folder: Path, name: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.name = name
        self.environment = dict(environment)
        self.project = yaml.safe_load((folder / "Pulumi.yaml").read_text())["name"]
        created = self.run("stack", "init", name)
        assert created.code == 0, created.text

    def run(self, *arguments: str, **variables: str) -> Done:
        process = self.start(*arguments, **variables)
        return self.finish(process)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """A session of its own, so that a signal to the CLI reaches nothing else."""
        return subprocess.Popen(
            ["pulumi", "--non-interactive", "--color=never", *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Done:
        try:
            text, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Done(process.returncode, text)

    def configure(self, values: Mapping[str, str]) -> None:
        pairs = [part for key, value in values.items() for part in ("--plaintext", f"{self.project}:{key}={value}")]
        done = self.run("config", "set-all", "--stack", self.name, *pairs)
        assert done.code == 0, done.text

    def configure_object(self, key: str, value: object) -> None:
        """As a user would write it into the stack's file."""
        file = self.folder / f"Pulumi.{self.name}.yaml"
        data = (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}
        data.setdefault("config", {})[f"{self.project}:{key}"] = value
        file.write_text(yaml.safe_dump(data))

    def configure_secret(self, key: str, value: str) -> None:
        subprocess.run(
            ["pulumi", "config", "set", "--secret", "--stack", self.name, f"{self.project}:{key}"],
            cwd=self.folder,
            env=self.environment,
            input=value,
            text=True,
            check=True,
        )

    def up(self, *arguments: str, **variables: str) -> Done:
        return self.run("up", "--yes", "--skip-preview", "--stack", self.name, *arguments, **variables)

    def start_up(self) -> subprocess.Popen[str]:
        return self.start("up", "--yes", "--skip-preview", "--stack", self.name)

    def unchanged_preview(self) -> Done:
        """A preview that fails if it shows any change."""
        return self.run("preview", "--expect-no-changes", "--stack", self.name)

    def outputs(self) -> dict[str, Any]:
        done = subprocess.run(
            ["pulumi", "stack", "output", "--json", "--stack", self.name],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def healthy(self) -> object:
        """What ``pulumi stack output healthy`` says; None where there is no such output."""
        return self.outputs().get("healthy")

    def export(self, *, secrets: bool = False) -> dict[str, Any]:
        done = self.run("stack", "export", "--stack", self.name, *(["--show-secrets"] if secrets else []))
        found: dict[str, Any] = json.loads(done.text)
        return found

    def status(self) -> status.Status:
        history = json.loads(self.run("stack", "history", "--json", "--stack", self.name).text or "[]")
        locked = status.is_locked(self.environment, self.project, self.name)
        return status.assess(self.export(), history, locked=locked)

    def urn(self, name: str) -> str:
        urns = [resource["urn"] for resource in self.export()["deployment"]["resources"]]
        return str(next(urn for urn in urns if urn.endswith(f"::{name}")))

    def instances(self) -> dict[str, list[str]]:
        """Instance ids in the state by host name; two where one waits to be deleted."""
        found: dict[str, list[str]] = {}
        for resource in self.export()["deployment"]["resources"]:
            if resource["type"] == "aws:ec2/instance:Instance":
                found.setdefault(resource["urn"].split("::")[-1], []).append(resource["id"])
        return found


def wait_until(true: Callable[[], object], what: str) -> None:
    """Return once ``true`` is; fail the test with ``what`` where that takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s for {what}"
        time.sleep(0.05)


def providers_of(folder: Path) -> list[int]:
    """The running providers of one project folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"{folder}/plugin/pulumi-resource-kiln".encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


def end_all(world: World) -> None:
    """End whatever a killed CLI left behind of this module's runs: Pulumi's language host outlives its parent."""
    mark = f"KILN_TEST_WORLD={world.file}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in entry.read_bytes().split(b"\0") and int(entry.parent.name) != os.getpid():
                os.kill(int(entry.parent.name), signal.SIGKILL)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("world"))
    yield world
    end_all(world)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, repository: Path, world: World) -> dict[str, str]:
    """What every stack of a module runs in: the CLI, a state folder, the script of the world."""
    state = tmp_path_factory.mktemp("state")
    return {
        **pulumi_environment(),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "correct horse",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "KILN_TEST_ROOT": str(repository),
        "KILN_TEST_WORLD": str(world.file),
        "PYTHONPATH": str(repository),
    }


@pytest.fixture(scope="module")
def own_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """This project's program and configuration with the scripted provider."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "stacks").symlink_to(repository / "stacks")
    (folder / "plugin").symlink_to(HERE / "plugin")
    text = (repository / "Pulumi.yaml").read_text()
    assert "path: plugins/kiln" in text
    (folder / "Pulumi.yaml").write_text(text.replace("path: plugins/kiln", "path: plugin"))
    return folder


@pytest.fixture(scope="module")
def real_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """This project as it is, with the real validation, in a folder that keeps its stacks out of the work tree."""
    folder = tmp_path_factory.mktemp("real")
    for name in ("stacks", "plugins"):
        (folder / name).symlink_to(repository / name)
    (folder / "Pulumi.yaml").write_text((repository / "Pulumi.yaml").read_text())
    return folder


@pytest.fixture(scope="module")
def dependent_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's program: a gate, a slow sibling, and a resource that waits for health."""
    folder = tmp_path_factory.mktemp("dependent")
    (folder / "plugin").symlink_to(HERE / "plugin")
    for file in (HERE / "programs" / "dependent").iterdir():
        (folder / file.name).write_text(file.read_text())
    return folder


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of this module's own, started by another process: it outlives whoever starts it."""
    home = tmp_path_factory.mktemp("sandbox")
    start = "import sys, pathlib, sandbox.client as c; c.Sandbox(pathlib.Path(sys.argv[1])).start()"
    subprocess.run([sys.executable, "-c", start, str(home)], check=True, cwd=REPOSITORY)
    sandbox = Sandbox(home)
    yield sandbox
    sandbox.stop()


@pytest.fixture(scope="module")
def cloud_environment(environment: dict[str, str], cloud: Sandbox) -> dict[str, str]:
    """``environment``, pointed at the sandbox."""
    variables = cloud.env()
    folders = [variables.pop("PATH").split(os.pathsep)[0], environment["PATH"]]
    return {**environment, **variables, "PATH": os.pathsep.join(folders)}


@pytest.fixture(scope="module")
def make_stack() -> Callable[[Path, str, Mapping[str, str]], Stack]:
    return Stack


class Tools:
    """Looking at processes."""

    wait_until = staticmethod(wait_until)
    providers_of = staticmethod(providers_of)

    @staticmethod
    def judging(process: subprocess.Popen[str]) -> bool:
        """Whether the run has shown that its gate looks at a host."""
        stream = process.stdout
        assert stream is not None
        line = stream.readline()
        assert line, "the run ended before its gate looked at a host"
        return "probe: looking" in line


@pytest.fixture(scope="session")
def tools() -> type[Tools]:
    return Tools
