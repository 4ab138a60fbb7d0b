"""Rules about EFA and about who reaches the hosts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from stacks.rules.base import Asked, Finding, found

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}\$?", re.ASCII)  # useradd's names, and those of directories


def efa_supported(asked: Asked) -> Iterator[Finding]:
    """EFA only where the type has it."""
    settings = asked.settings
    if settings.provider != "aws" or asked.profile is None or settings.efa_count < 1:
        return
    if asked.profile.network.efa_max.value == 0:
        yield found(
            "efa.supported", "efaCount", settings.efa_count, f"0: {settings.instance_type} has no EFA", "Set it to 0."
        )


def efa_maximum(asked: Asked) -> Iterator[Finding]:
    """Not more EFA interfaces than the type carries, nor fewer than none."""
    settings = asked.settings
    if settings.provider != "aws":
        return
    most = asked.profile.network.efa_max.value if asked.profile is not None else None
    if settings.efa_count < 0:
        yield found("efa.maximum", "efaCount", settings.efa_count, "0 or more", "Set it to 0 for none.")
    elif most and settings.efa_count > most:
        yield found(
            "efa.maximum", "efaCount", settings.efa_count, f"0 to {most}", f"{settings.instance_type} carries {most}."
        )


def ssh_port(asked: Asked) -> Iterator[Finding]:
    """A port there is."""
    if not 1 <= asked.settings.ssh_port <= 65535:
        yield found("ssh.port", "sshPort", asked.settings.ssh_port, "1 to 65535", "SSH is 22 by default.")


def ssh_user(asked: Asked) -> Iterator[Finding]:
    """Somebody to log in as, by a name that a host can have."""
    if not _USER.fullmatch(asked.settings.ssh_user):
        yield found("ssh.user", "sshUser", asked.settings.ssh_user, "a user name", "Ubuntu images have 'ubuntu'.")


def ssh_from(asked: Asked) -> Iterator[Finding]:
    """The block that may reach SSH is a block, is named where the hosts have public addresses, and is not the world."""
    settings = asked.settings
    if settings.provider != "aws":
        return
    if not settings.ssh_from:
        if settings.ssh_address == "public":
            yield found(
                "ssh.from",
                "sshFrom",
                settings.ssh_from,
                "a CIDR block, with sshAddress public",
                "Your own address and /32.",
            )
        return
    try:
        block = ipaddress.ip_network(settings.ssh_from)
    except ValueError:
        yield found("ssh.from", "sshFrom", settings.ssh_from, "a CIDR block", "For example 192.0.2.7/32.")
        return
    if block.prefixlen == 0:
        yield found("ssh.from", "sshFrom", settings.ssh_from, "less than the whole world", "Your own address and /32.")
