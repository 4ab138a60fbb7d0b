"""NUMA nodes as ``numactl -H``, ``lscpu`` and ``lscpu -J`` print them."""

from __future__ import annotations

import json
import re

from profiles.errors import ParseError
from validation.facts.host import NumaMap, Pair
from validation.facts.text import clean, cpu_list, is_count, lines

NUMACTL = "numactl -H"
LSCPU = "lscpu"
_AVAILABLE = re.compile(r"^\s*available: (\d{1,9}) nodes?\b")
_CPUS = re.compile(r"^\s*node (\d{1,9}) cpus:(.*)$")
_COUNTED = re.compile(r"\((\d{1,9})\)\s*$")
_DISTANCES = re.compile(r"^\s*(\d{1,9}):((?:\s+\d{1,9})+)\s*$")
_NUMBERS = re.compile(r"^(?:\s*\d{1,9}(?!\d))+\s*$")
_NO_DISTANCES = "No distance information available"
# lscpu speaks the user's language: "NUMA node0 CPU(s):", "NUMA-Knoten0 CPU(s):", "CPU(s) de nó0 NUMA:". In Chinese and
# French the colon is another, or has a blank before it.
_COLONS = ":\uff1a"
_NODE = re.compile(r"^(?=.*NUMA)\D*(\d{1,9})\D*$")
_NODES = re.compile(r"^(?=.*NUMA)\D*$")
_COLON = re.compile(f"[{_COLONS}]")
_ONCE = re.compile(r"NUMA|^CPU\(s\)$")  # other fields are there once for every sort of core
_LIST = re.compile(r"^[\d,-]*$")
_ENGLISH = re.compile(r"^\s*(?:CPU op-mode\(s\)|On-line CPU\(s\) list|Thread\(s\) per core):", re.MULTILINE)


def parse_numactl(text: str) -> NumaMap:
    """Nodes with CPUs and distances; a node with no CPU is memory only (HBM, GPU memory).

    Numbers on a line of their own go on with the list above them, which a narrow terminal has broken.
    """
    announced, told = 0, True
    cpus: dict[int, list[int]] = {}
    rows: dict[int, tuple[int, list[int]]] = {}
    last: list[int] = []
    for number, line in enumerate(lines(text), start=1):
        head, node, row = _AVAILABLE.match(line), _CPUS.match(line), _DISTANCES.match(line)
        if (head and announced) or (node and int(node[1]) in cpus) or (row and int(row[1]) in rows):
            raise ParseError(NUMACTL, number, f"{line.strip()[:80]!r}: a second list begins here; give one at a time")
        if head:
            announced = int(head[1])
        elif node:
            last = cpus[int(node[1])] = _cpus(node[2], number)
        elif row:
            last = [int(part) for part in row[2].split()]
            rows[int(row[1])] = (number, last)
        elif _NUMBERS.match(line):
            last += [int(part) for part in line.split()]
        else:
            last = []
            told = told and _NO_DISTANCES not in line
    if not announced:
        raise ParseError(NUMACTL, 1, "no line 'available: N nodes'")
    if len(cpus) != announced or (told and sorted(rows) != sorted(cpus)):
        raise ParseError(NUMACTL, 0, f"{announced} nodes announced, {len(cpus)} listed, {len(rows)} with distances")
    return NumaMap({node: frozenset(listed) for node, listed in cpus.items()}, _pairs(sorted(cpus), rows), gpu_node={})


def _cpus(raw: str, number: int) -> list[int]:
    """CPUs one by one, or as ``0-15 (16)``: ranges and how many they are, which ``--cpu-compress`` asks for."""
    counted = _COUNTED.search(raw)
    try:
        found = cpu_list(",".join(_COUNTED.sub("", raw).replace(",", " ").split()), NUMACTL, number)
    except ParseError as error:
        raise ParseError(NUMACTL, number, f"{raw.strip()!r} is not a CPU list") from error
    if counted and len(found) != int(counted[1]):
        raise ParseError(NUMACTL, number, f"{raw.strip()!r}: {len(found)} CPUs listed, {counted[1]} counted")
    return sorted(found)


def _pairs(nodes: list[int], rows: dict[int, tuple[int, list[int]]]) -> dict[Pair, int]:
    pairs: dict[Pair, int] = {}
    for one, (number, values) in rows.items():
        if len(values) != len(nodes):
            raise ParseError(NUMACTL, number, f"{len(values)} distances for {len(nodes)} nodes")
        pairs.update({(one, two): value for two, value in zip(nodes, values, strict=True)})
    return pairs


def is_lscpu(text: str) -> bool:
    """Whether a text is lscpu's, in any language of it: the CPUs of a NUMA node, or a field that no other tool has."""
    if _ENGLISH.search(text):
        return True
    fields = (_field(line) for line in text.split("\n") if "NUMA" in line)
    return any(key and _NODE.match(key) and _LIST.match(value) for key, value in fields)


def parse_lscpu(text: str) -> NumaMap:
    """Nodes with CPUs; none at all where the kernel has no NUMA. lscpu prints no distances, so none are in the map.

    Raises ParseError where fewer nodes are listed than announced, where the nodes hold fewer CPUs than there are, and
    where no node is listed although the text may have been cut before them.
    """
    whole = clean(text).lstrip().startswith("{")  # JSON that was cut is none
    fields = _json_fields(text) if whole else _text_fields(text)
    cpus = {int(match[1]): cpu_list(value, LSCPU, 0) for key, value in fields.items() if (match := _NODE.match(key))}
    if not cpus:
        # Since util-linux 2.35 the vulnerabilities come last, after the NUMA nodes.
        if whole or any(key.startswith("Vulnerab") for key in fields):
            return NumaMap({}, {}, {})
        raise ParseError(LSCPU, 0, "no line 'NUMA nodeN CPU(s)': the text is cut short, or the kernel has no NUMA")
    announced = next((value for key, value in fields.items() if _NODES.match(key) and value), "")
    if announced and announced != str(len(cpus)):
        raise ParseError(LSCPU, 0, f"{announced} NUMA nodes announced, {len(cpus)} listed: the text is cut short")
    total = fields.get("CPU(s)", "")
    held = sum(len(node) for node in cpus.values())
    # More than there are: a container, in which /sys shows the CPUs of the host.
    if is_count(total) and held < int(total) and "Off-line CPU(s) list" not in fields:
        raise ParseError(LSCPU, 0, f"{total} CPUs, but the NUMA nodes hold {held}: a node is missing")
    return NumaMap(cpus=cpus, distances={}, gpu_node={})


def _text_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for number, line in enumerate(lines(text), start=1):
        key, value = _field(line)
        if _ONCE.search(key) and fields.get(key, value) != value:
            raise ParseError(LSCPU, number, f"a second {key[:80]!r}, of another host; give one at a time")
        if key:
            fields.setdefault(key, value)
    return fields


def _field(line: str) -> tuple[str, str]:
    """What stands before and after the first colon; nothing where there is none."""
    key, *value = _COLON.split(line, maxsplit=1)
    return (key.strip(), value[0].strip()) if value else ("", "")


def _json_fields(text: str) -> dict[str, str]:
    try:
        entries = json.loads(clean(text))["lscpu"]
        fields: dict[str, str] = {}
        pending = list(entries)
        while pending:
            entry = pending.pop(0)
            fields.setdefault(str(entry["field"]).rstrip(f"{_COLONS} \xa0"), str(entry.get("data") or ""))
            pending += entry.get("children", [])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParseError(LSCPU, 0, f"not the JSON of lscpu -J: {error!r}") from error
    return fields
