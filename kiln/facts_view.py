"""Facts for people: what is the same everywhere is said once, what differs is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from validation.report.text import line

MANY = 6  # a mapping of more entries is counted by value
FEW = 4  # and a value of so few keys names them
SHOWN = 100  # items of one list; a kernel log can have thousands
_TITLES = ("label", "name", "index")  # what an item is called


def lines(facts: Mapping[str, Any]) -> list[str]:
    """The facts of an explanation (as its JSON has them), indented, without any markup."""
    return [row for name, fact in facts.items() for row in (f"{line(name)}", *_indented(_value(fact)))]


def _value(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield _text(value)
        return
    for key, item in value.items():
        if isinstance(item, Mapping) and not _is_missing(item):
            if _plain(item.values()) and len(item) > MANY:
                yield f"{line(key)}: {_counted(item)}"
            elif item:
                yield f"{line(key)}: {', '.join(f'{line(k)} {_text(v)}' for k, v in _flat(item))}"
        elif isinstance(item, Sequence) and not isinstance(item, str) and item and isinstance(item[0], Mapping):
            yield f"{line(key)}: {len(item)}"
            yield from _indented(_alike(item))
        else:
            yield f"{line(key)}: {_text(item)}"


def _alike(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Items that mostly agree: the fields they share once, then what is special about each."""
    flat = [dict(_flat(item)) for item in items]
    shared = {key: value for key, value in flat[0].items() if all(one.get(key) == value for one in flat)}
    shared = {key: value for key, value in shared.items() if key not in _TITLES or key == "name"}
    if shared:
        yield f"{'all' if len(items) > 1 else 'it'}: {', '.join(f'{line(k)} {_text(v)}' for k, v in shared.items())}"
    for index, one in enumerate(flat[:SHOWN]):
        title = line(str(one.get("label") or one.get("name") or index))
        own = {key: value for key, value in one.items() if key not in shared and key not in _TITLES}
        if own:
            yield f"{title}: {', '.join(f'{line(k)} {_text(v)}' for k, v in own.items())}"
    if len(flat) > SHOWN:
        yield f"and {len(flat) - SHOWN} more, all of them in --json"


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
        else:
            yield path, value


def _grouped(items: Sequence[Mapping[str, Any]]) -> str:
    """``18 (active True, rate_gbps 26.562)``: objects of a list by what they say, their index left out."""
    said = Counter(", ".join(f"{k} {_text(v)}" for k, v in item.items() if k != "index") for item in items)
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


def _indented(rows: Iterator[str]) -> list[str]:
    return [f"  {row}" for row in rows]
