"""The demo as a newcomer runs it: a process of its own, judged by what it prints and leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kiln.demo import processes_left

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("demo")]


def start(folder: Path, **changes: str) -> subprocess.Popen[str]:
    """The demo in a process; its temporary folder and its reports go below ``folder``."""
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "kiln.demo"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), **changes},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def nothing_is_left(folder: Path) -> None:
    assert processes_left(folder / "tmp") == []
    assert list((folder / "tmp").iterdir()) == []


def test_the_demo_shows_a_healthy_stack_then_a_broken_link_and_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    order = [
        "This is a simulator",
        "make the stack: 2 x p5.48xlarge",
        "gate OPEN: PASS, 2 of 2 hosts good",
        "healthy: true; report:",
        "break one NVLink of one GPU of node-1",
        "gate CLOSED: FAIL, 1 of 2 hosts good",
        "healthy: false; report:",
        "pulumi up exited with 1",
        "pulumi destroy: done in",
        "stop the sandbox: done in",
        "nothing is left running",
    ]
    places = [out.index(text) for text in order]
    assert places == sorted(places)
    said = out[out.index("pulumi up exited") :]
    for text in ("node-1/GPU3/link7", "17 of 18 NVLinks active", "measured 17", "expected 18", "Reboot once"):
        assert text in said
    assert "Traceback" not in out + err
    pages = {path.name: path.read_text() for path in (tmp_path / "reports" / "demo").iterdir()}
    assert sorted(pages) == ["faulty.html", "healthy.html"]
    assert all("simulated" in page for page in pages.values())
    nothing_is_left(tmp_path)


def test_an_interrupted_demo_is_130_and_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if "pulumi up ..." in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    nothing_is_left(tmp_path)


def test_a_demo_that_cannot_run_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, PATH="/usr/bin:/bin", XDG_CACHE_HOME=str(tmp_path / "cache"))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, out + err
    assert "kiln: no Pulumi CLI" in err
    assert "Traceback" not in out + err
    nothing_is_left(tmp_path)
