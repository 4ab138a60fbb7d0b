"""Processes that may hang in a driver, and a parent that never waits for them.

A call into a sick driver can block for ever, even against SIGKILL. So whatever touches a GPU in a burn-in runs in a
child of its own: forked (the probe may be a zip that only its parent can read), in a session of its own, speaking JSON
lines over a pipe. The parent touches no driver, waits with a deadline, and leaves a child that does not answer behind.

Processes rather than threads: a thread that hangs keeps the whole process from ending, and an error in one GPU's
context or a crash in a library would take the other GPUs' results along.
"""

import ctypes
import json
import os
import select
import signal
import time
from typing import Any, Callable, Dict, Iterable, List, Optional

Message = Dict[str, Any]
_PR_SET_PDEATHSIG = 1


class Child:
    """A forked process. ``messages`` holds all that it sent; ``ended`` says how it ended, and is empty until then."""

    def __init__(self, body: Callable[["Port"], None]) -> None:
        to_child, from_child = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(body, to_child, from_child)
        os.close(to_child[0])
        os.close(from_child[1])
        self._inbox, self.outbox = to_child[1], from_child[0]
        self._buffer = b""
        self.messages: List[Message] = []
        self.ended = ""

    def tell(self, order: str) -> None:
        try:
            os.write(self._inbox, order.encode() + b"\n")
        except OSError:
            pass  # it has ended; reading its pipe says so

    def receive(self) -> None:
        """Read what is there; a closed pipe ends the child."""
        data = os.read(self.outbox, 65536)
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        self.messages.extend(json.loads(line.decode()) for line in lines)
        if not data:
            self.ended = self._how_it_ended()

    def _how_it_ended(self) -> str:
        for _ in range(100):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
                return f"killed by {signal.Signals(number).name}" if number else "ended"
            time.sleep(0.01)
        return "closed its pipe and did not end"

    def stop(self) -> None:
        """Kill it with its session; it is not waited for, since it may not be able to die."""
        if not self.ended:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                pass
            self.ended = "stopped"
        os.close(self._inbox)
        os.close(self.outbox)


class Port:
    """The child's end: ``send`` a message; ``order`` waits for the next word, empty when the parent is gone."""

    def __init__(self, inbox: int, outbox: int) -> None:
        self._orders = os.fdopen(inbox, "rb", 0)
        self._outbox = outbox

    def send(self, message: Message) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(self._outbox, data) :]

    def order(self) -> str:
        return self._orders.readline().decode().strip()


def _be_child(body: Callable[[Port], None], to_child: Any, from_child: Any) -> None:
    """Run the body and leave by ``os._exit``, whatever happens: the parent's code must not run twice."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(to_child[1])
        os.close(from_child[0])
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)  # libraries print; the parent's standard output carries evidence
        body(Port(to_child[0], from_child[1]))
    finally:
        os._exit(0)


def collect(children: Iterable[Child], done: Callable[[Child], bool], timeout_s: float) -> List[Child]:
    """Read until each child is ``done`` or has ended; returns those that were neither when the time was up."""
    deadline = time.monotonic() + timeout_s
    while True:
        waiting = [child for child in children if not child.ended and not done(child)]
        left = deadline - time.monotonic()
        if not waiting or left <= 0:
            return waiting
        ready, _, _ = select.select([child.outbox for child in waiting], [], [], min(left, 0.1))
        for child in waiting:
            if child.outbox in ready:
                child.receive()


def last(child: Child, key: str) -> Optional[Message]:
    """The newest message with this key."""
    return next((message for message in reversed(child.messages) if key in message), None)
