"""The embedded SSH server: who may come in, what passes through, and what is left when a session ends."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from profiles.errors import KilnError
from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.server import ServedHost, processes_of, serve

pytestmark = pytest.mark.system

ADDRESS = "127.0.0.1"
CLIENT, HOST = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))


@dataclass
class Served:
    host: SimulatedHost
    handle: ServedHost
    port: int

    def connect(self, **options: Any) -> Any:
        wanted: dict[str, Any] = {
            "username": "ubuntu",
            "client_keys": [CLIENT],
            "known_hosts": ([HOST.convert_to_public()], [], []),
            "config": None,
            "login_timeout": 10,
        }
        return asyncssh.connect(ADDRESS, self.port, **{**wanted, **options})

    async def settled(self, mode: str) -> None:
        """The server has followed the host's last fault."""
        for _ in range(200):
            if self.handle.mode == mode:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"still {self.handle.mode}, not {mode}")


Use = Callable[[Served], Coroutine[Any, Any, None]]


@pytest.fixture
def served(tmp_path: Path, closed_port: int) -> Callable[[Use], None]:
    """Run a coroutine against a served host; afterwards no process of the host is left."""

    @asynccontextmanager
    async def serving() -> AsyncIterator[Served]:
        host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "g5.xlarge")
        key, client = HOST.export_private_key().decode(), CLIENT.export_public_key().decode()
        handle = await serve(host, ADDRESS, closed_port, key, [client])
        try:
            yield Served(host, handle, closed_port)
        finally:
            await handle.close()
            assert processes_of(host) == []

    def run(use: Use) -> None:
        async def main() -> None:
            async with serving() as one:
                await use(one)

        asyncio.run(main())

    return run


def test_a_command_has_its_streams_and_status(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        async with one.connect() as connection:
            done = await connection.run("nvidia-smi -L; echo trouble >&2; exit 3")
            assert done.stdout.startswith("GPU 0: NVIDIA A10G")
            assert (done.stderr, done.exit_status) == ("trouble\n", 3)

    served(use)


def test_bytes_pass_unchanged_and_half_closed(served: Callable[[Use], None]) -> None:
    payload = bytes(range(256)) * 8000

    async def use(one: Served) -> None:
        async with one.connect() as connection:
            done = await connection.run("cat; sleep 0.2; printf end", input=payload, encoding=None)
            assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(payload + b"end").digest()

    served(use)


def test_a_session_has_the_hosts_environment_only(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        async with one.connect(env={"KILN_ROOT": "/"}) as connection:
            done = await connection.run("echo $PATH; echo [$KILN_ROOT]; id -u; command -v gcc || echo none")
            assert done.stdout.splitlines() == [str(one.host.folder / "bin"), "[]", "1000", "none"]

    served(use)


def test_root_is_root_and_ubuntu_is_not(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        for user, status in (("ubuntu", 1), ("root", 0)):
            async with one.connect(username=user) as connection:
                assert (await connection.run("dmesg")).exit_status == status

    served(use)


def test_only_the_authorised_key_opens(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        stranger = asyncssh.generate_private_key("ssh-ed25519")
        for options in ({"client_keys": [stranger]}, {"client_keys": None, "agent_path": None, "password": "x"}):
            with pytest.raises(asyncssh.PermissionDenied):
                async with one.connect(**options):
                    pass

    served(use)


def test_a_login_shell_is_refused_in_words(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        async with one.connect() as connection:
            done = await connection.run()
            assert (done.exit_status, "runs commands" in done.stderr) == (1, True)

    served(use)


def test_closing_the_channel_kills_the_commands_whole_group(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        async with one.connect() as connection:
            process = await connection.create_process("sleep 300 & sleep 300")
            await _until(lambda: len(processes_of(one.host)) == 3)
            process.close()
            await _until(lambda: not processes_of(one.host))

    served(use)


def test_closing_the_host_kills_what_left_its_group_and_ignores_signals(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        one.host.inject("nvidia-smi-hangs")
        async with one.connect() as connection:
            start = "import subprocess as s; s.Popen(['nvidia-smi'], start_new_session=True, stdin=s.DEVNULL)"
            await connection.run(f'python3 -c "{start}" >/dev/null 2>&1')
        await _until(lambda: len(processes_of(one.host)) == 1)
        await one.handle.close()
        assert processes_of(one.host) == []

    served(use)


def test_a_banner_comes_before_the_output(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        one.host.inject("noisy-shell")
        async with one.connect() as connection:
            text = (await connection.run("echo answer")).stdout
        assert text.startswith("====")
        assert text.endswith("\nanswer\n")

    served(use)


def test_a_host_can_refuse_stall_and_come_back(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        one.host.inject("ssh-refused")
        await one.settled("none")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(ADDRESS, one.port)
        one.host.clear()
        one.host.inject("ssh-slow")
        await one.settled("stalled")
        reader, writer = await asyncio.open_connection(ADDRESS, one.port)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.5)
        writer.close()
        one.host.clear()
        await one.settled("ssh")
        async with one.connect() as connection:
            assert (await connection.run("hostname")).stdout == "gpu-a\n"

    served(use)


def test_another_machine_at_the_address_has_another_key(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        one.host.inject("wrong-host-key")
        await one.settled("foreign")
        with pytest.raises(asyncssh.HostKeyNotVerifiable):
            async with one.connect():
                pass

    served(use)


def test_a_reboot_ends_connections_and_serves_again(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        async with one.connect() as connection:
            before = (await connection.run("cat root/proc/sys/kernel/random/boot_id")).stdout
            one.host.reboot()
            await asyncio.wait_for(connection.wait_closed(), 5)
        await one.handle.refresh()  # returns once the new boot listens
        async with one.connect() as connection:
            assert (await connection.run("cat root/proc/sys/kernel/random/boot_id")).stdout != before

    served(use)


def test_a_port_in_use_is_one_clear_message(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        key, client = HOST.export_private_key().decode(), CLIENT.export_public_key().decode()
        with pytest.raises(KilnError, match=rf"gpu-a: cannot listen on {ADDRESS}:{one.port}"):
            await serve(one.host, ADDRESS, one.port, key, [client])

    served(use)


def test_a_key_that_cannot_be_read_is_one_clear_message(served: Callable[[Use], None]) -> None:
    async def use(one: Served) -> None:
        with pytest.raises(KilnError, match="a key cannot be read"):
            await serve(one.host, ADDRESS, 1, "not a key", [])

    served(use)


def test_twenty_hosts_answer_at_once_from_one_loop(tmp_path: Path, closed_port: int) -> None:
    async def ask(number: int, port: int) -> str:
        host = SimulatedHost.create(tmp_path, f"h{number}", f"gpu-{number}", "p5.48xlarge")
        key, client = HOST.export_private_key().decode(), CLIENT.export_public_key().decode()
        one = Served(host, await serve(host, f"127.64.9.{number + 1}", port, key, [client]), port)
        try:
            options = {"username": "ubuntu", "client_keys": [CLIENT], "known_hosts": None, "config": None}
            async with asyncssh.connect(one.handle.address, port, **options) as connection:
                return str((await connection.run("hostname; nvidia-smi -L | wc -l")).stdout)
        finally:
            await one.handle.close()

    async def main() -> list[str]:
        return await asyncio.gather(*(ask(number, closed_port) for number in range(20)))

    assert asyncio.run(main()) == [f"gpu-{number}\n8\n" for number in range(20)]


async def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
