"""What a host is told at its first boot: its own host key, so that whoever answers with it is this host."""

from __future__ import annotations

import pulumi

from images.cloud_init import host_key_user_data
from stacks.gate import SshKey


def user_data(host_key: SshKey) -> pulumi.Output[str]:
    """User data of one host; secret, since it carries the private half of that host's key."""
    return pulumi.Output.all(host_key.private_key, host_key.public_key).apply(
        lambda halves: host_key_user_data(halves[0], halves[1])
    )
