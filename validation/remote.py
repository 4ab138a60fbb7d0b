"""SSH: the only module that knows Fabric and Paramiko. The rest sees :mod:`validation.connection` and a fake.

Fabric installs ``AutoAddPolicy`` and loads no known hosts, so it would accept any key in silence. Here a client knows
exactly one key, that host's own, and refuses everything else; only ``accept_new`` takes an unknown key, and says so.
No agent, no key files, no SSH or Fabric configuration of the user: a host is judged in the same way from everywhere.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import io
import logging
import select
import socket
import threading
import time
from collections.abc import Callable

import fabric
import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from profiles.errors import ConfigError, HostError
from validation.connection import CommandResult, Connection, Ending, Endpoint, Failure, HostKeyError, RemoteError

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # every failure is raised, none needs the last resort

READ_SIZE = 2**18
READS_AT_ONCE = 16  # then the deadline and the cancel are looked at: a host may print faster than we read
STDERR_MAX = 2**16
STDOUT_MAX = 2**20
STDOUT_TAIL = 2**12
POLL_S = 0.2
IDLE_S = 1.0  # Paramiko looks 10 times a second whether it was closed: at 1,000 hosts a fifth of a core
CHANNEL_OPEN_S = 15.0
REFUSALS = (b"Exceeded MaxStartups", b"Not allowed at this time")
KEY_CLASSES: tuple[type[paramiko.PKey], ...] = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)


class FabricRemote:
    """The real thing."""

    def knock(self, endpoint: Endpoint, timeout_s: float) -> socket.socket:
        where = f"{endpoint.address}:{endpoint.port}"
        try:
            door = socket.create_connection((endpoint.address, endpoint.port), timeout=timeout_s)
        except OSError as error:
            raise RemoteError(endpoint.name, _network_failure(error), f"{where}: {_reason(error)}") from error
        try:
            door.settimeout(timeout_s)
            said = door.recv(256, socket.MSG_PEEK)
        except OSError as error:
            door.close()
            seen = f"{where}: connected, but no SSH banner: {_reason(error)}"
            failure = Failure.TIMED_OUT if isinstance(error, TimeoutError) else Failure.DROPPED
            raise RemoteError(endpoint.name, failure, seen) from error
        if not said or said.startswith(REFUSALS):
            door.close()
            text = said.decode("ascii", "replace").strip() or "closed before its SSH banner"
            raise RemoteError(endpoint.name, Failure.DROPPED, f"{where}: {text}")
        return door

    def login(self, endpoint: Endpoint, door: socket.socket, timeout_s: float) -> Connection:
        try:
            connection = self._connection(endpoint, door, timeout_s)
        except BaseException:
            door.close()
            raise
        try:
            connection.open()
        except Exception as error:  # Paramiko hands on whatever its parsing of the host's words raised
            connection.client.close()
            door.close()
            raise _login_error(endpoint, error) from error
        transport = connection.client.get_transport()
        assert transport is not None
        transport.sock.settimeout(IDLE_S)
        return FabricConnection(connection, fingerprint(transport.get_remote_server_key()))

    @staticmethod
    def _connection(endpoint: Endpoint, door: socket.socket, timeout_s: float) -> fabric.Connection:
        connection = fabric.Connection(
            endpoint.address,
            user=endpoint.user,
            port=endpoint.port,
            config=fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True),
            connect_kwargs={
                "sock": door,
                "pkey": read_private_key(endpoint.private_key, endpoint.name),
                "allow_agent": False,
                "look_for_keys": False,
                "timeout": timeout_s,
                "banner_timeout": timeout_s,
                "auth_timeout": timeout_s,
                "channel_timeout": CHANNEL_OPEN_S,
            },
        )
        connection.client.set_missing_host_key_policy(_Policy(endpoint))
        if endpoint.host_key:
            key = read_public_key(endpoint.host_key, endpoint.name)
            name = endpoint.address if endpoint.port == 22 else f"[{endpoint.address}]:{endpoint.port}"
            connection.client.get_host_keys().add(name, key.get_name(), key)
        return connection


class FabricConnection:
    """Commands on raw channels of Fabric's transport: ``run(in_stream=...)`` sleeps between characters."""

    def __init__(self, connection: fabric.Connection, host_key: str) -> None:
        self._connection = connection
        self.host_key = host_key

    def execute(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        on_stdout: Callable[[bytes], bool] | None = None,
        cancel: threading.Event | None = None,
    ) -> CommandResult:
        begun = time.monotonic()
        reader = _Reader(on_stdout)
        try:
            channel = self._connection.client.get_transport().open_session(timeout=min(timeout_s, CHANNEL_OPEN_S))
            with contextlib.closing(channel):
                channel.settimeout(timeout_s)
                channel.event = _Reply(min(timeout_s, CHANNEL_OPEN_S))
                channel.exec_command(command)
                if stdin:
                    channel.sendall(stdin)
                channel.shutdown_write()
                ending = reader.read(channel, begun + timeout_s, cancel)
                rc = channel.recv_exit_status() if ending is Ending.EXITED else None
        except (paramiko.SSHException, EOFError, OSError) as error:
            reader.stderr += f"\n{_reason(error)}".encode()
            ending, rc = Ending.LOST, None
        if rc == -1:  # Paramiko's word for a channel closed without an exit status
            ending, rc = Ending.LOST, None
        return CommandResult(ending, rc, _text(reader.stdout), _text(reader.stderr), time.monotonic() - begun)

    def close(self) -> None:
        self._connection.client.close()


