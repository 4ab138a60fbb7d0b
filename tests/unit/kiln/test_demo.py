from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kiln import demo
from kiln.engine import Run
from validation.report import document
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict

REMEDY = "Reboot once."


def test_a_process_that_names_the_folder_is_found_while_it_runs(tmp_path: Path) -> None:
    code = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # right after its start, its command line can still be empty
        assert [row.split()[0] for row in demo.processes_naming(tmp_path)] == [str(process.pid)]
    finally:
        process.communicate()
    assert demo.processes_naming(tmp_path) == []


class FakeEngine:
    """Holds the outputs that a stack would have."""

    def __init__(self, verdict: Verdict, *, healthy: bool, subject: str = "node-1/GPU3/link7") -> None:
        link = Finding("nvlink.links_active", subject, verdict, "m", "17", "18", "p", REMEDY)
        # A burn-in that was asked for and left out closes the gate too, and is the host's, not a GPU's.
        left_out = Finding("burnin.run", subject.split("/")[0], Verdict.UNKNOWN, "no burn-in: other checks fail")
        findings = (link, left_out) if verdict is Verdict.FAIL else (link,)
        host = HostReport("node-1", "", "", "", verdict, findings)
        self._outputs = {"healthy": healthy, "report": document.render(StackReport(verdict, (host,)))}

    def outputs(self, stack: str) -> dict[str, object]:
        return self._outputs


def judged(tmp_path: Path, engine: FakeEngine) -> demo.Demo:
    found = demo.Demo(tmp_path / "home", tmp_path / "reports")
    found.engine = engine  # type: ignore[assignment]
    return found


SAID = Run(code=1, errors={"": [f"node-1/GPU3/link7: measured 17, expected 18 -> {REMEDY}"]})


def test_a_broken_link_that_is_blamed_in_full_is_what_the_demo_shows(tmp_path: Path) -> None:
    judged(tmp_path, FakeEngine(Verdict.FAIL, healthy=False))._judge_faulty(SAID)
    assert (tmp_path / "reports" / "faulty.html").exists()


@pytest.mark.parametrize(
    ("engine", "run", "message"),
    [
        (FakeEngine(Verdict.FAIL, healthy=False), Run(), "succeeded with a broken NVLink"),
        (FakeEngine(Verdict.FAIL, healthy=True), SAID, "still says healthy"),
        (FakeEngine(Verdict.PASS, healthy=False), SAID, "still says healthy"),
        (FakeEngine(Verdict.FAIL, healthy=False, subject="node-0/GPU1"), SAID, "wrong host blamed"),
        (FakeEngine(Verdict.FAIL, healthy=False, subject="node-1"), SAID, "no GPU blamed"),
        (FakeEngine(Verdict.FAIL, healthy=False), Run(code=1), "does not say"),
    ],
)
def test_a_broken_link_that_is_not_blamed_in_full_fails_the_demo(
    tmp_path: Path, engine: FakeEngine, run: Run, message: str
) -> None:
    with pytest.raises(demo.DemoError, match=message):
        judged(tmp_path, engine)._judge_faulty(run)


@pytest.mark.parametrize(
    ("engine", "run"),
    [
        (FakeEngine(Verdict.PASS, healthy=True), SAID),
        (FakeEngine(Verdict.PASS, healthy=False), Run()),
        (FakeEngine(Verdict.FAIL, healthy=False), Run()),
    ],
)
def test_a_first_run_that_is_not_healthy_fails_the_demo(tmp_path: Path, engine: FakeEngine, run: Run) -> None:
    with pytest.raises(demo.DemoError):
        judged(tmp_path, engine)._judge_good(run)
