"""The SSH server of a simulated host: public keys only, commands only, each in a process group of its own.

All hosts of a sandbox live in one event loop. Streams are passed on byte for byte, each direction closed on its own, so
that a client may send a program, close its side, and still read the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import asyncssh

from profiles.errors import KilnError
from sandbox.hosts.host import SimulatedHost

CHUNK = 65536
STALL_S = 600  # how long a connection to a stalled host is held open
CLOSE_S = 5.0  # how long closing waits for sessions to end


class _Gatekeeper(asyncssh.SSHServer):
    """Who may come in: any user name, with one of the host's authorised keys."""

    def __init__(self, handle: ServedHost) -> None:
        self._handle = handle
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._handle.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the library's signature
        if self._connection:
            self._handle.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - the library's signature
        return True

    def password_auth_supported(self) -> bool:
        return False

    def kbdint_auth_supported(self) -> bool:
        return False

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002 - as above
        return key.public_data in self._handle.authorised


class ServedHost:
    """A host that is being served. It follows the host's faults: no listener, a silent one, another key."""

    def __init__(
        self, host: SimulatedHost, address: str, port: int, key: asyncssh.SSHKey, authorised: Iterable[asyncssh.SSHKey]
    ) -> None:
        self.host = host
        self.address = address
        self.port = port
        self.authorised = {item.public_data for item in authorised}
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self._key = key
        self._foreign_key = asyncssh.generate_private_key("ssh-ed25519")
        self._loop = asyncio.get_running_loop()
        self._listener: asyncssh.SSHAcceptor | asyncio.Server | None = None
        self.mode = ""  # what is listening: "none", "stalled", "ssh", "foreign"
        self._boot_id = host.identity.boot_id
        self._groups: set[int] = set()
        self._used = False
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe = host.subscribe(self._changed)

    def _changed(self) -> None:
        """Called after every change of the host, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is served any more
            self._loop.call_soon_threadsafe(self._follow)

    def _follow(self) -> None:
        task = self._loop.create_task(self.refresh())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def refresh(self) -> None:
        """Listen as the host's state says. A reboot ends every connection; so does sshd falling silent."""
        async with self._lock:
            access = self.host.state.access
            mode = "none" if not access.listening else "stalled" if access.stalled else "ssh"
            mode = "foreign" if mode == "ssh" and access.foreign_key else mode
            rebooted = self.host.identity.boot_id != self._boot_id
            if mode == self.mode and not rebooted:
                return
            self._boot_id = self.host.identity.boot_id
            await self._stop_listening()
            self._drop()
            if mode == "stalled":
                self._listener = await asyncio.start_server(_stall, self.address, self.port)
            elif mode != "none":
                self._listener = await self._listen(self._foreign_key if mode == "foreign" else self._key)
            self.mode = mode  # last: who waits for it may connect

    async def _listen(self, key: asyncssh.SSHKey) -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: _Gatekeeper(self),
            self.address,
            self.port,
            server_host_keys=[key],
            process_factory=self._session,
            encoding=None,
            line_editor=False,
            reuse_address=True,
            server_version="OpenSSH_8.9p1",
            login_timeout=30,
        )

    async def _stop_listening(self) -> None:
        if self._listener:
            self._listener.close()
            if isinstance(self._listener, asyncssh.SSHAcceptor):
                await self._listener.wait_closed()
            self._listener = None

    def _drop(self) -> None:
        """End every connection and every process that one has left, as a machine that goes down does."""
        for connection in list(self.connections):
            connection.abort()
        for group in list(self._groups):
            _kill(group)
        if self._used:
            for process in processes_of(self.host):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)

    async def close(self) -> None:
        """Stop listening, end every connection and every process that a session has started."""
        self._unsubscribe()
        async with self._lock:
            await self._stop_listening()
            self._drop()
        deadline = self._loop.time() + CLOSE_S
        while self._groups and self._loop.time() < deadline:
            await asyncio.sleep(0.02)

    async def _session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """One command: ``/bin/sh -c COMMAND`` with the host's PATH. A login without one gets a line and its exit."""
        banner = self.host.state.access.banner
        if banner:
            process.stdout.write(banner.encode())
        if process.command is None or process.subsystem:
            process.stderr.write(b"This is a simulated host: it runs commands, not login shells.\n")
            process.exit(1)
            return
        user = str(process.get_extra_info("username"))
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            process.command,
            cwd=self.host.folder,
            env=self.host.environment(user),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._groups.add(child.pid)
        self._used = True
        try:
            await self._attend(process, child)
        finally:
            _kill(child.pid)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(child.wait(), CLOSE_S)
            self._groups.discard(child.pid)

    async def _attend(self, process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
        """Pass streams on until the command has ended and said everything, or the channel is gone."""
        assert child.stdin is not None
        feed = asyncio.create_task(_feed(process.stdin, child.stdin))
        ended = asyncio.create_task(_relay(child, process))
        gone = asyncio.create_task(process.wait_closed())
        try:
            await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and not ended.exception():
                code = child.returncode or 0
                process.exit(code if code >= 0 else 128 - code)
        finally:
            for task in (feed, ended, gone):
                task.cancel()
            await asyncio.gather(feed, ended, gone, return_exceptions=True)


async def _feed(source: asyncssh.SSHReader[bytes], sink: asyncio.StreamWriter) -> None:
    """From the client to the command, then the end of its input."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, asyncssh.Error):
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        sink.close()


async def _relay(child: asyncio.subprocess.Process, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Everything the command says, until it has ended."""
    assert child.stdout is not None
    assert child.stderr is not None
    await asyncio.gather(_pass_on(child.stdout, process.stdout), _pass_on(child.stderr, process.stderr), child.wait())


async def _pass_on(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, asyncssh.Error):
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()


async def _stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing for as long as anybody waits."""
    with contextlib.suppress(asyncio.TimeoutError, ConnectionResetError):
        await asyncio.wait_for(reader.read(), STALL_S)
    writer.close()


def processes_of(host: SimulatedHost) -> list[int]:
    """Processes that were started on the host, told by their environment: a probe's tools leave its process group."""
    mark = f"PATH={host.folder / 'bin'}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # gone meanwhile, or another user's
            continue
        if any(item == mark or item.startswith(mark + b":") for item in environment.split(b"\0")):
            found.append(int(entry.name))
    return found


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


async def serve(
    host: SimulatedHost, address: str, port: int, host_private_key: str, authorized_keys: list[str]
) -> ServedHost:
    """Serve a host on ``address:port`` until the returned handle is closed.

    Args:
        host_private_key: the host's key, OpenSSH or PEM text.
        authorized_keys: public keys, one OpenSSH line each.

    Raises:
        KilnError: a key cannot be read, or the address cannot be bound.
    """
    try:
        key = asyncssh.import_private_key(host_private_key)
        authorised = [asyncssh.import_public_key(line) for line in authorized_keys]
    except (asyncssh.KeyImportError, ValueError) as error:
        raise KilnError(f"{host.identity.name}: a key cannot be read: {error}") from error
    served = ServedHost(host, address, port, key, authorised)
    try:
        await served.refresh()
    except OSError as error:
        raise KilnError(
            f"{host.identity.name}: cannot listen on {address}:{port}: {error}",
            remedy="end what uses the port, or start the sandbox with another SSH port",
        ) from error
    return served
