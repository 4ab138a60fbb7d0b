"""``dcgmi health -c``: what DCGM's watches have seen, as a tree of text and as JSON.

Formats: NVIDIA/DCGM dcgmi/Health.cpp and DcgmiOutput.cpp, read from 2.4 to 4.6.0 (2026-07); a flat tree from
NVSentinel PR 1481.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.dcgm import closed
from validation.facts.text import clean, lines

HEALTH = "dcgmi health"
_SIGN = re.compile(r'^\| *Overall Health *\||^\s*\{(?s:.*)"Overall Health"', re.M)
_ROW = re.compile(r"^\|(?P<name>[^|]*)\|(?P<value>[^|]*)\|\s*$")
_ENTITY = re.compile(r"^-> (?:(?P<group>[A-Za-z]\w*) )?(?P<number>\d+)$")
_OVERALL = "Overall Health"
_GPU = "GPU"
NOT_LOOKED = re.compile(r"^Error: (?:Health watches not enabled|Unable to (?:check|get) health watches).*", re.M)


@dataclass(frozen=True)
class DcgmHealth:
    """``overall`` is DCGM's word; ``incidents`` are (GPU, system, word, sentences).

    What is of a switch or another part has GPU -1 and the part in the system's name. ``error``: why DCGM did not look.
    """

    overall: str
    incidents: tuple[tuple[int, str, str, tuple[str, ...]], ...]
    error: str = ""


def is_it(text: str) -> bool:
    """Told by its table, its document, or DCGM's words where it did not look."""
    return any(sign.search(text) for sign in (_SIGN, NOT_LOOKED))


def parse(text: str) -> DcgmHealth:
    """Raises ParseError where there is no overall word, or it is bad and nothing says why."""
    content = clean(text)
    failed = NOT_LOOKED.search(content)
    if failed:
        return DcgmHealth("", (), failed[0].strip())
    document = content.lstrip().startswith("{")
    if not document and not closed(text):
        raise ParseError(HEALTH, 0, "the table has no closing rule: the text is cut short")
    overall, incidents = _document(content) if document else _tree(text)
    if not overall:
        raise ParseError(HEALTH, 0, f"no row {_OVERALL!r}")
    if overall.lower() != "healthy" and not incidents:
        raise ParseError(HEALTH, 0, f"overall health is {overall}, and no row says why: the text is cut short")
    return DcgmHealth(overall, tuple(incidents))


_Incident = tuple[int, str, str, tuple[str, ...]]


def _tree(text: str) -> tuple[str, list[_Incident]]:
    """Each part of the machine, its word, and under it each system with its word and sentences."""
    overall, group, number = "", _GPU, ""
    incidents: list[_Incident] = []
    for line in lines(text):
        row = _ROW.match(line)
        if row is None:
            continue
        name, value = row["name"].strip(), row["value"].strip()
        entity = _ENTITY.match(name)
        if name == _OVERALL:
            overall = value
        elif entity:
            group, number = entity["group"] or group, entity["number"]
        elif name.startswith("->") and value:  # "-> Errors" has no word of its own
            incidents.append(_incident(group, number, name[2:].strip(), value, ()))
        elif name and not name.startswith("->") and not value:
            group = name
        elif not name and value and incidents:
            last = incidents[-1]
            incidents[-1] = (last[0], last[1], last[2], (*last[3], value))
    return overall, incidents


def _incident(group: str, number: str, system: str, word: str, said: tuple[str, ...]) -> _Incident:
    if group == _GPU and number:
        return int(number), system, word, said
    return -1, f"{group} {number}: {system}".replace(" :", ":"), word, said


def _document(content: str) -> tuple[str, list[_Incident]]:
    try:
        body = json.loads(content)["body"]
        incidents = [
            _incident(group, number, system, str(entry["value"]), _sentences(entry))
            for group, parts in body.items()
            if group != _OVERALL
            for number, part in parts["children"].items()
            for system, entry in part["children"]["Errors"]["children"].items()
        ]
        return str(body[_OVERALL]["value"]), incidents
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(HEALTH, getattr(error, "lineno", 0), f"not a whole report: {error!r}") from error


def _sentences(entry: dict[str, Any]) -> tuple[str, ...]:
    """The pieces of the sentences, under whatever key they stand."""
    found = [item for value in entry.values() if isinstance(value, list) for item in value]
    return tuple(str(item.get("value", "")) if isinstance(item, dict) else str(item) for item in found)
