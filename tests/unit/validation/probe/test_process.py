"""Children that are never waited for."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from validation.probe import process
from validation.probe.process import Pool, ToolMissingError, command

# The probe forks; only where another test left a thread behind does Python warn about that.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SENTRY_S = 5.0
PATH = {"PATH": "/usr/bin:/bin"}


def run(task: process.Task, timeout_s: float = SENTRY_S, cap: int = 10**6) -> dict[str, Any]:
    pool = Pool()
    pool.start("one", task, timeout_s, cap)
    return finish(pool)["one"]


def finish(pool: Pool) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + SENTRY_S
    while pool.children:
        assert time.monotonic() < end, "the pool did not finish"
        results.update(pool.poll())
    return results


def descriptors() -> set[str]:
    """What this process has open; less whatever lists it."""
    return {path.name for path in Path("/proc/self/fd").iterdir() if path.exists()}


def shell(script: str) -> process.Task:
    return command(["sh", "-c", script], PATH)


def test_a_command_brings_both_streams_and_its_exit_status() -> None:
    result = run(shell("echo out; echo err >&2; exit 3"))
    assert (result["outcome"], result["rc"]) == ("ok", 3)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")


def test_a_tool_that_is_not_on_the_path_is_not_found() -> None:
    result = run(command(["no-such-tool"], PATH))
    assert (result["outcome"], result["rc"]) == ("not-found", None)
    assert "no-such-tool" in result["error"]


def test_a_file_without_the_execute_bit_is_not_a_tool(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    assert run(command(["tool"], {"PATH": str(tmp_path)}))["outcome"] == "not-found"


def test_a_command_sees_only_the_environment_it_is_given_and_no_input() -> None:
    assert run(shell("env | grep -c LANG; cat"))["stdout"] == "0\n"


@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_a_child_that_the_host_has_no_room_for_is_an_error_of_its_own_and_of_no_other(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = getattr(os, call)

    def refuse_the_second() -> Any:
        calls.append(call)
        if len(calls) == (2 if call == "fork" else 5):  # three pipes a child: its second pipe
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return real()

    monkeypatch.setattr(os, call, refuse_the_second)
    pool = Pool()
    before = descriptors()
    for name in ("one", "two", "three"):
        pool.start(name, shell("echo here"), SENTRY_S, 100)
    results = finish(pool)
    assert {name: result["outcome"] for name, result in results.items()} == {"one": "ok", "two": "error", "three": "ok"}
    assert results["two"]["error"] == "could not be started: Resource temporarily unavailable"
    assert results["two"].keys() == results["one"].keys()
    assert descriptors() <= before


def test_a_pool_that_is_killed_has_nothing_to_kill_in_a_child_that_has_left() -> None:
    """Whose pipe an orphan in another session still holds, so that its result is not yet handed back."""
    pool = Pool()
    pool.start("one", shell("setsid sleep 2 & exit 0"), SENTRY_S, 100)
    child = pool.children["one"]
    end = time.monotonic() + SENTRY_S
    while child.exited is None:
        assert time.monotonic() < end
        child.reap()
    pool.kill()
    assert finish(pool).keys() == {"one"}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ToolMissingError("gone"), "not-found"),
        (FileNotFoundError("gone"), "not-found"),
        (PermissionError("no"), "denied"),
        (ValueError("broken"), "error"),
        (SystemExit(0), "error"),
    ],
)
def test_what_a_task_raises_becomes_the_outcome_and_its_output_is_kept(error: BaseException, outcome: str) -> None:
    def task(write: Callable[[str], None]) -> None:
        write("half")
        raise error

    result = run(task)
    assert (result["outcome"], result["stdout"]) == (outcome, "half")


def test_a_task_that_crashes_the_interpreter_is_an_error_and_takes_nothing_down() -> None:
    def task(_: Callable[[str], None]) -> None:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # pytest's own handler would print
        os.kill(os.getpid(), signal.SIGSEGV)

    assert run(task)["error"] == f"died of signal {signal.SIGSEGV.value}"


def test_a_child_that_hangs_is_killed_with_its_group_at_its_timeout() -> None:
    begun = time.monotonic()
    result = run(shell("echo begun; trap '' TERM; sleep 60 & wait; sleep 60"), timeout_s=0.3)
    assert (result["outcome"], result["stdout"], result["rc"]) == ("timeout", "begun\n", None)
    assert result["error"] == "killed after 0.3 s"
    assert time.monotonic() - begun < 2.0


def test_a_child_that_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    pool.start("stuck", shell("sleep 60"), 0.2, 100)
    pool.start("other", shell("echo here"), SENTRY_S, 100)
    pid = pool.children["stuck"].pid

    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr("validation.probe.process.os.killpg", refuse)
        results = finish(pool)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert results["other"]["stdout"] == "here\n"
    assert results["stuck"]["outcome"] == "timeout"
    assert "could not be killed: Operation not permitted" in results["stuck"]["error"]


def test_a_child_that_ignores_its_death_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in uninterruptible sleep: the signal is sent, and nothing happens."""
    pool = Pool()
    pool.start("stuck", shell("sleep 60"), 0.2, 100)
    pid = pool.children["stuck"].pid
    begun = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr("validation.probe.process.os.killpg", lambda *_: None)
        results = finish(pool)
    taken = time.monotonic() - begun
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert results["stuck"]["outcome"] == "timeout"
    assert taken < 1.0


