"""Evidence: what the probe brought home, word for word. It decides nothing.

A bundle is a mapping from item name to :class:`Item`. On disk (``kiln validate --keep-evidence``, ``kiln check``) it is
a directory with ``manifest.json`` and one text file per item; over the wire it is one JSON line per item.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiles.errors import ParseError

SCHEMA = "kiln/evidence/v1"
AFTER_BURN_IN = "after-burn-in"  # a bundle within a bundle: what was looked at again once the GPUs had been loaded
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)  # a file is named after it, and the host chose it
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("source", "outcome", "stdout", "stderr", "error"), (str,)),
    "rc": (int, type(None)),
    "duration_s": (int, float),
    "truncated": (bool,),
}


class Outcome(str, enum.Enum):
    """How gathering one item ended. Only OK has output that may be parsed as a whole."""

    OK = "ok"  # ran to its end, whatever its exit status
    NOT_FOUND = "not-found"  # no such tool or file
    TIMEOUT = "timeout"  # killed, or could not be killed
    DENIED = "denied"  # no permission
    ERROR = "error"  # the collector itself broke; ``error`` says how


@dataclass(frozen=True)
class Item:
    """One piece of evidence. ``rc`` is the exit status of a command (None for a file); durations in seconds."""

    name: str
    source: str  # the command line or the file pattern, as a person would type it
    outcome: Outcome
    stdout: str = ""
    stderr: str = ""
    rc: int | None = None
    duration_s: float = 0.0
    error: str = ""
    truncated: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {**{key: getattr(self, key) for key in self.__dataclass_fields__}, "outcome": self.outcome.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Item:
        """Raises ParseError where a field is missing, unknown or of the wrong type."""
        if not isinstance(data, Mapping):
            raise ParseError("evidence", 0, "not an evidence item")
        unknown = set(data) - set(cls.__dataclass_fields__)
        if unknown or not {"name", "source", "outcome"} <= set(data):
            raise ParseError("evidence", 0, f"not an evidence item: fields {sorted(data)}")
        if not isinstance(data["name"], str) or not _NAME.fullmatch(data["name"]):
            raise ParseError("evidence", 0, f"item name {data['name']!r} is not a plain name")
        wrong = [key for key, kinds in _TYPES.items() if key in data and type(data[key]) not in kinds]
        if wrong:
            raise ParseError("evidence", 0, f"item {data['name']!r}: {wrong[0]} is {data[wrong[0]]!r:.40}")
        try:
            return cls(**{**data, "outcome": Outcome(data["outcome"])})
        except (TypeError, ValueError) as error:
            raise ParseError("evidence", 0, f"item {data.get('name')!r}: {error}") from error


@dataclass(frozen=True)
class Bundle:
    """All evidence of one host, and how it was gathered.

    ``root`` is the KILN_ROOT in effect, ``started`` a UTC ISO time by the host's clock, ``probe`` the digest of the
    probe that ran. ``complete`` is true only if the end marker arrived and the digest matched: without it, no verdict.
    """

    host: str
    items: Mapping[str, Item]
    root: str = "/"
    started: str = ""
    probe: str = ""
    complete: bool = True
    notes: tuple[str, ...] = field(default=())

    def write(self, directory: Path) -> None:
        """Write as a directory: ``manifest.json`` plus ``items/NAME.txt`` (stdout) and ``items/NAME.stderr.txt``."""
        folder = directory / "items"
        folder.mkdir(parents=True, exist_ok=True)
        entries = []
        for item in self.items.values():
            (folder / f"{item.name}.txt").write_text(item.stdout, encoding="utf-8", newline="")
            if item.stderr:
                (folder / f"{item.name}.stderr.txt").write_text(item.stderr, encoding="utf-8", newline="")
            entries.append({key: value for key, value in item.to_dict().items() if key not in ("stdout", "stderr")})
        manifest = {
            "schema": SCHEMA,
            "host": self.host,
            "root": self.root,
            "started": self.started,
            "probe": self.probe,
            "complete": self.complete,
            "notes": list(self.notes),
            "items": entries,
        }
        (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Bundle:
        """Read what :meth:`write` wrote. Raises ParseError naming the file that is missing or wrong."""
        path = directory / "manifest.json"
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ParseError("evidence", 0, f"{path}: {error}") from error
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            raise ParseError("evidence", 0, f"{path}: schema is not {SCHEMA}")
        entries, notes = manifest.get("items"), manifest.get("notes", [])
        if not isinstance(entries, list) or not isinstance(notes, list):
            raise ParseError("evidence", 0, f"{path}: 'items' or 'notes' is not a list")
        items = {}
        for entry in entries:
            name = str(entry.get("name", "")) if isinstance(entry, dict) else ""
            if not _NAME.fullmatch(name):
                raise ParseError("evidence", 0, f"{path}: item name {name!r} is not a plain name")
            text = directory / "items" / f"{name}.txt"
            errors = directory / "items" / f"{name}.stderr.txt"
            try:
                stdout = text.read_bytes().decode("utf-8", "replace")
                stderr = errors.read_bytes().decode("utf-8", "replace") if errors.exists() else ""
            except OSError as error:
                raise ParseError("evidence", 0, f"{text}: {error}") from error
            items[name] = Item.from_dict({**entry, "stdout": stdout, "stderr": stderr})
        return cls(
            host=str(manifest.get("host", directory.name)),
            items=items,
            root=str(manifest.get("root", "")),
            started=str(manifest.get("started", "")),
            probe=str(manifest.get("probe", "")),
            complete=manifest.get("complete") is True,
            notes=tuple(map(str, notes)),
        )
