"""Facts for people: words and units instead of field names, a grid for pairs, a table for what differs.

Works on the facts as the JSON of an explanation has them, so a new kind of fact needs nothing here.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from validation.report.text import line

WIDTH = 118  # columns of a row; a table that needs more is written out item by item
MANY = 6  # a mapping of more entries is counted by value
FEW = 4  # and a value of so few keys names them
SHOWN = 40  # items of one list; a kernel log can have thousands
GRID = 16  # GPUs that a pair matrix shows; the largest hosts have 16
NOT_APPLICABLE = "not applicable"
_TITLES = ("label", "name", "index", "line")  # what an item is called
_PAIR = re.compile(r"(\d+)-(\d+)")
_UNITS = {"mib": "MiB", "gb": "GB", "bytes": "bytes", "c": "C", "w": "W", "s": "s", "mhz": "MHz", "gbps": "GB/s"}
_RATES = {"gbit_s": "Gbit/s", "bytes_s": "bytes/s", "gts": "GT/s"}
_WORDS = {"gpus": "GPUs", "nics": "NICs", "nvidia": "NVIDIA", "nvlink": "NVLink", "nvlinks": "NVLinks", "pcie": "PCIe"}
ACRONYMS = """
    api bar1 cpu cuda dcgm dram ecc efa fi gpu gsp id json mib mig nccl nic numa nvml oci os p2p pci rdma sm smi sram
    uuid vbios vgpu
"""
_ACRONYMS = frozenset(ACRONYMS.split())


def lines(facts: Mapping[str, Any]) -> list[str]:
    """The facts of an explanation, indented, without any markup."""
    return [row for name, fact in facts.items() for row in (title(name), *_indented(_value(fact)))]


def title(name: str) -> str:
    """``GpuInventory`` as ``GPU inventory``."""
    text = words(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    return text[:1].upper() + text[1:]


def words(name: str) -> str:
    """``memory_total_mib`` as ``memory total (MiB)``, ``ecc.enabled`` as ``ECC enabled``."""
    name, unit = line(name), ""
    for ending, text in {**_RATES, **_UNITS}.items():
        if name.endswith(f"_{ending}"):
            name, unit = name.removesuffix(f"_{ending}"), f" ({text})"
            break
    return " ".join(_word(part) for part in re.split(r"[_.]", name) if part) + unit


def _word(part: str) -> str:
    return part.upper() if part in _ACRONYMS else _WORDS.get(part, part)


def _value(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield _text(value)
        return
    for key, item in value.items():
        if isinstance(item, Mapping) and not _is_missing(item):
            yield from _mapping(words(key), item)
        elif isinstance(item, Sequence) and not isinstance(item, str) and item and isinstance(item[0], Mapping):
            yield f"{words(key)}: {len(item)}"
            yield from _indented(_alike(item))
        elif item not in ([], "", None):
            yield from _wrapped(words(key), _text(item))


def _mapping(name: str, item: Mapping[str, Any]) -> Iterator[str]:
    nodes = _nodes(item)
    if nodes:
        yield f"{name}:"
        yield from _indented(_grid(nodes, item))
    elif _plain(item.values()) and len(item) > MANY:
        yield from _wrapped(name, _counted(item))
    elif item:
        yield from _wrapped(name, _listed(dict(_flat(item))))


def _nodes(item: Mapping[str, Any]) -> list[int]:
    """The numbers that the keys pair (``0-1``), where every ordered pair of them is there; else none."""
    pairs = [match for key in item if (match := _PAIR.fullmatch(key))]
    nodes = sorted({int(number) for match in pairs for number in match.groups()})
    apart = [pair for pair in pairs if pair[1] != pair[2]]
    whole = len(pairs) == len(item) and len(apart) == len(nodes) * (len(nodes) - 1)
    return nodes if whole and 1 < len(nodes) <= GRID else []


def _grid(nodes: Sequence[int], item: Mapping[str, Any]) -> list[str]:
    rows = [["", *map(str, nodes)]]
    rows += [[str(one), *(_text(item.get(f"{one}-{two}", "-")) for two in nodes)] for one in nodes]
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows]


def _alike(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Items that mostly agree: the fields they share once, then what is special about each."""
    flat = [dict(_flat(item)) for item in items]
    shared = {key: value for key, value in flat[0].items() if all(one.get(key) == value for one in flat)}
    shared = {key: value for key, value in shared.items() if key not in _TITLES or key == "name"}
    yield from _shared("all" if len(items) > 1 else "it", shared)
    own = [{key: value for key, value in one.items() if key not in shared and key not in _TITLES} for one in flat]
    titles = [_called(one, index) for index, one in enumerate(flat)]
    if any(own):
        yield from _tables(titles[:SHOWN], own[:SHOWN])
    if any(own) and len(flat) > SHOWN:
        yield f"and {len(flat) - SHOWN} more, all of them in --json"


