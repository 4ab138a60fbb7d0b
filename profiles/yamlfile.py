"""YAML files whose errors name file, line and key path.

``yaml.safe_load`` keeps the last of two equal keys and forgets where a value stood. Here a duplicate key is an error,
and every key path keeps its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from profiles.errors import Problem, ProfileError

KeyPath = tuple[str | int, ...]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster, where it was built


@dataclass(frozen=True)
class YamlFile:
    """A mapping read from ``path``, with the line (1-based) of each key path."""

    path: Path
    data: dict[str, Any]
    lines: dict[KeyPath, int]

    def depth(self, location: KeyPath) -> int:
        """How many leading parts of ``location`` this file writes out."""
        return next(length for length in range(len(location), -1, -1) if location[:length] in self.lines)

    def where(self, location: KeyPath) -> str:
        """``file.yaml:12: gpu.count``: the deepest part of ``location`` that the file has decides the line."""
        return f"{self.path.name}:{self.lines[location[: self.depth(location)]]}: {dotted(location)}"


def dotted(location: KeyPath) -> str:
    """``('links', 'pairs', 0)`` as a person writes it: ``links.pairs[0]``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(whole file)"


def read(path: Path) -> YamlFile:
    """Read one file whose top level is a mapping. Raises ProfileError naming file and line."""
    try:
        loader = LOADER(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        lines = (
            {} if node is None else dict(_lines(path, node, ()))
        )  # before << is filled in, which looks like two keys
        data = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ProfileError(f"{path.name}:{line}: not YAML: {error.problem}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProfileError(f"{path.name}: cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ProfileError(f"{path.name}:1: the top level must be a mapping of keys, not {type(data).__name__}")
    return YamlFile(path, data, lines)


def problems(error: ValidationError, *sources: YamlFile) -> list[Problem]:
    """What pydantic found wrong, each with its place in the file that writes most of the key path out."""
    found = []
    for entry in error.errors(include_url=False):
        location = _keys(entry["loc"])
        source = max(sources, key=lambda source: source.depth(location))
        value = "nothing" if entry["type"] == "missing" else _short(entry["input"])
        found.append(Problem(source.where(location), value, entry["msg"]))
    return found


def _keys(location: KeyPath) -> KeyPath:
    """Without the tried types (``str``, ``tuple[...]``) that pydantic adds to the location of a union."""
    return tuple(p for p in location if isinstance(p, int) or not ("[" in p or p in ("str", "int", "literal")))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _lines(path: Path, node: yaml.Node, location: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    yield location, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(path, item, (*location, index))
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                line = key.start_mark.line + 1
                raise ProfileError(f"{path.name}:{line}: key {dotted((*location, name))} is written twice")
            seen.add(name)
            yield from ((place, line) for place, line in _lines(path, value, (*location, name)) if place != location)
            yield (*location, name), key.start_mark.line + 1
