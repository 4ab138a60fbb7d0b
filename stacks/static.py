"""Hosts that exist already, from the inventory in the stack's configuration."""

from __future__ import annotations

import pulumi

from stacks.gate import GateHost
from stacks.plan import Plan


def hosts(plan: Plan, private_key: pulumi.Input[str]) -> list[GateHost]:
    """The inventory as the gate takes it; user and port are the stack's where a host names none."""
    defaults = plan.settings
    return [
        GateHost(
            name=host.name,
            address=host.address,
            instance_type=host.instance_type,
            user=host.user or defaults.ssh_user,
            port=host.port or defaults.ssh_port,
            private_key=private_key,
            host_key=host.host_key,
            accept_new=host.accept_new,
            efa_count=host.efa_count,
        )
        for host in plan.inventory
    ]
