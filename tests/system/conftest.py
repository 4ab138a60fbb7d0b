"""Fixtures of the system tests: a real OpenSSH daemon, users to log in as, and a simulated host that answers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.server import serve

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
START_S = 10.0


@dataclass(frozen=True)
class KeyPair:
    """``private`` in OpenSSH format, ``public`` as one line."""

    private: str
    public: str


@dataclass(frozen=True)
class Sshd:
    """A running daemon: where it listens, its host key, the key it lets in, and its log."""

    port: int
    host_key: str
    private_key: str
    log: Path

    address: str = "127.0.0.1"


def new_key() -> KeyPair:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def key_pair() -> Callable[[], KeyPair]:
    """A new Ed25519 key pair at every call."""
    return new_key


@pytest.fixture
def closed_port() -> int:
    """A loopback port on which nothing listens."""
    return free_port()


@pytest.fixture
def start_sshd(tmp_path: Path) -> Iterator[Callable[..., Sshd]]:
    """Starts a daemon with the options given as configuration lines; all are stopped at the end."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> Sshd:
        folder = tmp_path / f"sshd-{len(running)}"
        folder.mkdir()
        host, user, port = new_key(), new_key(), free_port()
        key_file, log = folder / "host_key", folder / "log"
        key_file.write_text(host.private)
        key_file.chmod(0o600)
        (folder / "authorized_keys").write_text(user.public + "\n")
        folder.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges; made at boot otherwise
        lines = [
            *options,
            f"Port {port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {key_file}",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "PasswordAuthentication no",
            "PermitRootLogin yes",
            f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        ]
        (folder / "config").write_text("\n".join(lines) + "\n")
        # sshd runs the login shell in the user's home; the keys must be readable by that user.
        for parent in [folder, *folder.parents][:-2]:
            if parent.stat().st_uid == os.getuid() and "pytest" in str(parent):
                parent.chmod(0o755)
        with log.open("wb") as output:
            running.append(
                subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stdout=output, stderr=output)
            )
        _await(port, log)
        return Sshd(port, host.public, user.private, log)

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait(timeout=START_S)


def _await(port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"sshd does not listen: {log.read_text()}")


@pytest.fixture
def make_user() -> Iterator[Callable[..., str]]:
    """Creates an ordinary user, with sudo without a password if asked for; all are removed at the end. Needs root."""
    made: list[str] = []

    def make(*, sudo: bool, shell: str = "/bin/sh", secure_path: str = "") -> str:
        name = f"kiln-{uuid.uuid4().hex[:8]}"
        made.append(name)
        subprocess.run(["useradd", "-m", "-s", shell, "-p", "*", name], check=True, capture_output=True)
        if sudo:
            rule = Path("/etc/sudoers.d") / name
            path = f"Defaults:{name} secure_path={secure_path}\n" if secure_path else ""
            rule.write_text(f"{path}{name} ALL=(ALL) NOPASSWD: ALL\n")
            rule.chmod(0o440)
        return name

    yield make
    for name in made:
        (Path("/etc/sudoers.d") / name).unlink(missing_ok=True)
        _remove_user(name)


def _remove_user(name: str) -> None:
    """userdel refuses while a session of the user is still on its way out."""
    end = time.monotonic() + START_S
    while subprocess.run(["userdel", "-r", name], capture_output=True).returncode and time.monotonic() < end:
        time.sleep(0.05)
    gone = subprocess.run(["id", name], capture_output=True).returncode
    assert gone, f"user {name} could not be removed"


@dataclass
class Rack:
    """One simulated host that answers, and the inventory that names it."""

    host: SimulatedHost
    folder: Path
    inventory: Path

    def kiln(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kiln", *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)

    def validate(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.kiln("validate", "--hosts", str(self.inventory), "--deadline", "60", *words)

    def change(self, **values: Any) -> None:
        data = json.loads(self.inventory.read_text())
        data["hosts"][0] = {key: value for key, value in {**data["hosts"][0], **values}.items() if value is not None}
        self.inventory.write_text(json.dumps(data))


@pytest.fixture
def rack(tmp_path: Path, closed_port: int, key_pair: Callable[[], Any]) -> Iterator[Rack]:
    """A healthy host on a loopback port, served by an event loop of its own."""
    host = SimulatedHost.create(tmp_path / "hosts", "h1", "gpu-a", "g5.xlarge")
    own, client = key_pair(), key_pair()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    starting = serve(host, "127.0.0.1", closed_port, own.private, [client.public])
    handle = asyncio.run_coroutine_threadsafe(starting, loop).result(30)
    (tmp_path / "key").write_text(client.private)
    entry = {
        "name": "gpu-a",
        "address": "127.0.0.1",
        "port": closed_port,
        "user": "ubuntu",
        "privateKeyFile": "key",
        "hostKey": own.public,
        "instanceType": "g5.xlarge",
        "evidenceRoot": str(tmp_path / "hosts"),
    }
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(json.dumps({"hosts": [entry]}))  # JSON is YAML
    try:
        yield Rack(host, tmp_path, inventory)
    finally:
        asyncio.run_coroutine_threadsafe(handle.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
