"""``lsblk`` in its three shapes (JSON, pairs, table) and ``nvme list``: the block devices and what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from profiles.errors import ParseError
from validation.facts import nvme_list
from validation.facts.host import BlockDevice, BlockDevices
from validation.facts.lsblk_table import ASK, device_size, devices_of_table, is_heading
from validation.facts.text import clean, lines, prompt

TOOL = "lsblk"
_PAIR = re.compile(r'([A-Z0-9:%_-]+)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
# A device that went away while lsblk looked, or lies on a disk that is listed: no disk of the machine.
_VANISHED = re.compile(r"^lsblk: (?:dm-\d+|loop\d+|md\d+): failed to get device path$")


def parse(text: str) -> BlockDevices:
    """The devices of any of the shapes, told by the text itself; ``nvme list`` and a table below it are joined."""
    content = "\n".join(line for line in lines(text) if not _VANISHED.match(line.strip()))
    begin = content.lstrip()
    if begin.startswith("{"):
        return BlockDevices(tuple(nvme_list.parse_json(content))) if '"Devices"' in content else parse_json(content)
    if _PAIR.match(begin):
        return parse_pairs(content)
    return _parse_tables(content)


def parse_json(text: str) -> BlockDevices:
    """``lsblk -J``: sizes are numbers (``-b``), or texts in older util-linux; children are devices too."""
    try:
        data = json.loads(clean(text))
    except (ValueError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole JSON document: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("blockdevices"), list):
        raise ParseError(TOOL, 1, "no list 'blockdevices'")
    return _distinct(_json_device(entry) for entry in _flatten(data["blockdevices"]))


def _json_device(entry: Mapping[str, Any]) -> BlockDevice:
    name = entry.get("name", entry.get("kname"))
    if not isinstance(name, str) or not isinstance(entry.get("type"), str):
        raise ParseError(TOOL, 0, f"a device without name or type: {', '.join(sorted(entry))}", ASK)
    mounts = entry.get("mountpoints")
    points = mounts if isinstance(mounts, list) else [entry.get("mountpoint")]
    return BlockDevice(
        name=_name(name),
        kind=entry["type"],
        size_bytes=device_size(entry.get("size"), 0),
        model=str(entry.get("model") or "").strip(),
        serial=str(entry.get("serial") or "").strip(),
        mountpoints=tuple(str(point) for point in points if point),
    )


def parse_pairs(text: str) -> BlockDevices:
    """``lsblk -P``: one device a line, values padded with blanks. A device on two disks stands there twice."""
    devices = []
    for number, line in enumerate(lines(text), start=1):
        if not line.strip() or prompt(line) is not None:
            continue
        pairs = {key: _unescaped(value) for key, value in _PAIR.findall(line)}
        name = pairs.get("NAME") or pairs.get("KNAME")
        if _PAIR.sub("", line).strip() or not name or "TYPE" not in pairs:
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} has no pairs of NAME and TYPE", ASK)
        mount = pairs.get("MOUNTPOINT") or pairs.get("MOUNTPOINTS") or ""
        devices.append(
            BlockDevice(
                name=_name(name),
                kind=pairs["TYPE"],
                size_bytes=device_size(pairs.get("SIZE"), number),
                model=pairs.get("MODEL", "").strip(),
                serial=pairs.get("SERIAL", "").strip(),
                mountpoints=tuple(part for part in mount.replace("\\n", "\n").split("\n") if part),
            )
        )
    if not devices:
        raise ParseError(TOOL, 0, "no device")
    return _distinct(devices)


def _unescaped(value: str) -> str:
    r"""``Two\x20words`` as it is meant: lsblk writes bytes that a shell would trip over as ``\xNN``."""
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[0].replace("\\x", "")).decode("utf-8", "replace"), value)


def _parse_tables(text: str) -> BlockDevices:
    """A table of lsblk, one of ``nvme list``, or one below the other; a device of both takes its model from nvme."""
    numbered = list(enumerate(lines(text), start=1))
    begin = next((at for at, (_, line) in enumerate(numbered) if is_heading(line)), len(numbered))
    end = next((at for at in range(begin, len(numbered)) if nvme_list.is_heading(numbered[at][1])), len(numbered))
    table = [(number, line) for number, line in numbered[begin:end] if prompt(line) is None]
    rest = [*numbered[:begin], *numbered[end:]]
    listed = any(nvme_list.is_heading(line) for _, line in rest)
    if not table and not listed:
        _refuse(rest)
    models = {disk.name: disk for disk in nvme_list.parse_text(rest)}
    tree = _distinct(devices_of_table(table) if table else models.values())
    joined = []
    for device in tree.devices:
        known = models.get(device.name, device)
        points = device.mountpoints
        joined.append(BlockDevice(device.name, device.kind, known.size_bytes, known.model, known.serial, points))
    return BlockDevices(tuple(joined))


def _refuse(numbered: list[tuple[int, str]]) -> None:
    for number, line in numbered:
        if line.strip():
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is neither a device nor a heading")
    raise ParseError(TOOL, 0, "no device")


def _distinct(devices: Iterable[BlockDevice]) -> BlockDevices:
    """Each device once, where it first stands."""
    found: dict[str, BlockDevice] = {}
    for device in devices:
        found.setdefault(device.name, device)
    return BlockDevices(tuple(found.values()))


def _flatten(entries: list[Any]) -> Iterator[Mapping[str, Any]]:
    for entry in entries:
        if not isinstance(entry, dict):
            raise ParseError(TOOL, 0, f"a device that is no object: {entry!r}")
        yield entry
        children = entry.get("children")
        if isinstance(children, list):
            yield from _flatten(children)


def _name(raw: str) -> str:
    return raw.removeprefix("/dev/")
