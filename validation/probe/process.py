"""Children that cannot hold the probe up: started all at once, killed by group at their timeout, never waited for.

A child in uninterruptible sleep (a dying GPU, a dead NFS server) ignores SIGKILL, so anything that waits for it waits
for ever: ``subprocess.run(timeout=...)``, thread pools and ``multiprocessing`` alike. Each collector is therefore a
forked child in a session of its own, with /dev/null for input and pipes of its own; even finding and starting the
tool happens in the child. At its timeout the group is killed and the child forgotten.
"""

import contextlib
import os
import selectors
import signal
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

READ_SIZE = 65536
TICK_S = 0.05
REAP_TICK_S = 0.002  # a child that closed its pipes is about to exit
ORPHAN_GRACE_S = 0.5  # a child that exited may have left its pipe to a process that stays
ALARM_SPARE_S = 10  # net for children of a probe that was itself killed: SIGALRM ends them, and survives exec

Task = Callable[[Callable[[str], None]], None]
NAMES = ("stdout", "stderr", "status")


class ToolMissingError(Exception):
    """Raised by a task where the file or tool it reads is not there."""


class Child:
    """One running collector and what it has said so far. ``cap`` bounds each stream, in bytes."""

    def __init__(self, task: Task, timeout_s: float, cap: int) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + timeout_s
        self.timeout_s = timeout_s
        self.cap = cap
        self.chunks: Dict[str, List[bytes]] = {name: [] for name in NAMES}
        self.sizes = dict.fromkeys(NAMES, 0)
        self.truncated = False
        self.rc: Optional[int] = None
        self.exited: Optional[float] = None
        self.killed = ""
        self.pid, self.pipes = _start(task, timeout_s)

    def read(self, descriptor: int) -> bool:
        """Take what is there; False at the end of that pipe. Beyond the cap it is drained and dropped."""
        name = self.pipes[descriptor]
        try:
            data = os.read(descriptor, READ_SIZE)
        except BlockingIOError:
            return True
        room = self.cap - self.sizes[name]
        if len(data) > room:
            self.truncated = True
        if data and room > 0:
            self.chunks[name].append(data[:room])
            self.sizes[name] += len(data[:room])
        return bool(data)

    def drain(self, descriptor: int) -> None:
        """Take what a pipe still holds, at most what fits below the cap: its writer may never stop."""
        name = self.pipes[descriptor]
        before = -1
        while before < self.sizes[name] < self.cap:
            before = self.sizes[name]
            if not self.read(descriptor):
                return

    def reap(self) -> None:
        """Note the exit status if the child has exited; never wait."""
        if self.exited is not None:
            return
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            self.exited = time.monotonic()  # somebody else reaped it: how it ended is not known, and not made up
            return
        if pid:
            self.exited = time.monotonic()
            self.rc = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)

    def kill(self) -> None:
        """Kill the whole group and say how that went; the child is not waited for."""
        self.killed = "killed after %g s" % self.timeout_s
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            if self.exited is None:  # not yet the leader of its group: killed before its first instruction
                with contextlib.suppress(ProcessLookupError):  # or reaped by somebody else
                    os.kill(self.pid, signal.SIGKILL)
        except OSError as error:
            self.killed = "still running after %g s, and could not be killed: %s" % (self.timeout_s, error.strerror)

    def text(self, name: str) -> str:
        return b"".join(self.chunks[name]).decode("utf-8", "replace")

    @property
    def finished(self) -> bool:
        """Killed; or exited with its pipes closed, or with a grace for what it left open."""
        if self.killed:
            return True
        return self.exited is not None and (not self.pipes or time.monotonic() - self.exited > ORPHAN_GRACE_S)

    def result(self) -> Dict[str, Any]:
        """Outcome, streams, exit status and duration, in the words of an evidence item."""
        outcome, error = self._outcome()
        return dict(
            _result(outcome, error),
            stdout=self.text("stdout"),
            stderr=self.text("stderr"),
            rc=self.rc if outcome == "ok" else None,
            duration_s=round(time.monotonic() - self.started, 3),
            truncated=self.truncated,
        )

    def _outcome(self) -> Tuple[str, str]:
        if self.killed:
            return "timeout", self.killed
        status, _, reason = self.text("status").partition(":")
        if status:
            return status, reason.strip()
        if self.rc is None:
            return "error", "its exit status was lost"
        if self.rc < 0:
            return "error", "died of signal %d" % -self.rc
        return "ok", ""


