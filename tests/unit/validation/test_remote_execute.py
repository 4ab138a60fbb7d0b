"""Commands on a host that answers late, never, or without end: Paramiko's own server at the other end of a pair."""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import paramiko
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

from validation.connection import Connection, Ending, Endpoint, Failure, RemoteError
from validation.remote import FabricRemote

logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def private_text() -> str:
    raw = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return raw.decode()


CLIENT, HOST = private_text(), private_text()


@dataclass
class Server(paramiko.ServerInterface):
    """Lets everyone in. ``mute`` never answers a request; ``endless`` prints for ever; else prints and exits with 0."""

    mute: bool = False
    endless: bool = False
    said: bytes = b""
    done: threading.Event = field(default_factory=threading.Event)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.mute:
            self.done.wait(10.0)
            return False
        threading.Thread(target=self._run, args=(channel,), daemon=True).start()
        return True

    def _run(self, channel: paramiko.Channel) -> None:
        with contextlib.suppress(OSError, EOFError):
            while self.endless and not self.done.is_set():
                channel.sendall(b"noise\n" * 5000)
            channel.sendall(self.said)
            channel.send_exit_status(0)
            channel.close()


@contextlib.contextmanager
def connected(server: Server, ciphers: tuple[str, ...] = ()) -> Iterator[Connection]:
    ours, theirs = socket.socketpair()
    transport = paramiko.Transport(theirs)
    if ciphers:
        vars(transport)["_preferred_ciphers"] = ciphers  # the public option takes only what Paramiko has
    transport.add_server_key(paramiko.Ed25519Key.from_private_key(io.StringIO(HOST)))
    transport.start_server(event=threading.Event(), server=server)
    try:
        connection = FabricRemote().login(Endpoint("node", "192.0.2.1", "root", CLIENT, accept_new=True), ours, 5.0)
        with contextlib.closing(connection):
            yield connection
    finally:
        server.done.set()
        transport.close()


def test_a_command_brings_its_output_and_its_exit_status() -> None:
    with connected(Server(said=b"x" * 300_000)) as connection:
        result = connection.execute("true", timeout_s=10.0)
    assert (result.ending, result.rc, len(result.stdout)) == (Ending.EXITED, 0, 300_000)


def test_a_host_that_never_answers_the_request_does_not_hold_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.remote.CHANNEL_OPEN_S", 0.5)
    begun = time.monotonic()
    with connected(Server(mute=True)) as connection:
        result = connection.execute("true", timeout_s=10.0)
    assert result.ending is Ending.LOST
    assert "no answer to the request to run a command within 0.5 s" in result.stderr
    assert time.monotonic() - begun < 5.0


def test_a_host_that_never_stops_printing_is_left_at_the_time_limit_and_fills_no_memory() -> None:
    begun = time.monotonic()
    with connected(Server(endless=True)) as connection:
        result = connection.execute("yes", timeout_s=0.5)
    assert result.ending is Ending.TIMED_OUT
    assert len(result.stdout) <= 2**20
    assert time.monotonic() - begun < 5.0


def test_a_host_that_never_stops_printing_is_left_on_a_cancel() -> None:
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    begun = time.monotonic()
    with connected(Server(endless=True)) as connection:
        result = connection.execute("yes", timeout_s=30.0, on_stdout=lambda _: False, cancel=cancel)
    assert result.ending is Ending.CANCELLED
    assert time.monotonic() - begun < 5.0


def test_a_daemon_without_an_algorithm_in_common_is_told_at_once() -> None:
    with pytest.raises(RemoteError) as caught, connected(Server(), ciphers=("rot13@example.com",)):
        pass
    assert caught.value.failure is Failure.INCOMPATIBLE
    assert "key exchange" in caught.value.remedy


def test_whatever_the_handshake_raises_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("point is not on curve")

    monkeypatch.setattr("paramiko.SSHClient.connect", broken)
    ours, theirs = socket.socketpair()
    with theirs, pytest.raises(RemoteError, match="point is not on curve"):
        FabricRemote().login(Endpoint("node", "192.0.2.1", "root", CLIENT, accept_new=True), ours, 5.0)
    assert ours.fileno() == -1
