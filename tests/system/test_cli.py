"""The command line against the real engine, the embedded cloud and simulated hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kiln import sandbox_project
from kiln.demo import processes_left
from kiln.engine import Engine
from sandbox.client import Sandbox
from validation.report import document

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("cli"),
    # The sandbox outlives the call that starts it, on purpose; the fixture ends it.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

STACK = "dev"
SETTINGS = {"instanceType": "g5.xlarge", "count": "2", "burnIn": "none", "deadlineSeconds": "90", "owner": "tests"}


@dataclass
class World:
    """A running sandbox and a stack in it."""

    sandbox: Sandbox
    engine: Engine

    def kiln(self, *words: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
        """Run ``kiln`` in the project; ``changes`` are environment variables, None to remove one."""
        return subprocess.run(
            [sys.executable, "-m", "kiln", *words],
            cwd=self.engine.directory,
            env=environment(self.engine.environment, changes),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


def environment(base: Any, changes: dict[str, str | None]) -> dict[str, str]:
    merged = {**base, **changes}
    return {key: value for key, value in merged.items() if value is not None}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def world(home: Path) -> Iterator[World]:
    """One sandbox and one stack for all tests here; in the end nothing may be left of either."""
    sandbox = Sandbox(home / "sandbox")
    sandbox.start()
    try:
        engine = sandbox_project.create(home, sandbox)
        sandbox_project.make_stack(engine, STACK, sandbox, SETTINGS)
        yield World(sandbox, engine)
        run = engine.operate("destroy", STACK, lambda _: None)
        assert run.code == 0, run.messages()
        assert sandbox.resources() == {}
    finally:
        sandbox.stop()
    assert processes_left(home) == []


@pytest.fixture
def up(world: World) -> World:
    """The world with the stack up, every host good."""
    for host in world.sandbox.hosts():
        world.sandbox.clear(host["name"])
    done = world.kiln("up", STACK, "--json")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return world


def one_message(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """The command failed with the code and one message that holds the words: no traceback, nothing on stdout."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("kiln: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_up_of_good_hosts_is_0_and_json_is_one_document(world: World) -> None:
    done = world.kiln("up", STACK, "--json")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    report = document.read(done.stdout)
    assert report.healthy
    assert [host.host for host in report.hosts] == ["node-0", "node-1"]
    assert "creating: aws Instance" in done.stderr
    assert world.engine.outputs(STACK)["healthy"] is True


def test_up_with_a_faulty_host_is_1_and_every_report_says_so(up: World, tmp_path: Path) -> None:
    up.sandbox.fault("node-1", "gpu-missing")
    done = up.kiln("up", STACK, "--junit", str(tmp_path / "j.xml"), "--html", str(tmp_path / "h.html"))
    assert done.returncode == 1, done.stderr
    assert "gate CLOSED: FAIL, 1 of 2 hosts good" in done.stdout
    assert "gpu.count" in done.stdout
    assert int(ET.parse(tmp_path / "j.xml").getroot().get("failures", "0")) >= 1
    assert "gate CLOSED" in (tmp_path / "h.html").read_text()
    assert up.engine.outputs(STACK)["healthy"] is False
    status = up.kiln("status", STACK)
    assert status.returncode == 1, status.stderr
    assert "not healthy (FAIL)" in status.stdout