class _Reply(threading.Event):
    """A channel's event with a limit of its own: Paramiko waits for the answer to a request without one."""

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self._limit_s = limit_s

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(self._limit_s if timeout is None else timeout):
            raise TimeoutError(f"no answer to the request to run a command within {self._limit_s:g} s")
        return True


class _Reader:
    """Reads both streams of a channel together, until it ends, the reader has enough, or time is up.

    Without ``on_stdout`` the first MiB is kept; with it, a tail for the last words.
    """

    def __init__(self, on_stdout: Callable[[bytes], bool] | None) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._on_stdout = on_stdout

    def read(self, channel: paramiko.Channel, deadline: float, cancel: threading.Event | None) -> Ending:
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        while True:
            over = channel.exit_status_ready() and (channel.eof_received or channel.closed)
            if self._drain(channel):
                return Ending.STOPPED
            if (over or channel.closed) and not (channel.recv_ready() or channel.recv_stderr_ready()):
                return Ending.EXITED
            if cancel is not None and cancel.is_set():
                return Ending.CANCELLED
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return Ending.TIMED_OUT
            if channel.eof_received:
                time.sleep(min(left_s, POLL_S / 10))  # nothing more to read, the exit status is on its way
            else:
                poll.poll(min(left_s, POLL_S) * 1000)

    def _drain(self, channel: paramiko.Channel) -> bool:
        for _ in range(READS_AT_ONCE):
            if channel.recv_stderr_ready():
                self.stderr += channel.recv_stderr(READ_SIZE)
                del self.stderr[:-STDERR_MAX]
            if not channel.recv_ready():
                break
            if self._take(channel.recv(READ_SIZE)):
                return True
        return False

    def _take(self, data: bytes) -> bool:
        """Keep what is to be kept; true where the reader has enough."""
        self.stdout += data
        if self._on_stdout is None:
            del self.stdout[STDOUT_MAX:]
            return False
        del self.stdout[:-STDOUT_TAIL]
        return self._on_stdout(data)


class _Policy(paramiko.MissingHostKeyPolicy):
    """Asked where the client knows no key of the host: accept only if that was asked for."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        if not self._endpoint.accept_new:
            raise RemoteError(
                self._endpoint.name,
                Failure.UNPINNED,
                f"it offers {fingerprint(key)}, and no host key was given to compare with",
            )


def fingerprint(key: paramiko.PKey) -> str:
    """``ssh-ed25519 SHA256:...``, as ``ssh-keygen -lf`` prints it."""
    return f"{key.get_name()} {key.fingerprint}"


def read_private_key(text: str, host: str) -> paramiko.PKey:
    """An Ed25519, ECDSA or RSA key from its text. Raises ConfigError, which tells nothing of the key."""
    for kind in KEY_CLASSES:
        with contextlib.suppress(Exception):
            return kind.from_private_key(io.StringIO(text))
    raise ConfigError(
        f"{host}: the private key cannot be read",
        remedy="Give an Ed25519, ECDSA or RSA key without passphrase, in OpenSSH or PEM format.",
    ) from None


def read_public_key(text: str, host: str) -> paramiko.PKey:
    """A host key from ``ssh-ed25519 AAAA... [comment]``. Raises ConfigError."""
    words = text.split()
    try:
        return paramiko.PKey.from_type_string(words[0], base64.b64decode(words[1], validate=True))
    except Exception as error:
        raise ConfigError(
            f"{host}: the host key cannot be read: {text[:40]!r}",
            remedy="Give the line of /etc/ssh/ssh_host_ed25519_key.pub.",
        ) from error


def _login_error(endpoint: Endpoint, error: Exception) -> HostError:
    if isinstance(error, HostError):
        return error
    if isinstance(error, paramiko.BadHostKeyException):
        return HostKeyError(endpoint.name, fingerprint(error.expected_key), fingerprint(error.key))
    if isinstance(error, paramiko.AuthenticationException):
        return RemoteError(endpoint.name, Failure.AUTHENTICATION, f"user {endpoint.user}: {_reason(error)}")
    if isinstance(error, IncompatiblePeer):
        failure = Failure.INCOMPATIBLE
    else:
        failure = Failure.TIMED_OUT if isinstance(error, TimeoutError) else Failure.DROPPED
    return RemoteError(endpoint.name, failure, f"{endpoint.address}:{endpoint.port}: {_reason(error)}")


def _network_failure(error: OSError) -> Failure:
    if isinstance(error, TimeoutError):
        return Failure.TIMED_OUT
    return Failure.REFUSED if error.errno == errno.ECONNREFUSED else Failure.UNREACHABLE


def _reason(error: Exception) -> str:
    """The error's own words on one line; its name where it has none."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def _text(data: bytearray) -> str:
    return data.decode("utf-8", "replace")
