"""NUMA nodes as ``numactl -H``, ``lscpu`` and ``lscpu -J`` print them."""

from __future__ import annotations

import json
import re

from profiles.errors import ParseError
from validation.facts.host import NumaMap, Pair
from validation.facts.text import clean, cpu_list, lines

NUMACTL = "numactl -H"
LSCPU = "lscpu"
_AVAILABLE = re.compile(r"^available: (\d+) nodes?\b")
_CPUS = re.compile(r"^node (\d+) cpus:((?: \d+)*)\s*$")
_DISTANCES = re.compile(r"^\s*(\d+):((?:\s+\d+)+)\s*$")
_NODES = re.compile(r"^NUMA node\(s\)$")
_NODE = re.compile(r"^NUMA node(\d+) CPU\(s\)$")


def parse_numactl(text: str) -> NumaMap:
    """Nodes with CPUs and distances; a node with no CPU is memory only (HBM, GPU memory)."""
    announced, cpus, distances = 0, {}, {}
    for number, line in enumerate(lines(text), start=1):
        head, node, row = _AVAILABLE.match(line), _CPUS.match(line.rstrip()), _DISTANCES.match(line)
        if head:
            announced = int(head[1])
        elif node:
            cpus[int(node[1])] = frozenset(int(cpu) for cpu in node[2].split())
        elif row:
            distances[int(row[1])] = (number, [int(part) for part in row[2].split()])
    if not announced:
        raise ParseError(NUMACTL, 1, "no line 'available: N nodes'")
    if len(cpus) != announced or sorted(distances) != sorted(cpus):
        raise ParseError(
            NUMACTL, 0, f"{announced} nodes announced, {len(cpus)} listed, {len(distances)} with distances"
        )
    nodes = sorted(cpus)
    pairs: dict[Pair, int] = {}
    for one, (number, row_values) in distances.items():
        if len(row_values) != len(nodes):
            raise ParseError(NUMACTL, number, f"{len(row_values)} distances for {len(nodes)} nodes")
        pairs.update({(one, two): value for two, value in zip(nodes, row_values, strict=True)})
    return NumaMap(cpus=cpus, distances=pairs, gpu_node={})


def parse_lscpu(text: str) -> NumaMap:
    """Nodes with CPUs. lscpu prints no distances, so there are none in the map.

    Raises ParseError where fewer nodes are listed than announced, or the nodes do not hold all CPUs.
    """
    fields = _json_fields(text) if clean(text).lstrip().startswith("{") else _text_fields(text)
    cpus = {int(match[1]): cpu_list(value, LSCPU, 0) for key, value in fields.items() if (match := _NODE.match(key))}
    if not cpus:
        raise ParseError(LSCPU, 0, "no line 'NUMA nodeN CPU(s)'")
    announced = next((value for key, value in fields.items() if _NODES.match(key)), "")
    if announced and announced != str(len(cpus)):
        raise ParseError(LSCPU, 0, f"{announced} NUMA nodes announced, {len(cpus)} listed: the text is cut short")
    total = fields.get("CPU(s)", "")
    held = sum(len(node) for node in cpus.values())
    if total.isdigit() and held != int(total) and "Off-line CPU(s) list" not in fields:
        raise ParseError(LSCPU, 0, f"{total} CPUs, but the NUMA nodes hold {held}: a node is missing")
    return NumaMap(cpus=cpus, distances={}, gpu_node={})


def _text_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines(text):
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    return fields


def _json_fields(text: str) -> dict[str, str]:
    try:
        entries = json.loads(clean(text))["lscpu"]
        fields: dict[str, str] = {}
        pending = list(entries)
        while pending:
            entry = pending.pop(0)
            fields.setdefault(str(entry["field"]).rstrip(":"), str(entry.get("data") or ""))
            pending += entry.get("children", [])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParseError(LSCPU, 0, f"not the JSON of lscpu -J: {error!r}") from error
    return fields
