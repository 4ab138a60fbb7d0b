"""A collector that cannot be killed, for real: the probe has no permission to signal it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from validation import bootstrap
from validation.evidence import Bundle, Outcome
from validation.transcript import Transcript

pytestmark = pytest.mark.system

LIMIT_S = 1.0
SENTRY_S = 10.0
UNKILLABLE = """
#define _GNU_SOURCE
#include <unistd.h>
int main(void) { if (setresuid(0, 0, 0)) return 1; write(1, "begun\\n", 6); sleep(300); return 0; }
"""


@pytest.fixture
def stuck_tools(tmp_path: Path) -> Iterator[Path]:
    """A directory whose ``lspci`` becomes root and never ends, and whose ``nvcc`` leaves its output open."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tmp_path / "stuck.c").write_text(UNKILLABLE)
    subprocess.run(["cc", "-o", tools / "stuck", tmp_path / "stuck.c"], check=True)
    (tools / "stuck").chmod(0o4755)
    pids = tmp_path / "pids"
    pids.touch()
    pids.chmod(0o666)
    scripts = {
        "lspci": f"echo $$ >> {pids}\nexec {tools}/stuck\n",
        "nvcc": f"setsid sleep 300 &\necho $! >> {pids}\necho release 12.6\n",
    }
    for name, text in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}")
        (tools / name).chmod(0o755)
    for parent in [tools, *tools.parents]:
        if "pytest" in str(parent):
            parent.chmod(0o755)
    yield tools
    for pid in pids.read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def probe_as(user: str, tools: Path) -> tuple[Bundle, float]:
    """The probe as that user, its PATH headed by ``tools``; and how long the run took."""
    command = bootstrap.command("root", ["collect", "n0", str(LIMIT_S)])
    path = f"{tools}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    begun = time.monotonic()
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", "-i", f"PATH={path}"]
    argv = [*become, "sh", "-c", command]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(bootstrap.archive())
        process.stdin.close()
        transcript = Transcript("n0")
        for line in process.stdout:
            if transcript.feed(line):
                break
        taken = time.monotonic() - begun
        process.kill()
    return transcript.bundle("node"), taken


def test_all_other_evidence_arrives_in_time_beside_a_collector_that_cannot_be_killed(
    make_user: Callable[..., str], stuck_tools: Path
) -> None:
    bundle, taken = probe_as(make_user(sudo=False), stuck_tools)
    stuck = bundle.items["lspci"]
    assert bundle.complete, bundle.notes
    assert stuck.outcome is Outcome.TIMEOUT
    assert "could not be killed" in stuck.error
    assert stuck.stdout == "begun\n"
    assert bundle.items["kernel"].stdout.startswith("Linux")
    assert bundle.items["boot-id"].outcome is Outcome.OK
    assert taken < LIMIT_S + SENTRY_S / 2


def test_a_process_that_keeps_a_tools_output_open_does_not_hold_its_item_back(
    make_user: Callable[..., str], stuck_tools: Path
) -> None:
    bundle, _ = probe_as(make_user(sudo=False), stuck_tools)
    assert bundle.items["nvcc"].outcome is Outcome.OK
    assert bundle.items["nvcc"].stdout == "release 12.6\n"
