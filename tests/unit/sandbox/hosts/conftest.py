"""Hosts as states and as rendered evidence, without a directory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.hosts.description import machine
from sandbox.hosts.faults import fault
from sandbox.hosts.state import Host, Identity, healthy

HostMaker = Callable[..., Host]


@pytest.fixture
def make_host() -> HostMaker:
    """A host of a type, with every EFA interface the type has unless told otherwise, and faults."""

    def make(instance_type: str, *faults: str, efa_count: int | None = None) -> Host:
        efa = machine(instance_type).efa
        count = len(efa.addresses) if efa and efa_count is None else efa_count or 0
        host = healthy(Identity("h1", "gpu-a", instance_type, "i-0123456789abcdef0", "b00710d0", count))
        for name in faults:
            fault(name).apply(host)
        return host

    return make
