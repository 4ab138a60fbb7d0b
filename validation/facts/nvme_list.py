"""``nvme list``: text of nvme-cli 1 and 2, ``-v`` and ``-o json``: the disks with model, serial and size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from profiles.errors import ParseError
from validation.facts.host import BlockDevice
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import lines, prompt

TOOL = "nvme list"
_POWERS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4, "PB": 5}
_USAGE = re.compile(r"^\d+(?:[.,]\d+)?\s+[KMGTP]?B\s+/\s+(?P<size>\d+(?:[.,]\d+)?)\s+(?P<unit>[KMGTP]?B)$")
# A row whose columns moved, which happens where a serial number is longer than its column.
_ROW = re.compile(
    r"^(?P<node>/dev/\S+)\s+(?:/dev/ng\S+\s+)?(?P<serial>\S+)\s+(?P<model>\S.*?)\s{2,}(?P<namespace>\S+)\s+"
    r"(?P<usage>\d+(?:[.,]\d+)?\s+[KMGTP]?B\s+/\s+\d+(?:[.,]\d+)?\s+[KMGTP]?B)\b"
)
_HEADING = re.compile(r"^\s*(?:Node +(?:Generic +)?SN +Model|Subsystem +Subsystem-NQN|Device +\S)")


def is_heading(line: str) -> bool:
    """Whether a table of nvme list begins here."""
    return _HEADING.match(line) is not None


def parse_text(numbered: list[tuple[int, str]]) -> list[BlockDevice]:
    """The disks of the tables. A heading without rows is no disk; a row in no known form is a ParseError."""
    rows = list(_rows(numbered))
    controllers = {row["Device"]: row for row in rows if "SN" in row and "Device" in row}
    found = []
    for row in rows:
        if "Node" in row:
            found.append(_disk(row["Node"], row["Model"], row["SN"], row["Usage"]))
        elif "NSID" in row:
            owner = controllers.get(row.get("Controllers", "").split(",")[0].strip(), {})
            found.append(_disk(row["Device"], owner.get("MN", ""), owner.get("SN", ""), row["Usage"]))
    return found


def _rows(numbered: list[tuple[int, str]]) -> Iterator[dict[str, str]]:
    heading: str | None = None
    spans: list[tuple[str, int, int | None]] = []
    for number, line in numbered:
        stripped = line.strip()
        if not stripped:
            continue
        if is_heading(line):
            heading, spans = line, []
        elif heading is not None and set(stripped) <= {"-", " "}:
            spans = _spans(heading, line)
        elif spans:
            yield _row(line, spans, number)
        elif not stripped.startswith("NVM Express ") and prompt(line) is None:
            raise ParseError(TOOL, number, f"{stripped[:80]!r} is not a row of nvme list")


def _spans(heading: str, dashes: str) -> list[tuple[str, int, int | None]]:
    """Each column's name, where it begins, and where the next one does: the dashes below the heading show it."""
    starts = [match.start() for match in re.finditer(r"-+", dashes)]
    ends: list[int | None] = [*starts[1:], None]
    return [(heading[start:end].strip(), start, end) for start, end in zip(starts, ends, strict=True)]


def _row(line: str, spans: list[tuple[str, int, int | None]], number: int) -> dict[str, str]:
    cells = {name: line[start:end].strip() for name, start, end in spans}
    usage = cells.get("Usage")
    if usage is None or _USAGE.match(usage):
        return cells
    moved = _ROW.match(line.strip())
    if moved is None:
        raise ParseError(TOOL, number, f"{line.strip()[:80]!r}: the cells do not stand under their columns")
    return {"Node": moved["node"], "SN": moved["serial"], "Model": moved["model"], "Usage": moved["usage"]}


def _disk(node: str, model: str, serial: str, usage: str) -> BlockDevice:
    match = _USAGE.match(" ".join(usage.split()))
    size: int | Missing = ABSENT
    if match:
        size = int(float(match["size"].replace(",", ".")) * 1000 ** _POWERS[match["unit"]])
    return BlockDevice(node.removeprefix("/dev/"), "disk", size, model.strip(), serial.strip())


def parse_json(text: str) -> list[BlockDevice]:
    """``-o json``: the flat list of the short form, or hosts, subsystems and controllers of ``-v``."""
    try:
        data = json.loads(text)
        found = {disk.name: disk for entry in data["Devices"] for disk in _json_disks(entry, {})}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole list of 'Devices' ({error!r})") from error
    return list(found.values())


def _json_disks(entry: Mapping[str, Any], owner: Mapping[str, Any]) -> Iterator[BlockDevice]:
    """The disks of an entry, and of what is inside; ``owner`` is the controller that tells model and serial number."""
    inside = [*entry.get("Subsystems", ()), *entry.get("Controllers", ())]
    for part in inside:
        yield from _json_disks(part, part if "ModelNumber" in part else owner)
    first = next(iter(entry.get("Controllers", ())), owner)
    for namespace in entry.get("Namespaces", ()):
        yield _json_disk(namespace["NameSpace"], first if "Controllers" in entry else owner, namespace)
    if "DevicePath" in entry:
        yield _json_disk(entry["DevicePath"], entry, entry)
    elif not inside and "Namespaces" not in entry and "HostNQN" not in entry:
        raise KeyError("DevicePath")


def _json_disk(name: str, told: Mapping[str, Any], sized: Mapping[str, Any]) -> BlockDevice:
    size = sized.get("PhysicalSize")
    return BlockDevice(
        name=name.removeprefix("/dev/"),
        kind="disk",
        size_bytes=size if isinstance(size, int) and size > 0 else ABSENT,
        model=str(told.get("ModelNumber") or "").strip(),
        serial=str(told.get("SerialNumber") or "").strip(),
    )


def numbered(text: str) -> list[tuple[int, str]]:
    """The lines of a text with their numbers."""
    return list(enumerate(lines(text), start=1))
