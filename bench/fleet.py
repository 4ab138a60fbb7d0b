"""Simulated GPU hosts behind real ``sshd`` daemons: each has a loopback address, and its sessions their own PATH."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import sshd
from profiles.expectation import expect
from profiles.models import Expectation
from sandbox.hosts.host import SimulatedHost
from validation.target import Target


@dataclass(frozen=True)
class Fleet:
    """Hosts that answer, and how they are reached. ``hosts`` are those that run here: none where they are replayed."""

    hosts: tuple[SimulatedHost, ...]
    targets: tuple[Target, ...]
    access: sshd.Access


@contextlib.contextmanager
def running(folder: Path, count: int, instance_type: str, efa_count: int) -> Iterator[Fleet]:
    """A fleet of ``count`` healthy hosts below ``folder``, at most :data:`bench.sshd.ADDRESSES_MAX`."""
    folder.mkdir(mode=0o755)
    hosts = {
        sshd.LOOPBACK.format(number): SimulatedHost.create(
            folder, f"h{number}", f"h{number}", instance_type, efa_count=efa_count
        )
        for number in range(1, count + 1)
    }
    with sshd.listening(folder, {address: [_environment(host)] for address, host in hosts.items()}) as access:
        targets = tuple(
            target(
                host.identity.name,
                address,
                access,
                expect(instance_type, efa_count=efa_count, root=str(host.folder / "root")),
            )
            for address, host in hosts.items()
        )
        yield Fleet(tuple(hosts.values()), targets, access)


def target(name: str, address: str, access: sshd.Access, expectation: Expectation) -> Target:
    """A host of a bench as Kiln takes it."""
    return Target(
        name=name,
        address=address,
        user=getpass.getuser(),
        private_key=access.private_key,
        host_key=access.host_public,
        expectation=expectation,
        port=access.port,
    )


def _environment(host: SimulatedHost) -> str:
    pairs = " ".join(f'"{key}={value}"' for key, value in host.environment(getpass.getuser()).items())
    return f"SetEnv {pairs}"
