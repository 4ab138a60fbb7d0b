"""``lsblk`` in its three shapes (JSON, pairs, tree) and ``nvme list``: the block devices and what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from profiles.errors import ParseError
from validation.facts.host import BlockDevice, BlockDevices
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import clean, lines

TOOL = "lsblk"
_PAIR = re.compile(r'([A-Z0-9:%_-]+)="((?:[^"\\]|\\.)*)"')
_HUMAN = re.compile(r"^(\d+(?:[.,]\d+)?)\s*([BKMGTPE]?)(?:i?B)?$", re.I)
_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_TREE = "├└─│|`- "
_NVME = re.compile(
    r"^(?P<node>/dev/\S+)\s+(?:/dev/ng\S+\s+)?(?P<serial>\S+)\s+(?P<model>\S.*?)\s{2,}(?P<namespace>\S+)\s+"
    r"(?P<used>\d+(?:\.\d+)?)\s+(?P<used_unit>[KMGTP]?B)\s+/\s+(?P<size>\d+(?:\.\d+)?)\s+(?P<unit>[KMGTP]?B)\b"
)


def parse(text: str) -> BlockDevices:
    """The devices of any of the shapes, told by the text itself; ``nvme list`` and a tree below it are joined."""
    content = clean(text)
    if content.lstrip().startswith("{"):
        return parse_json(content)
    if _PAIR.match(content.lstrip()):
        return parse_pairs(content)
    return _parse_tables(content)


def parse_json(text: str) -> BlockDevices:
    """``lsblk -J``: sizes are numbers (``-b``), or texts in older util-linux; children are devices too."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole JSON document: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("blockdevices"), list):
        raise ParseError(TOOL, 1, "no list 'blockdevices'")
    devices: dict[str, BlockDevice] = {}
    for entry in _flatten(data["blockdevices"]):
        if not isinstance(entry.get("name"), str) or not isinstance(entry.get("type"), str):
            raise ParseError(TOOL, 0, f"a device without name or type: {sorted(entry)}")
        mounts = entry.get("mountpoints")
        points = mounts if isinstance(mounts, list) else [entry.get("mountpoint")]
        name = _name(entry["name"])
        devices.setdefault(
            name,
            BlockDevice(
                name=name,
                kind=entry["type"],
                size_bytes=_size(entry.get("size"), 0),
                model=str(entry.get("model") or "").strip(),
                serial=str(entry.get("serial") or "").strip(),
                mountpoints=tuple(str(point) for point in points if point),
            ),
        )
    return BlockDevices(tuple(devices.values()))


def parse_pairs(text: str) -> BlockDevices:
    """``lsblk -P``: one device a line, values padded with blanks."""
    devices = []
    for number, line in enumerate(lines(text), start=1):
        if not line.strip():
            continue
        pairs = dict(_PAIR.findall(line))
        if _PAIR.sub("", line).strip() or not pairs.get("NAME") or "TYPE" not in pairs:
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not a line of NAME and TYPE pairs")
        mount = pairs.get("MOUNTPOINT") or pairs.get("MOUNTPOINTS") or ""
        devices.append(
            BlockDevice(
                name=_name(pairs["NAME"]),
                kind=pairs["TYPE"],
                size_bytes=_size(pairs.get("SIZE"), number),
                model=pairs.get("MODEL", "").strip(),
                serial=pairs.get("SERIAL", "").strip(),
                mountpoints=tuple(part for part in mount.split("\\n") if part),
            )
        )
    if not devices:
        raise ParseError(TOOL, 0, "no device")
    return BlockDevices(tuple(devices))


def _parse_tables(text: str) -> BlockDevices:
    """A tree of lsblk, a table of ``nvme list``, or one below the other; a device of both takes its model from nvme."""
    models: dict[str, BlockDevice] = {}
    tree: dict[str, BlockDevice] = {}
    columns: list[str] = []
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        nvme = _NVME.match(stripped)
        if nvme:
            name = _name(nvme["node"])
            size = int(float(nvme["size"]) * 1000 ** _POWERS[nvme["unit"][:-1]])
            models[name] = BlockDevice(name, "disk", size, nvme["model"].strip(), nvme["serial"])
        elif stripped.startswith("NAME ") and " TYPE" in stripped:
            columns = stripped.split()
        elif columns and stripped:
            device = _branch(line, columns, number)
            tree.setdefault(device.name, device)
        elif stripped and not stripped.startswith(("Node ", "----", "$")):
            raise ParseError(TOOL, number, f"{stripped[:80]!r} is neither a device nor a heading")
    if not models and not tree:
        raise ParseError(TOOL, 0, "no device")
    joined = []
    for name, device in (tree or models).items():
        known = models.get(name, device)
        joined.append(BlockDevice(name, device.kind, known.size_bytes, known.model, known.serial, device.mountpoints))
    return BlockDevices(tuple(joined))


def _branch(line: str, columns: list[str], number: int) -> BlockDevice:
    parts = line.strip().lstrip(_TREE).split()
    if "MODEL" in columns[:-1] or len(parts) < len(columns) - 1:
        raise ParseError(TOOL, number, f"{len(parts)} cells under {len(columns)} columns; use lsblk -J")
    cells = dict(zip(columns, [*parts, *[""] * (len(columns) - len(parts))], strict=False))
    mount = cells.get("MOUNTPOINT", cells.get("MOUNTPOINTS", ""))
    return BlockDevice(
        name=_name(cells["NAME"]),
        kind=cells["TYPE"],
        size_bytes=_size(cells.get("SIZE"), number),
        mountpoints=(mount,) if mount else (),
    )


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


def _size(raw: object, line: int) -> int | Missing:
    """Bytes: a number as it is, ``69.9G`` in powers of 1024 as lsblk means it."""
    if raw is None or raw == "":
        return ABSENT
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    match = _HUMAN.match(str(raw).strip())
    if match is None:
        raise ParseError(TOOL, line, f"size {raw!r}")
    return int(float(match[1].replace(",", ".")) * 1024 ** _POWERS[match[2].upper()])
