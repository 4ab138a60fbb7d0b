"""Simulated GPU hosts behind real ``sshd`` daemons: each has a loopback address, and its sessions their own PATH."""

from __future__ import annotations

import contextlib
import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from profiles.errors import KilnError
from profiles.expectation import expect
from sandbox.hosts.host import SimulatedHost
from validation.target import Target

START_S = 10.0
STOP_S = 5.0
LOOPBACK = "127.65.0.{}"  # not where the sandbox puts its hosts
LISTEN_MAX = 16  # addresses of one sshd: MAX_LISTEN_SOCKS of its source


@dataclass(frozen=True)
class Fleet:
    """Running hosts. ``key_file`` lets the current user in; ``known_hosts`` names the daemon's key for every host."""

    hosts: tuple[SimulatedHost, ...]
    targets: tuple[Target, ...]
    key_file: Path
    known_hosts: Path


def _sshd() -> str:
    found = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if not found:
        raise KilnError("no sshd on this machine", remedy="apt-get install openssh-server")
    return found


def _key(path: Path) -> str:
    """Write a new private key; its public half as one line."""
    key = Ed25519PrivateKey.generate()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    )
    path.chmod(0o600)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return public.decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK.format(1), 0))
        port: int = probe.getsockname()[1]
        return port


def _config(folder: Path, port: int, hosts: list[tuple[str, SimulatedHost]], user: str) -> str:
    lines = [
        f"Port {port}",
        *(f"ListenAddress {address}" for address, _ in hosts),
        f"HostKey {folder / 'host_key'}",
        f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        "PidFile none",
        "UsePAM no",
        "StrictModes no",
        "PasswordAuthentication no",
        "PermitRootLogin yes",
        "LogLevel ERROR",
        "MaxStartups 1000",  # neither side is to be measured by how it retries
    ]
    for address, host in hosts:
        pairs = " ".join(f'"{key}={value}"' for key, value in host.environment(user).items())
        lines += [f"Match LocalAddress {address}", f"SetEnv {pairs}"]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def running(folder: Path, count: int, instance_type: str, efa_count: int) -> Iterator[Fleet]:
    """A fleet of ``count`` healthy hosts below ``folder``; the daemons are stopped at the end, whatever happens."""
    user, port = getpass.getuser(), _free_port()
    host_public, user_public = _key(folder / "host_key"), _key(folder / "user_key")
    (folder / "authorized_keys").write_text(user_public + "\n")
    hosts = [
        (LOOPBACK.format(number), SimulatedHost.create(folder, f"h{number}", f"h{number}", instance_type,
                                                       efa_count=efa_count))
        for number in range(1, count + 1)
    ]  # fmt: skip
    known = "".join(f"[{address}]:{port} {host_public}\n" for address, _ in hosts)
    (folder / "known_hosts").write_text(known)
    with contextlib.suppress(OSError):
        Path("/run/sshd").mkdir(exist_ok=True)  # where root's sshd separates its privileges; made at boot otherwise
    with contextlib.ExitStack() as daemons:
        for start in range(0, count, LISTEN_MAX):
            daemons.enter_context(_daemon(folder, port, hosts[start : start + LISTEN_MAX], user))
        private = (folder / "user_key").read_text()
        targets = tuple(
            Target(
                name=host.identity.name,
                address=address,
                user=user,
                private_key=private,
                host_key=host_public,
                expectation=expect(instance_type, efa_count=efa_count, root=str(host.folder / "root")),
                port=port,
            )
            for address, host in hosts
        )
        yield Fleet(tuple(host for _, host in hosts), targets, folder / "user_key", folder / "known_hosts")


@contextlib.contextmanager
def _daemon(folder: Path, port: int, hosts: list[tuple[str, SimulatedHost]], user: str) -> Iterator[None]:
    """One sshd for these hosts, listening; it is stopped at the end."""
    first, last = hosts[0][0], hosts[-1][0]
    config, log = folder / f"config-{first}", folder / f"log-{first}"
    config.write_text(_config(folder, port, hosts, user))
    with log.open("wb") as output:
        daemon = subprocess.Popen([_sshd(), "-D", "-e", "-f", str(config)], stdout=output, stderr=output)
    try:
        _await(daemon, last, port, log)
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(STOP_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _await(daemon: subprocess.Popen[bytes], address: str, port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and daemon.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((address, port)) == 0:
                return
        time.sleep(0.02)
    raise KilnError(f"sshd does not listen on {address}:{port}: {log.read_text().strip() or 'it said nothing'}")