def _called(item: Mapping[str, Any], index: int) -> str:
    if "line" in item:
        return f"line {item['line']}"
    return line(str(item.get("label") or item.get("name") or index))


def _shared(whose: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """A row for the plain fields, one for each group (``ecc.*``), one for all that the source says it has not."""
    groups: dict[str, dict[str, Any]] = {}
    without = [words(key) for key, value in fields.items() if str(value).startswith(NOT_APPLICABLE)]
    for key, value in fields.items():
        if not str(value).startswith(NOT_APPLICABLE):
            group, dot, name = key.partition(".")
            groups.setdefault(group if dot else "", {})[name if dot else key] = value
    for group, values in sorted(groups.items(), key=lambda entry: entry[0] != ""):
        yield from _wrapped(words(group) if group else whose, _listed(values))
    if without:
        yield from _wrapped(NOT_APPLICABLE, ", ".join(without))


def _tables(titles: Sequence[str], items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """As many tables as the width takes; item by item where one column alone is wider, as the lines of a log are."""
    names = list(dict.fromkeys(key for item in items for key in item))
    columns = [[words(name), *(_text(item[name]) if name in item else "-" for item in items)] for name in names]
    heads = ["", *titles]
    room = WIDTH - max(map(len, heads))
    wide = [max(map(len, column)) + 2 for column in columns]
    if max(wide) > room:
        for name, item in zip(titles, items, strict=True):
            yield from _wrapped(name, _listed(item)) if item else ()
        return
    part: list[list[str]] = []
    used = 0
    for column, width in zip(columns, wide, strict=True):
        if used + width > room:
            yield from _columns(list(zip(heads, *part, strict=True)))
            part, used = [], 0
        part.append(column)
        used += width
    yield from _columns(list(zip(heads, *part, strict=True)))


def _listed(item: Mapping[str, Any]) -> str:
    return ", ".join(f"{words(key)} {_text(value)}" for key, value in item.items())


def _wrapped(name: str, text: str) -> list[str]:
    """``name: text``, its further lines set in; a word longer than the row stays whole, to be copied."""
    return textwrap.wrap(
        f"{name}: {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _flat(item: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves by dotted path; a list of objects counts as a leaf, told by its values."""
    for key, value in item.items():
        path = f"{prefix}{key}"
        if _is_missing(value):
            yield path, f"{value['missing']}{f' ({text})' if (text := value.get('text')) else ''}"
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield path, _grouped(value)
        elif value not in ([], "", None):
            yield path, value


def _grouped(items: Sequence[Mapping[str, Any]]) -> str:
    """``18 (active yes, rate (GB/s) 26.562)``: objects of a list by what they say, their index left out."""
    said = Counter(_listed({k: v for k, v in item.items() if k != "index"}) for item in items)
    return "; ".join(f"{count} ({text})" for text, count in said.most_common())


def _counted(item: Mapping[str, Any]) -> str:
    by_value: dict[str, list[str]] = {}
    for key, value in item.items():
        by_value.setdefault(_text(value), []).append(line(key))
    parts = []
    for value, keys in sorted(by_value.items(), key=lambda entry: -len(entry[1])):
        parts.append(f"{value} ({', '.join(keys)})" if len(keys) <= FEW else f"{value} ({len(keys)} entries)")
    return "; ".join(parts)


def _plain(values: Any) -> bool:
    return not any(isinstance(value, Mapping) for value in values)


def _is_missing(value: Any) -> bool:
    return isinstance(value, Mapping) and "missing" in value


def _text(value: Any) -> str:
    if _is_missing(value):
        return str(dict(_flat({"": value}))[""])
    if isinstance(value, list):
        whole = value and all(type(item) is int for item in value)
        return _ranges(value) if whole else " ".join(_text(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return line(str(value)) or "none"


def _ranges(numbers: Sequence[int]) -> str:
    """``0-23 48-71`` for a list of whole numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _indented(rows: Iterator[str] | list[str]) -> list[str]:
    return [f"  {row}" for row in rows]