def test_up_with_a_host_that_does_not_answer_is_3(up: World) -> None:
    up.sandbox.fault("node-0", "no-python")
    done = up.kiln("up", STACK, "--json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["verdict"] == "UNKNOWN"


def test_status_of_a_healthy_stack_is_0_and_reads_the_engine_s_state(up: World) -> None:
    done = up.kiln("status", STACK, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(done.stdout)
    assert (data["healthy"], data["reasons"]) == (True, [])
    assert data["report"]["schema"] == "kiln/report/v1"


def test_a_scaled_down_stack_deletes_its_host_although_the_gate_is_closed(up: World) -> None:
    up.engine.call(STACK, "config", "set", "kiln:count", "1")
    up.sandbox.fault("node-0", "gpu-missing")
    try:
        done = up.kiln("up", STACK)
        assert done.returncode == 1, done.stderr
        assert [host["name"] for host in up.sandbox.hosts()] == ["node-0"]
    finally:
        up.engine.call(STACK, "config", "set", "kiln:count", "2")


def test_ctrl_c_is_130_and_status_does_not_say_healthy(up: World) -> None:
    up.sandbox.fault("node-0", "cloud-init-running")
    process = subprocess.Popen(
        [sys.executable, "-m", "kiln", "up", STACK],
        cwd=up.engine.directory,
        env=dict(up.engine.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "updating: kiln HealthGate" in line:
            break
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert time.monotonic() - begun < 60, err  # the host's own deadline is later than that
    status = up.kiln("status", STACK)
    assert status.returncode == 3, err + status.stdout + status.stderr


def test_plan_shows_what_would_be_made_without_asking_a_cloud(world: World) -> None:
    done = world.kiln("plan", STACK, AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert "2 x g5.xlarge in us-east-1a" in done.stdout
    data = json.loads(world.kiln("plan", STACK, "--json").stdout)
    assert [host["name"] for host in data["hosts"]] == ["node-0", "node-1"]


def test_wrong_settings_are_told_at_once_by_plan_and_by_up_and_nothing_is_changed(world: World) -> None:
    for key, value in {"count": "0", "efaCount": "4", "instanceType": "g5.xlarge"}.items():
        world.engine.call(STACK, "config", "set", f"kiln:{key}", value)
    before = world.engine.call(STACK, "stack", "export")
    try:
        for command in ("plan", "up"):
            one_message(world.kiln(command, STACK), 2, "count: found 0", "efaCount: found 4")
        assert world.engine.call(STACK, "stack", "export") == before
    finally:
        for key, value in {"count": "2", "efaCount": "0"}.items():
            world.engine.call(STACK, "config", "set", f"kiln:{key}", value)


def test_a_wrong_passphrase_is_one_message(world: World) -> None:
    done = world.kiln("up", STACK, PULUMI_CONFIG_PASSPHRASE="wrong")
    one_message(done, 2, "the passphrase of stack 'dev' is wrong", "PULUMI_CONFIG_PASSPHRASE")


def test_no_passphrase_is_one_message(world: World) -> None:
    done = world.kiln("up", STACK, PULUMI_CONFIG_PASSPHRASE=None)
    one_message(done, 2, "no passphrase is set", "PULUMI_CONFIG_PASSPHRASE")


@pytest.mark.parametrize("command", ["up", "status", "plan"])
def test_an_unknown_stack_is_one_message(world: World, command: str) -> None:
    one_message(world.kiln(command, "nope"), 2, "there is no stack 'nope'", "pulumi stack init nope")


@pytest.mark.parametrize("command", ["up", "status", "plan"])
def test_a_folder_without_a_project_is_one_message(world: World, command: str, tmp_path: Path) -> None:
    one_message(world.kiln(command, STACK, "--cwd", str(tmp_path)), 2, "no Pulumi.yaml in", "--cwd")


def test_no_engine_is_one_message(world: World, tmp_path: Path) -> None:
    done = world.kiln("up", STACK, PATH="/usr/bin:/bin", HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    one_message(done, 2, "Pulumi CLI", "make setup")


def test_a_backend_that_is_not_there_is_one_message(world: World, tmp_path: Path) -> None:
    done = world.kiln("up", STACK, PULUMI_BACKEND_URL=f"file://{tmp_path}/nothing")
    one_message(done, 2, "the state backend cannot be opened", "PULUMI_BACKEND_URL")


def test_a_stack_is_not_brought_up_where_no_sandbox_runs(world: World, tmp_path: Path) -> None:
    done = world.kiln("up", STACK, KILN_SANDBOX_HOME=str(tmp_path))
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "kiln sandbox start" in done.stderr


def test_a_program_without_a_gate_is_never_healthy(world: World, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: bare\nruntime: python\nmain: program\n")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text("import pulumi\npulumi.export('healthy', True)\n")
    bare = Engine(world.engine.cli, tmp_path, world.engine.environment)
    bare.call("one", "stack", "init")
    done = world.kiln("up", "one", "--cwd", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "the stack has no HealthGate" in done.stderr
    assert world.kiln("status", "one", "--cwd", str(tmp_path)).returncode == 3


@pytest.mark.parametrize("words", [("hosts",), ("fault", "node-0", "xid-13"), ("env",), ("reboot", "node-0")])
def test_a_sandbox_command_without_a_sandbox_is_one_message(
    world: World, words: tuple[str, ...], tmp_path: Path
) -> None:
    done = world.kiln("sandbox", *words, KILN_SANDBOX_HOME=str(tmp_path))
    one_message(done, 3, "not running", "kiln sandbox start")


def test_the_sandbox_starts_is_asked_and_stops(tmp_path: Path) -> None:
    def kiln(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kiln", "sandbox", *words]
        variables = {**os.environ, "KILN_SANDBOX_HOME": str(tmp_path / "s")}
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)

    try:
        started = kiln("start")
        assert started.returncode == 0, started.stderr
        assert "simulator" in started.stderr
        assert json.loads(kiln("status", "--json").stdout)["status"]["running"] is True
        assert kiln("hosts").stdout == "no hosts; `kiln up STACK` makes some\n"
        assert "export AWS_ENDPOINT_URL=" in kiln("env").stdout
        assert "kiln:sshPort" in kiln("config", "dev").stdout
        unknown = kiln("fault", "node-0", "xid-13")
        assert (unknown.returncode, unknown.stdout) == (2, "")
    finally:
        assert kiln("stop").returncode == 0
    assert json.loads(kiln("status", "--json").stdout)["status"]["running"] is False
    assert processes_left(tmp_path) == []


def test_hosts_and_their_faults_are_listed(up: World) -> None:
    up.sandbox.fault("node-1", "xid-13")
    done = up.kiln("sandbox", "hosts")
    rows = [row.split() for row in done.stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows[1:]] == [("node-0", "none"), ("node-1", "xid-13")]


def test_doctor_finds_everything_here_and_says_what_is_missing(world: World, tmp_path: Path) -> None:
    good = world.kiln("doctor", "--json")
    assert good.returncode == 0, good.stdout
    assert json.loads(good.stdout)["schema"] == "kiln/doctor/v1"
    bad = world.kiln("doctor", PATH="/usr/bin:/bin", HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert bad.returncode == 2
    assert "missing  pulumi" in bad.stdout


def test_output_into_a_pipe_that_closes_is_quiet(world: World) -> None:
    command = f"{sys.executable} -m kiln sandbox fault --list | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
