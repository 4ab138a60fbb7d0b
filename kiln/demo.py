"""``make demo``: the whole path on simulated hosts, with the real Pulumi engine.

Two p5.48xlarge come up and are judged good; one NVLink of one GPU breaks and the next ``pulumi up`` fails and says so;
everything is destroyed and nothing is left running. All state lives in a folder of its own, which is removed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kiln import sandbox_project
from kiln.engine import Engine, Run
from kiln.events import EngineProgress
from kiln.output import show, write
from kiln.progress import progress
from profiles.errors import KilnError
from sandbox.client import Sandbox
from validation.report import document, webpage
from validation.report.model import StackReport
from validation.report.summary import closing
from validation.verdict import Verdict

STACK = "demo"
INSTANCE_TYPE = "p5.48xlarge"
COUNT = 2
EFA_COUNT = 32  # all that the type has: one ENA interface and 32 of type efa-only a host
VICTIM = "node-1"
FAULT = "nvlink-down"
EXIT_INTERRUPTED = 130
IDLE_HOURS = 0.5  # after which a sandbox whose demo was killed ends by itself
END_S = 10.0  # for processes that end by themselves once the engine is gone


class DemoError(KilnError):
    """The demo did not show what it is there to show."""

    exit_code = 1


@dataclass
class Demo:
    """``home`` holds all state, ``reports`` is where the two web pages go, and stay."""

    home: Path
    reports: Path
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.sandbox = Sandbox(self.home / "sandbox")
        self.engine: Engine | None = None

    def run(self) -> None:
        """All steps; raises KilnError where one does not come out as it must."""
        self._say(
            "This is a simulator: the cloud and the GPU hosts are not real. The Pulumi engine, SSH and the checks are."
        )
        with self._step("start the sandbox"):
            self.sandbox.start(idle_hours=IDLE_HOURS)
            engine = self.engine = sandbox_project.create(self.home, self.sandbox)
        with self._step(f"make the stack: {COUNT} x {INSTANCE_TYPE}"):
            settings = {"instanceType": INSTANCE_TYPE, "count": str(COUNT), "efaCount": str(EFA_COUNT), "owner": "demo"}
            sandbox_project.make_stack(engine, STACK, self.sandbox, settings)
        with self._step("pulumi up"):
            run = self._operate("up")
        self._judge_good(run)
        with self._step(f"break one NVLink of one GPU of {VICTIM}; nothing else changes"):
            self.sandbox.fault(VICTIM, FAULT)
        with self._step("pulumi up"):
            run = self._operate("up")
        self._judge_faulty(run)
        with self._step("pulumi destroy"):
            run = self._operate("destroy")
            _demand(run.code == 0, f"pulumi destroy failed: {'; '.join(run.messages())}")
            left = {kind: names for kind, names in self.sandbox.resources().items() if names}
            _demand(not left, f"resources are left in the cloud: {left}")
            self.engine = None
        with self._step("stop the sandbox"):
            pid = self.sandbox.endpoint().pid
            self.sandbox.stop()
            _demand(not Path(f"/proc/{pid}").exists() or not self.sandbox.status()["running"], "the sandbox still runs")
        left_over = processes_left(self.home)
        _demand(not left_over, f"processes are left: {left_over}")
        self._say("nothing is left running")

    def clean_up(self) -> None:
        """End what an unfinished demo left; says what could not be ended, and raises nothing."""
        if self.engine is not None:
            with self._step("clean up: pulumi destroy"), contextlib.suppress(KilnError):
                self.engine.operate("destroy", STACK, lambda _: None)
        try:
            self.sandbox.stop()
        except KilnError as error:
            click.echo(f"kiln: {error}", err=True)

    def _operate(self, verb: str) -> Run:
        assert self.engine is not None
        with progress() as shown:
            run = self.engine.operate(verb, STACK, EngineProgress(shown))
        if run.interrupted:
            raise KeyboardInterrupt
        return run

    def _judge_good(self, run: Run) -> None:
        _demand(run.code == 0, f"pulumi up failed: {'; '.join(run.messages())}")
        outputs, report = self._result("healthy")
        _demand(outputs.get("healthy") is True and report.healthy, "the stack is not healthy")

    def _judge_faulty(self, run: Run) -> None:
        outputs, report = self._result("faulty")
        _demand(run.code != 0, "pulumi up succeeded with a broken NVLink")
        _demand(outputs.get("healthy") is False and not report.healthy, "the stack still says healthy")
        found = [entry.finding for entry in closing(report)]
        _demand(all(finding.subject.split("/")[0] == VICTIM for finding in found), "wrong host blamed")
        faults = [finding for finding in found if finding.verdict is Verdict.FAIL]
        _demand(any(finding.subject.startswith(f"{VICTIM}/GPU") for finding in faults), "no GPU blamed")
        said = "\n".join(run.messages())
        missing = [text for f in found for text in (f.subject, f.measured, f.expected, f.remedy) if text not in said]
        _demand(not missing, f"the engine's message does not say {missing}: {said}")
        self._say(f"pulumi up exited with {run.code} and said:")
        click.echo(said)

    def _result(self, name: str) -> tuple[dict[str, Any], StackReport]:
        """The stack's outputs and the report in them; shows the gate's table and writes the web page."""
        assert self.engine is not None
        outputs = self.engine.outputs(STACK)
        text = outputs.get("report")
        _demand(isinstance(text, str), "the stack has no report")
        report = replace(document.read(str(text)), title=f"{STACK} (simulated)")
        click.echo()
        show(report)
        self.reports.mkdir(parents=True, exist_ok=True)
        page = self.reports / f"{name}.html"
        write(page, webpage.render(report))
        self._say(f"healthy: {str(outputs.get('healthy')).lower()}; report: {page}")
        return outputs, report

    @contextlib.contextmanager
    def _step(self, what: str) -> Iterator[None]:
        begun = time.monotonic()
        self._say(f"{what} ...")
        yield
        self._say(f"{what}: done in {time.monotonic() - begun:.1f} s")

    def _say(self, text: str) -> None:
        click.echo(f"[{time.monotonic() - self.started:5.1f} s] {text}")
        sys.stdout.flush()


def processes_naming(folder: Path) -> list[str]:
    """The processes whose command line or environment names the folder, this one apart: ``pid command``."""
    needle = os.fsencode(folder)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if needle in command or needle in (entry / "environ").read_bytes():
                found.append(f"{entry.name} {command.replace(bytes(1), b' ').decode(errors='replace').strip()}")
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def processes_left(folder: Path, *, within_s: float = END_S) -> list[str]:
    """Those that still name the folder after ``within_s`` seconds: a plugin ends a little after its engine."""
    deadline = time.monotonic() + within_s
    while (found := processes_naming(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _demand(condition: bool, otherwise: str) -> None:
    if not condition:
        raise DemoError(f"demo: {otherwise}")


def main() -> int:
    """Run the demo; 0 only if everything came out as it must and nothing is left."""
    signal.signal(signal.SIGTERM, _interrupt)
    reports = Path.cwd() / "reports" / "demo"
    with tempfile.TemporaryDirectory(prefix="kiln-demo-") as folder:
        demo = Demo(Path(folder), reports)
        try:
            demo.run()
        except KilnError as error:
            click.echo(f"kiln: {error}", err=True)
            return error.exit_code or 1
        except KeyboardInterrupt:
            click.echo("kiln: interrupted", err=True)
            return EXIT_INTERRUPTED
        finally:
            demo.clean_up()
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
