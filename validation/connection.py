"""What is said about connections to hosts: how one fails, how a command ends, and what a remote can do.

:mod:`validation.remote` is the real thing, over SSH; tests have scripted ones.
"""

from __future__ import annotations

import enum
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from profiles.errors import HostError


class Failure(enum.Enum):
    """Why there is no connection. The first four may pass by themselves."""

    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    DROPPED = "dropped"  # closed before or during the handshake: MaxStartups, a daemon that restarts
    INCOMPATIBLE = "no algorithm in common"
    AUTHENTICATION = "authentication failed"  # passes where cloud-init has yet to install the key
    HOST_KEY = "host key mismatch"
    UNPINNED = "no host key to compare with"


REMEDIES = {
    Failure.UNREACHABLE: "Check the address, the route to it and the security group.",
    Failure.REFUSED: "Check the port, and that sshd runs on the host.",
    Failure.TIMED_OUT: "Check the security group, and on the host's console that it is up and sshd answers.",
    Failure.DROPPED: "Look at sshd's log on the host: too many connections at once (MaxStartups), or a ban.",
    Failure.INCOMPATIBLE: "Allow sshd on the host a current key exchange, cipher and MAC: its defaults will do.",
    Failure.AUTHENTICATION: "Check the user name, and that the public key is in that user's authorized_keys.",
    Failure.HOST_KEY: "Find out who answers at this address. If the host was rebuilt on purpose, give its new key.",
    Failure.UNPINNED: "Give the host's public key, or allow an unknown one explicitly (accept-new).",
}


class RemoteError(HostError):
    """A connection that failed, and in which of the distinct ways."""

    def __init__(self, host: str, failure: Failure, last_seen: str) -> None:
        late = failure in (Failure.AUTHENTICATION, Failure.HOST_KEY, Failure.UNPINNED)
        super().__init__(host, "authenticated" if late else "reachable", last_seen, remedy=REMEDIES[failure])
        self.failure = failure


class HostKeyError(RemoteError):
    """Somebody else answers: the key offered is not the one expected. Both as SHA256 fingerprints."""

    def __init__(self, host: str, expected: str, offered: str) -> None:
        super().__init__(host, Failure.HOST_KEY, f"the host key is {offered}, expected {expected}")
        self.expected = expected
        self.offered = offered


@dataclass(frozen=True)
class Endpoint:
    """Where a host answers and by which keys it and we are known. ``host_key`` is ``ssh-ed25519 AAAA...``."""

    name: str
    address: str
    user: str
    private_key: str = field(repr=False)
    host_key: str | None = None
    port: int = 22
    accept_new: bool = False


class Ending(enum.Enum):
    """How a command ended."""

    EXITED = "exited"
    STOPPED = "stopped"  # the reader had what it wanted
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    LOST = "connection lost"


@dataclass(frozen=True)
class CommandResult:
    """``rc`` is None unless the command exited; ``stdout`` is a tail where a reader took the stream."""

    ending: Ending
    rc: int | None
    stdout: str
    stderr: str
    duration_s: float


class Connection(Protocol):
    """A host that let us in. ``host_key`` is the fingerprint it showed."""

    host_key: str

    def execute(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        on_stdout: Callable[[bytes], bool] | None = None,
        cancel: threading.Event | None = None,
    ) -> CommandResult:
        """Run a command line. ``on_stdout`` takes the output as it comes and returns true to stop. Never raises for
        what the host does: a lost connection is an ending."""
        ...

    def close(self) -> None: ...


class Remote(Protocol):
    """Two steps, so that hosts that do not answer cost nothing but a socket."""

    def knock(self, endpoint: Endpoint, timeout_s: float) -> socket.socket:
        """A TCP connection on which an SSH daemon has spoken. Raises RemoteError."""
        ...

    def login(self, endpoint: Endpoint, door: socket.socket, timeout_s: float) -> Connection:
        """Key exchange, host key, authentication. Raises RemoteError; takes over the socket in every case."""
        ...
