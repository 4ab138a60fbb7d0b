"""``path:content`` lines of /sys, as ``grep .`` prints them: NUMA nodes, and PCI functions with their links."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from profiles.errors import ParseError
from validation.facts.host import NumaMap, Pair, PciBus, PciDevice
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import cpu_list, is_count, lines, pci_address

NUMA_TOOL = "sysfs NUMA"
PCI_TOOL = "sysfs PCI"
_NODE = re.compile(r"/sys/devices/system/node/node(\d{1,9})/(cpulist|distance):(.*)$")
_FUNCTION = re.compile(r"/sys/bus/pci/devices/([0-9a-fA-F:]+\.[0-7])/(\w+):(.*)$")
_SPEED = re.compile(r"^(\d{1,4}(?:\.\d+)?)\s*GT/s")
_ALL_ONES_WIDTH = 63  # what six bits of ones read as: the function no longer answers


def parse_numa(text: str, *, grep: bool = False) -> NumaMap:
    """NUMA nodes with their CPUs and distances, and the node of each PCI function whose ``numa_node`` is there.

    ``grep``: the lines are those of ``grep .``, which leaves out the empty CPU list of a node of memory only.
    Raises ParseError where a node has CPUs but no distances or the other way round, and where a distance row is not
    as long as there are nodes: then a node is missing.
    """
    cpus: dict[int, frozenset[int]] = {}
    rows: dict[int, tuple[int, list[int]]] = {}
    functions: dict[str, int | Missing] = {}
    for number, line in enumerate(lines(text), start=1):
        node, function = _NODE.search(line), _FUNCTION.search(line)
        if node and int(node[1]) in (cpus if node[2] == "cpulist" else rows):
            raise ParseError(NUMA_TOOL, number, f"node{node[1]} is there twice; give the files of one host at a time")
        if node and node[2] == "cpulist":
            cpus[int(node[1])] = cpu_list(node[3], NUMA_TOOL, number)
        elif node:
            rows[int(node[1])] = (number, _numbers(node[3], number))
        elif function and function[2] == "numa_node":
            functions[_address(function[1], NUMA_TOOL, number)] = _node(function[3].strip(), number)
        elif line.strip():
            raise ParseError(NUMA_TOOL, number, f"{line.strip()[:80]!r} is not a line of /sys about NUMA")
    if not cpus:
        raise ParseError(NUMA_TOOL, 0, "no NUMA node")
    if grep and _gapless(cpus):
        cpus |= {node: frozenset() for node in rows if node not in cpus}
    return NumaMap(cpus=cpus, distances=_distances(cpus, rows), gpu_node=functions)


def _gapless(cpus: Mapping[int, frozenset[int]]) -> bool:
    """Whether the nodes hold every CPU from 0 up: with a hole among them, a list that is gone was not empty."""
    numbers = sorted(cpu for listed in cpus.values() for cpu in listed)
    return numbers == list(range(len(numbers)))


def _distances(cpus: Mapping[int, frozenset[int]], rows: Mapping[int, tuple[int, list[int]]]) -> dict[Pair, int]:
    if set(cpus) != set(rows):
        raise ParseError(NUMA_TOOL, 0, f"CPUs of nodes {sorted(cpus)}, distances of nodes {sorted(rows)}")
    nodes = sorted(cpus)
    distances: dict[Pair, int] = {}
    for node_id, (number, row) in rows.items():
        if len(row) != len(nodes):
            raise ParseError(NUMA_TOOL, number, f"{len(row)} distances for {len(nodes)} nodes: a node is missing")
        distances.update({(node_id, other): distance for other, distance in zip(nodes, row, strict=True)})
    return distances


def parse_pci(text: str) -> PciBus:
    """PCI functions with class, ids and link. ``dead``: the link status reads all ones. Raises ParseError if none."""
    functions: dict[str, dict[str, str]] = defaultdict(dict)
    for number, line in enumerate(lines(text), start=1):
        match = _FUNCTION.search(line)
        if match:
            files = functions[_address(match[1], PCI_TOOL, number)]
            if match[2] in files:
                raise ParseError(PCI_TOOL, number, f"{match[1]}/{match[2]} is there twice; give one host at a time")
            files[match[2]] = match[3].strip()
        elif line.strip():
            raise ParseError(PCI_TOOL, number, f"{line.strip()[:80]!r} is not a line of /sys about a PCI function")
    if not functions:
        raise ParseError(PCI_TOOL, 0, "no PCI function")
    return PciBus(tuple(_device(address, files) for address, files in sorted(functions.items())))


def _device(address: str, files: dict[str, str]) -> PciDevice:
    for needed in ("vendor", "device", "class"):
        if not re.fullmatch(r"0x[0-9a-fA-F]{4,6}", files.get(needed, "")):
            raise ParseError(PCI_TOOL, 0, f"{address}: {needed} is {files.get(needed, 'not there')!r}")
    width = _width(files.get("current_link_width"))
    return PciDevice(
        address=address,
        class_id=files["class"][2:6].lower(),
        vendor_id=files["vendor"][2:].lower(),
        device_id=files["device"][2:].lower(),
        name="",
        dead=width == _ALL_ONES_WIDTH,
        link_speed_gts=_speed(files.get("current_link_speed")),
        link_speed_max_gts=_speed(files.get("max_link_speed")),
        link_width=width,
        link_width_max=_width(files.get("max_link_width")),
    )


def _speed(raw: str | None) -> float | Missing:
    if raw is None:
        return ABSENT
    match = _SPEED.match(raw)
    return float(match[1]) if match else Missing(Reason.COULD_NOT_LOOK, raw)


def _width(raw: str | None) -> int | Missing:
    """Lanes. The kernel prints 0 where the function has no link of its own (an emulated bus)."""
    if raw is None:
        return ABSENT
    if not is_count(raw):
        return Missing(Reason.COULD_NOT_LOOK, raw)
    return int(raw) if int(raw) else Missing(Reason.NOT_APPLICABLE, raw)


def _node(raw: str, number: int) -> int | Missing:
    """The node; -1 is the kernel's word for a platform that does not tell."""
    if raw == "-1" or raw.startswith("<"):
        return Missing(Reason.COULD_NOT_LOOK, raw)
    if not is_count(raw):
        raise ParseError(NUMA_TOOL, number, f"{raw!r} is not a NUMA node")
    return int(raw)


def _numbers(raw: str, number: int) -> list[int]:
    parts = raw.split()
    if not parts or not all(map(is_count, parts)):
        raise ParseError(NUMA_TOOL, number, f"{raw.strip()!r} is not a row of distances")
    return [int(part) for part in parts]


def _address(raw: str, tool: str, number: int) -> str:
    address = pci_address(raw)
    if address is None:
        raise ParseError(tool, number, f"{raw!r} is not a PCI address")
    return address
