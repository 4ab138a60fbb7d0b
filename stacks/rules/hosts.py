"""Rules about how many hosts of which type, where, and with which software."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profiles import catalog
from stacks.rules.base import Asked, Finding, found
from stacks.settings import InventoryHost

MOST_HOSTS = 16_379  # addresses of the stack's subnet, a /18 without the five that AWS keeps
_HOST_KEY = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?", re.ASCII)
_VERSION = re.compile(r"\d+(\.\d+)*", re.ASCII)


def instance_type_known(asked: Asked) -> Iterator[Finding]:
    """The catalogue has the type, or nothing about the hosts could be judged."""
    name = asked.settings.instance_type
    if asked.settings.provider == "static" or asked.profile is not None:
        return
    yield found("instance_type.known", "instanceType", name, "a type of the catalogue", catalog.hint(name))


def instance_type_provider(asked: Asked) -> Iterator[Finding]:
    """The type is one of the cloud's own; another cloud's would fail at its creation, after everything else."""
    settings, profile = asked.settings, asked.profile
    if settings.provider != "static" and profile is not None and profile.provider != settings.provider:
        fix = f"It is a type of {profile.provider}; hosts that exist already are kiln:provider static."
        yield found(
            "instance_type.provider", "instanceType", settings.instance_type, f"a type of {settings.provider}", fix
        )


def count_positive(asked: Asked) -> Iterator[Finding]:
    """A stack without hosts has nothing to judge and could never be healthy."""
    if asked.settings.provider != "static" and asked.settings.count < 1:
        yield found(
            "count.positive", "count", asked.settings.count, "1 or more", "To remove all hosts: pulumi destroy."
        )


def count_maximum(asked: Asked) -> Iterator[Finding]:
    """Every host needs an address."""
    if asked.settings.provider != "static" and asked.settings.count > MOST_HOSTS:
        fix = "The stack's subnet has no address for more."
        yield found("count.maximum", "count", asked.settings.count, f"at most {MOST_HOSTS}", fix)


def zone_in_region(asked: Asked) -> Iterator[Finding]:
    """A zone's name begins with its region's."""
    settings = asked.settings
    if settings.provider == "aws" and (
        not settings.zone.startswith(settings.region) or settings.zone == settings.region
    ):
        yield found(
            "zone.in_region", "zone", settings.zone, f"a zone of {settings.region}", f"For example {settings.region}a."
        )


def software_known(asked: Asked) -> Iterator[Finding]:
    """The software profile exists."""
    name = asked.settings.software_profile
    names = catalog.software_names()
    if name not in names:
        yield found(
            "software.known", "softwareProfile", name, f"one of {', '.join(names)}", "They are in profiles/software."
        )


def versions_numbered(asked: Asked) -> Iterator[Finding]:
    """A pin that no host could ever meet is a misspelling."""
    for path, value, example in (("driver", asked.settings.driver, "580"), ("cuda", asked.settings.cuda, "12.8")):
        if value and not _VERSION.fullmatch(value):
            yield found("versions.numbered", path, value, "numbers with dots, or nothing", f"For example {example}.")


def ttl_positive(asked: Asked) -> Iterator[Finding]:
    """A stack that is expired from the start would be torn down at once."""
    if asked.settings.ttl_hours < 1:
        yield found("ttl.positive", "ttlHours", asked.settings.ttl_hours, "1 or more", "Give the hours it may live.")


def deadline_positive(asked: Asked) -> Iterator[Finding]:
    """Hosts need time to boot."""
    if asked.settings.deadline_seconds < 1:
        yield found(
            "deadline.positive",
            "deadlineSeconds",
            asked.settings.deadline_seconds,
            "1 or more",
            "900 suits most types.",
        )


def evidence_root_absolute(asked: Asked) -> Iterator[Finding]:
    """The root is a directory of the host, so an absolute path."""
    if not asked.settings.evidence_root.startswith("/"):
        yield found(
            "evidence_root.absolute",
            "evidenceRoot",
            asked.settings.evidence_root,
            "an absolute path",
            "/ for a real host.",
        )


def bad_units_absolute(asked: Asked) -> Iterator[Finding]:
    """The provider runs in a folder of its own, so a relative path would name another file than the user means."""
    path = asked.settings.bad_units
    if path and path != "none" and not path.startswith(("/", "~/")):
        fix = "Empty keeps it beside a file:// state, else in the user's own."
        yield found("bad_units.absolute", "badUnits", path, "a path from / or ~/, or none", fix)


def tags_named(asked: Asked) -> Iterator[Finding]:
    """Every resource can be traced to somebody."""
    for path, value in (("owner", asked.settings.owner), ("project", asked.settings.project)):
        if not value.strip() or len(value) > 256 or not value.isprintable():
            yield found("tags.named", path, value[:80], "1 to 256 printable characters", f"Set kiln:{path}.")


def inventory_present(asked: Asked) -> Iterator[Finding]:
    """A static stack says which hosts it has; no other stack does."""
    hosts = asked.settings.inventory
    if asked.settings.provider == "static" and not hosts:
        yield found(
            "inventory.present",
            "inventory",
            "no hosts",
            "at least one host",
            "pulumi config set --path 'kiln:inventory[0].name' node-0, and address, instanceType, hostKey likewise.",
        )
    if asked.settings.provider != "static" and hosts:
        yield found(
            "inventory.present",
            "inventory",
            f"{len(hosts)} hosts",
            "none",
            "Only kiln:provider static uses an inventory.",
        )


def inventory_key(asked: Asked) -> Iterator[Finding]:
    """A static host has no key pair of ours: the private key comes from the configuration."""
    if asked.settings.provider == "static" and not asked.settings.ssh_private_key.strip():
        yield found(
            "inventory.key",
            "sshPrivateKey",
            "nothing",
            "a private SSH key",
            "pulumi config set --secret kiln:sshPrivateKey < ~/.ssh/id_ed25519",
        )


def inventory_hosts(asked: Asked) -> Iterator[Finding]:
    """Each host of an inventory: own name, known type, a key or the opt-in, a port there is, EFAs it can carry."""
    if asked.settings.provider != "static":
        return
    names: set[str] = set()
    for index, host in enumerate(asked.settings.inventory):
        yield from _inventory_host(f"inventory[{index}]", host, names)
        names.add(host.name)


def _inventory_host(path: str, host: InventoryHost, names: set[str]) -> Iterator[Finding]:
    if not host.name.strip() or "/" in host.name:
        yield found("inventory.name", f"{path}.name", host.name, "a name without '/'", "It names the host in findings.")
    elif host.name in names:
        yield found("inventory.name", f"{path}.name", host.name, "a name of its own", "Another host has this name.")
    if not host.address.strip():
        yield found("inventory.address", f"{path}.address", host.address, "an address", "An IP address or a host name.")
    if host.host_key is None and not host.accept_new:
        yield found(
            "inventory.host_key",
            f"{path}.hostKey",
            "nothing",
            "the host's public key",
            "Paste /etc/ssh/ssh_host_ed25519_key.pub, or opt in to any key with acceptNew: true.",
        )
    elif host.host_key is not None and not _HOST_KEY.fullmatch(host.host_key):
        fix = "It begins with ssh-ed25519, ssh-rsa or ecdsa-sha2-nistp256."
        yield found("inventory.host_key", f"{path}.hostKey", host.host_key[:60], "a public key as sshd writes it", fix)
    if host.port is not None and not 1 <= host.port <= 65535:
        yield found("ssh.port", f"{path}.port", host.port, "1 to 65535", "SSH is 22 by default.")
    profile = catalog.load(host.instance_type)
    if profile is None:
        fix = catalog.hint(host.instance_type)
        yield found("instance_type.known", f"{path}.instanceType", host.instance_type, "a type of the catalogue", fix)
    elif not 0 <= host.efa_count <= profile.network.efa_max.value:
        limit = profile.network.efa_max.value
        yield found(
            "efa.maximum", f"{path}.efaCount", host.efa_count, f"0 to {limit}", f"{host.instance_type} has {limit}."
        )
