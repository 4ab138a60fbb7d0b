"""``docker info``, as text and as JSON: the runtimes that containers can be started with, and the devices found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import clean, lines

TOOL = "docker info"
_RUNTIMES = re.compile(r"^[ \t]*Runtimes: (?P<names>.+)$", re.M)
_DEFAULT = re.compile(r"^[ \t]*Default Runtime: (?P<name>\S+)$", re.M)
_DEVICE = re.compile(r"^[ \t]*(?:cdi|CDI): (?P<name>\S+=\S+)$", re.M)
_REFUSED = re.compile(
    r"Cannot connect to the Docker daemon.*|permission denied while trying to connect to the Docker.*"
)


@dataclass(frozen=True)
class DockerInfo:
    """``devices`` are those that Docker 28.2 and newer lists as discovered, by their CDI names."""

    runtimes: tuple[str, ...]
    default: str
    devices: tuple[str, ...] = ()


def is_it(text: str) -> bool:
    if text.lstrip().startswith("{"):
        return '"Runtimes"' in text and '"DefaultRuntime"' in text
    return _RUNTIMES.search(text) is not None or _REFUSED.search(text) is not None


def parse(text: str) -> DockerInfo:
    """Raises ParseError where the daemon did not answer, or its runtimes are not listed."""
    content = clean(text)
    if content.lstrip().startswith("{"):
        return _from_json(content)
    refused = _REFUSED.search(content)
    runtimes, default = _RUNTIMES.search(content), _DEFAULT.search(content)
    if runtimes is None:
        raise ParseError(TOOL, 0, refused[0][:200] if refused else "no line 'Runtimes:'")
    devices = tuple(match["name"] for match in _DEVICE.finditer("\n".join(lines(content))))
    return DockerInfo(tuple(runtimes["names"].split()), default["name"] if default else "", devices)


def _from_json(content: str) -> DockerInfo:
    try:
        data: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ParseError(TOOL, 0, f"not a whole JSON document: {str(error)[:200]}") from error
    runtimes = data.get("Runtimes")
    if not isinstance(runtimes, dict):
        raise ParseError(TOOL, 0, f"Runtimes is {str(runtimes)[:80]!r}, not a list of runtimes")
    found = data.get("DiscoveredDevices") or []
    devices = tuple(str(one["ID"]) for one in found if isinstance(one, dict) and "ID" in one)
    return DockerInfo(tuple(runtimes), str(data.get("DefaultRuntime", "")), devices)
