"""Who the host says it is: /etc/os-release, ``uname -srm``, the boot id, and the instance id of DMI or cloud-init."""

from __future__ import annotations

import re

from profiles.errors import ParseError
from validation.facts.host import HostInfo
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import clean, lines

_UUID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_TYPE = re.compile(r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$")
_INSTANCE = re.compile(r"^i-[0-9a-z]+$")


def parse(hostname: str, root: str, *, os_release: str, kernel: str, boot_id: str, instance: str | None) -> HostInfo:
    """The host from its four texts; ``instance`` is None where the machine tells no id."""
    names = _pairs(os_release)
    if "ID" not in names:
        raise ParseError("os-release", 0, "no ID")
    uname = clean(kernel).split()
    if len(uname) != 3:
        raise ParseError("uname -srm", 1, f"{kernel.strip()!r} is not system, release and machine")
    boot = clean(boot_id).strip().lower()
    if not _UUID.match(boot):
        raise ParseError("boot id", 1, f"{boot!r} is not a UUID")
    return HostInfo(
        hostname=hostname,
        os_id=names["ID"],
        os_version=names.get("VERSION_ID", ""),
        kernel=uname[1],
        architecture=uname[2],
        boot_id=boot,
        instance_id=ABSENT if instance is None else instance_id(instance),
        instance_type=ABSENT if instance is None else instance_type(instance),
        image=ABSENT if instance is None else _values(instance).get("image") or ABSENT,
        root=root,
    )


def instance_type(text: str) -> str | Missing:
    """DMI's product name where it is the type: on AWS Nitro. Xen and other clouds write no type there."""
    values = _values(text)
    name = values.get("product_name", "")
    return name if values.get("sys_vendor") == "Amazon EC2" and _TYPE.match(name) else ABSENT


def _values(text: str) -> dict[str, str]:
    values = {}
    for line in lines(text):
        key, colon, value = line.partition(":")
        if colon:
            values[key.strip()] = value.strip()
    return values


def instance_id(text: str) -> str | Missing:
    """The instance id: DMI's asset tag where it is one (AWS Nitro), else cloud-init's; ABSENT where neither is."""
    values = _values(text)
    for key in ("board_asset_tag", "cloud_init_instance_id"):
        if _INSTANCE.match(values.get(key, "")):
            return values[key]
    return values.get("cloud_init_instance_id") or ABSENT


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key, equals, value = stripped.partition("=")
        if not equals:
            raise ParseError("os-release", number, f"{stripped[:80]!r} is not KEY=value")
        pairs[key] = value.strip("\"'")
    return pairs
