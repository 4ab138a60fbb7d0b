"""Real ``sshd`` daemons on loopback addresses, for hosts that run here and for hosts whose evidence is replayed."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from profiles.errors import KilnError

START_S = 10.0
STOP_S = 5.0
LOOPBACK = "127.65.0.{}"  # not where the sandbox puts its hosts
ADDRESSES_MAX = 250
LISTEN_MAX = 16  # addresses of one sshd: MAX_LISTEN_SOCKS of its source


@dataclass(frozen=True)
class Access:
    """How the daemons of one folder are reached. ``known_hosts`` names their one key for every address."""

    port: int
    host_public: str
    key_file: Path
    known_hosts: Path

    @property
    def private_key(self) -> str:
        return self.key_file.read_text(encoding="utf-8")


@contextlib.contextmanager
def listening(folder: Path, lines: Mapping[str, Sequence[str]]) -> Iterator[Access]:
    """Daemons that listen on each address, with the configuration ``lines`` for it; stopped whatever happens."""
    addresses = list(lines)
    port = _free_port()
    host_public, user_public = _key(folder / "host_key"), _key(folder / "user_key")
    (folder / "authorized_keys").write_text(user_public + "\n")
    known = "".join(f"[{address}]:{port} {host_public}\n" for address in addresses)
    (folder / "known_hosts").write_text(known)
    with contextlib.suppress(OSError):
        Path("/run/sshd").mkdir(exist_ok=True)  # where root's sshd separates its privileges; made at boot otherwise
    with contextlib.ExitStack() as daemons:
        for start in range(0, len(addresses), LISTEN_MAX):
            some = addresses[start : start + LISTEN_MAX]
            daemons.enter_context(_daemon(folder, port, {address: lines[address] for address in some}))
        yield Access(port, host_public, folder / "user_key", folder / "known_hosts")


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


def _config(folder: Path, port: int, lines: Mapping[str, Sequence[str]]) -> str:
    config = [
        f"Port {port}",
        *(f"ListenAddress {address}" for address in lines),
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
    for address, own in lines.items():
        config += [f"Match LocalAddress {address}", *own]
    return "\n".join(config) + "\n"


@contextlib.contextmanager
def _daemon(folder: Path, port: int, lines: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """One sshd, listening; it is stopped at the end."""
    first, *_, last = [*lines, *lines]
    config, log = folder / f"config-{first}", folder / f"log-{first}"
    config.write_text(_config(folder, port, lines))
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


def _sshd() -> str:
    found = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if not found:
        raise KilnError("no sshd on this machine", remedy="apt-get install openssh-server")
    return found


def _await(daemon: subprocess.Popen[bytes], address: str, port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and daemon.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((address, port)) == 0:
                return
        time.sleep(0.02)
    raise KilnError(f"sshd does not listen on {address}:{port}: {log.read_text().strip() or 'it said nothing'}")
