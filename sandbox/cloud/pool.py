"""What the sandbox keeps: launched instances with their simulated hosts, and what moto has no room for.

All methods run on the daemon's event loop, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import asyncssh

from profiles.errors import ConfigError
from sandbox.cloud import addresses
from sandbox.cloud.faults import CloudFaults
from sandbox.hosts.faults import FAULTS
from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.server import serve


class Server(Protocol):
    """A running SSH server of one host at one address."""

    async def close(self) -> None: ...


@dataclass
class Instance:
    """One launched instance. ``record`` is what the plugin sent; ``host`` is None where no machine is described."""

    id: str
    record: dict[str, Any]
    address: str
    host_key: str
    host: SimulatedHost | None = None
    why_no_host: str = ""
    servers: dict[str, Server] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.record["name"])

    @property
    def faults(self) -> list[str]:
        return list(self.host.faults) if self.host is not None else []


class Pool:
    """Instances, elastic addresses and kept records of one sandbox."""

    def __init__(self, home: Path, ssh_port: int) -> None:
        self._home = home
        self._ssh_port = ssh_port
        self._instance_addresses = addresses.pool(addresses.INSTANCES)
        self._elastic_addresses = addresses.pool(addresses.ELASTIC)
        self.instances: dict[str, Instance] = {}
        self.elastic: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, dict[str, Any]] = {}
        self.pending: dict[str, list[str]] = {}
        self.cloud_faults = CloudFaults()

    async def add(self, instance_id: str, record: dict[str, Any]) -> Instance:
        """Start the host of a new instance, with the faults that were waiting for its name."""
        key = record.get("host_key") or asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
        instance = Instance(instance_id, record, next(self._instance_addresses), key)
        self.instances[instance_id] = instance
        try:
            await self._build(instance)
            for fault in self.pending.pop(instance.name, []):
                await self.inject(instance, fault)
        except BaseException:
            await self.remove(instance_id)
            raise
        return instance

    async def _build(self, instance: Instance) -> None:
        record = instance.record
        try:
            instance.host = await asyncio.to_thread(
                SimulatedHost.create,
                self._home,
                instance.id,
                instance.name,
                record["instance_type"],
                efa_count=record["efa_count"],
                instance_id=instance.id,
            )
        except ConfigError as error:
            instance.why_no_host = str(error)
            return
        await self._listen(instance, instance.address)

    async def _listen(self, instance: Instance, address: str) -> None:
        if instance.host is not None:
            instance.servers[address] = await serve(
                instance.host,
                address,
                self._ssh_port,
                instance.host_key,
                instance.record["authorized_keys"],
            )

    @staticmethod
    async def _silence(instance: Instance) -> list[str]:
        """Close every server of a host; the addresses at which it answered."""
        answered = list(instance.servers)
        for server in instance.servers.values():
            await server.close()
        instance.servers.clear()
        return answered

    async def remove(self, instance_id: str) -> None:
        """The instance and its host are gone afterwards; that they were gone before is no error."""
        instance = self.instances.pop(instance_id, None)
        if instance is None:
            return
        await self._silence(instance)
        for elastic in self.elastic.values():
            if elastic["instance_id"] == instance_id:
                elastic["instance_id"] = ""
        await asyncio.to_thread(shutil.rmtree, self._home / "hosts" / instance_id, ignore_errors=True)

    async def restart(self, instance: Instance, instance_type: str | None = None) -> None:
        """A new boot of the same instance; on other hardware where the type changes, and its faults stay behind."""
        if not instance_type or instance_type == instance.record["instance_type"]:
            if instance.host is not None:
                await asyncio.to_thread(instance.host.reboot)  # its servers follow by themselves
            return
        answered = await self._silence(instance)
        instance.record["instance_type"] = instance_type
        instance.host, instance.why_no_host = None, ""
        await asyncio.to_thread(shutil.rmtree, self._home / "hosts" / instance.id, ignore_errors=True)
        await self._build(instance)
        for address in answered:
            if address not in instance.servers:
                await self._listen(instance, address)

    def find(self, reference: str) -> Instance:
        """The instance with that id, else the newest one with that host name.

        Raises:
            ConfigError: there is none; the message lists those that exist.
        """
        if reference in self.instances:
            return self.instances[reference]
        named = [instance for instance in self.instances.values() if instance.name == reference]
        if not named:
            names = ", ".join(sorted({item.name for item in self.instances.values()})) or "none"
            raise ConfigError(f"unknown host '{reference}'; the sandbox has {names}")
        return named[-1]

    async def inject(self, instance: Instance, fault: str) -> None:
        """Put a fault into a host.

        Raises:
            ConfigError: there is no such fault, or the instance has no simulated host.
        """
        check_fault(fault)
        if instance.host is None:
            raise ConfigError(f"{instance.name} has no simulated host: {instance.why_no_host}")
        await asyncio.to_thread(instance.host.inject, fault)

    async def clear(self, instance: Instance) -> None:
        """Take every fault out of a host."""
        if instance.host is not None:
            await asyncio.to_thread(instance.host.clear)

    def allocate(self, allocation: str, region: str) -> dict[str, Any]:
        """A loopback address for an elastic address."""
        self.elastic[allocation] = {"address": next(self._elastic_addresses), "instance_id": "", "region": region}
        return self.elastic[allocation]

    async def associate(self, allocation: str, instance_id: str) -> None:
        """Let the host of ``instance_id`` answer at the elastic address as well; "" lets nobody answer there."""
        elastic = self.elastic.get(allocation)
        if elastic is None:
            return
        before = self.instances.get(elastic["instance_id"])
        if before is not None and elastic["address"] in before.servers:
            await before.servers.pop(elastic["address"]).close()
        elastic["instance_id"] = instance_id
        after = self.instances.get(instance_id)
        if after is not None:
            await self._listen(after, elastic["address"])

    def describe(self, instance: Instance) -> dict[str, Any]:
        """The instance as the control API shows it: no key material."""
        record = {key: value for key, value in instance.record.items() if key not in ("host_key", "authorized_keys")}
        elastic = [item["address"] for item in self.elastic.values() if item["instance_id"] == instance.id]
        public = elastic[0] if elastic else instance.address if record["public"] else ""
        return {
            **record,
            "id": instance.id,
            "address": instance.address,
            "public_address": public,
            "ssh_port": self._ssh_port,
            "faults": instance.faults,
            "simulated": instance.host is not None,
            "why_no_host": instance.why_no_host,
        }

    async def close(self) -> None:
        """Stop every host."""
        for instance_id in list(self.instances):
            await self.remove(instance_id)


def check_fault(name: str) -> None:
    """Let a known host fault pass.

    Raises:
        ConfigError: there is no such fault; the message lists those that exist.
    """
    if name not in FAULTS:
        raise ConfigError(f"unknown fault '{name}'; the sandbox has {', '.join(sorted(FAULTS))}")