def test_all_children_run_at_once() -> None:
    pool = Pool()
    begun = time.monotonic()
    for number in range(8):
        pool.start(str(number), shell(f"sleep 0.5; echo {number}"), SENTRY_S, 100)
    results = finish(pool)
    assert {name: result["stdout"] for name, result in results.items()} == {str(n): f"{n}\n" for n in range(8)}
    assert time.monotonic() - begun < 8 * 0.5 / 2


def test_output_beyond_the_cap_is_dropped_and_said_to_be() -> None:
    result = run(shell("yes | head -c 300000; echo done >&2"), cap=1000)
    assert result["truncated"]
    assert len(result["stdout"]) == 1000
    assert (result["outcome"], result["stderr"]) == ("ok", "done\n")


def test_output_of_exactly_the_cap_is_whole() -> None:
    result = run(shell("head -c 1000 /dev/zero"), cap=1000)
    assert not result["truncated"]
    assert len(result["stdout"]) == 1000


def test_output_that_is_no_text_does_not_break_the_item() -> None:
    assert run(shell(r"printf '\377\376ok'"))["stdout"] == "\ufffd\ufffdok"


def test_a_process_that_keeps_the_output_open_is_not_waited_for() -> None:
    begun = time.monotonic()
    result = run(shell("setsid sleep 2 & echo here"))
    assert (result["outcome"], result["stdout"]) == ("ok", "here\n")
    assert time.monotonic() - begun < 1.5


def test_a_killed_pool_leaves_no_child_running() -> None:
    pool = Pool()
    pool.start("one", shell("sleep 60"), SENTRY_S, 100)
    pid = pool.children["one"].pid
    time.sleep(0.1)
    pool.kill()
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_a_probe_that_is_killed_takes_its_children_with_it_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm survives exec, so that no tool outlives its timeout for long where nobody is left to kill it."""
    code = (
        "import os, time\n"
        "from validation.probe import process\n"
        "process.ALARM_SPARE_S = 1\n"
        "pool = process.Pool()\n"
        "pool.start('one', process.command(['sleep', '60'], {'PATH': '/usr/bin:/bin'}), 0.2, 100)\n"
        "print(pool.children['one'].pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=SENTRY_S)
    pid = int(done.stdout)
    end = time.monotonic() + SENTRY_S
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_exit_status_that_was_lost_is_never_taken_for_zero() -> None:
    """As where SIGCHLD is ignored, which a login program may hand down: the kernel reaps the child and tells nobody."""
    pool = Pool()
    pool.start("one", shell("echo half; exit 3"), SENTRY_S, 100)
    os.waitpid(pool.children["one"].pid, 0)
    result = finish(pool)["one"]
    assert (result["outcome"], result["rc"], result["stdout"]) == ("error", None, "half\n")
    assert result["error"] == "its exit status was lost"


def test_a_full_pipe_of_a_child_that_left_a_process_behind_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe holds 1 MiB where pages are of 64 KiB; the poll may come back late, and then finds the grace used up."""
    monkeypatch.setattr("validation.probe.process.ORPHAN_GRACE_S", -1.0)
    monkeypatch.setattr("validation.probe.process.READ_SIZE", 4096)
    pool = Pool()
    pool.start("one", shell("head -c 50000 /dev/zero; sleep 3 & exit 0"), SENTRY_S, 10**6)
    time.sleep(0.3)
    result = finish(pool)["one"]
    assert (result["outcome"], len(result["stdout"]), result["truncated"]) == ("ok", 50000, False)


def test_a_process_left_behind_that_never_stops_writing_is_read_to_the_limit_only() -> None:
    result = run(shell("yes & sleep 0.2; exit 0"), cap=10**6)
    assert (result["outcome"], result["truncated"]) == ("ok", True)