def command(argv: Sequence[str], environment: Dict[str, str]) -> Task:
    """A task that becomes the command. What is not on PATH is a ToolMissingError."""

    def task(_write: Callable[[str], None]) -> None:
        for folder in environment.get("PATH", os.defpath).split(os.pathsep):
            path = os.path.join(folder, argv[0])
            if os.path.isfile(path) and os.access(path, os.X_OK):
                os.execve(path, list(argv), environment)  # noqa: S606 - no shell is the point
        raise ToolMissingError("%s: not found on PATH" % argv[0])

    return task


class Pool:
    """Children that run at once. ``poll`` hands back those that have finished, and never blocks longer than a tick."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.children: Dict[str, Child] = {}
        self.stillborn: Dict[str, Dict[str, Any]] = {}

    def start(self, name: str, task: Task, timeout_s: float, cap: int) -> None:
        """Start one child. Where the host has no process or pipe left for it, that is its result, and only its."""
        try:
            child = Child(task, timeout_s, cap)
        except OSError as error:
            self.stillborn[name] = _result("error", "could not be started: %s" % error.strerror)
            return
        self.children[name] = child
        for descriptor in child.pipes:
            self.selector.register(descriptor, selectors.EVENT_READ, child)

    def poll(self) -> Dict[str, Dict[str, Any]]:
        """Results by name of the children that ended since the last call."""
        for key, _ in self.selector.select(self._tick()):
            if not key.data.read(key.fd):
                self._close(key.data, key.fd)
        ended, self.stillborn = self.stillborn, {}
        for name, child in list(self.children.items()):
            child.reap()
            if not child.finished and time.monotonic() >= child.deadline:
                child.kill()
            if child.finished:
                for descriptor in list(child.pipes):
                    child.drain(descriptor)
                    self._close(child, descriptor)
                ended[name] = child.result()
                del self.children[name]
        return ended

    def kill(self) -> None:
        """Kill every child that still runs: nobody listens any more."""
        for child in self.children.values():
            child.kill()

    def _tick(self) -> float:
        if self.stillborn:
            return 0.0
        now = time.monotonic()
        tick = min([TICK_S] + [max(0.0, child.deadline - now) for child in self.children.values()])
        leaving = any(not child.pipes and child.exited is None for child in self.children.values())
        return min(tick, REAP_TICK_S) if leaving else tick

    def _close(self, child: Child, descriptor: int) -> None:
        self.selector.unregister(descriptor)
        del child.pipes[descriptor]
        os.close(descriptor)


def _result(outcome: str, error: str) -> Dict[str, Any]:
    """The result of a child that said nothing."""
    return {
        "outcome": outcome,
        "stdout": "",
        "stderr": "",
        "rc": None,
        "duration_s": 0.0,
        "error": error,
        "truncated": False,
    }


def _start(task: Task, timeout_s: float) -> Tuple[int, Dict[int, str]]:
    """Fork; returns the pid and the read ends by stream name. The pipes close by themselves when a command starts.

    Raises OSError, with nothing left open, where the host has no process or descriptor to give.
    """
    ends: List[Tuple[int, int]] = []
    try:
        while len(ends) < len(NAMES):
            ends.append(os.pipe())
        pid = os.fork()
    except OSError:
        for descriptor in [descriptor for end in ends for descriptor in end]:
            os.close(descriptor)
        raise
    if not pid:
        _become(task, [write for _, write in ends], timeout_s)
    for read, write in ends:
        os.close(write)
        os.set_blocking(read, False)
    return pid, {ends[number][0]: name for number, name in enumerate(NAMES)}


def _become(task: Task, writes: List[int], timeout_s: float) -> None:
    """In the child: take the pipes, run the task, leave. Nothing of the parent's runs after it."""
    stdout, stderr, status = writes
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.alarm(int(timeout_s) + ALARM_SPARE_S)
        task(_write_stdout)
        os._exit(0)
    except (ToolMissingError, FileNotFoundError) as error:
        os.write(status, ("not-found: %s" % error).encode("utf-8", "replace"))
    except PermissionError as error:
        os.write(status, ("denied: %s" % error).encode("utf-8", "replace"))
    except BaseException as error:  # noqa: BLE001 - a forked child must never return into the parent's code
        cause = "error: %s: %s" % (type(error).__name__, error)
        os.write(status, cause.encode("utf-8", "replace"))
    finally:
        os._exit(1)


def _write_stdout(text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(1, data) :]
