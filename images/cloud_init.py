"""What a host is told at its first boot."""

from __future__ import annotations

import yaml


def host_key_user_data(private_key: str, public_key: str) -> str:
    """cloud-config that gives a host its own SSH host key, and no other key to answer with.

    The private half stands in the user data of this host only, so that a host which answers with the public half is
    this host. Source: cloud-init, module cc_ssh (``ssh_deletekeys``, ``ssh_keys``), 2026.
    """
    config = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": private_key, "ed25519_public": public_key},
    }
    return "#cloud-config\n" + yaml.safe_dump(config, default_flow_style=False, width=10_000)
