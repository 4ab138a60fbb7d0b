"""What a probe wrote, read back into evidence. Pure: bytes in, a bundle out.

Reading starts at the ``start`` line with this run's nonce, so that banners and shell profiles before it are no matter,
and ends at the ``end`` line, not at the end of the stream. Lines in between that are not the probe's are ignored: if
one has damaged a line of the probe, the digest does not match and the bundle is incomplete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from profiles.errors import ParseError
from validation.evidence import Bundle, Item

LINE_MAX = 64 * 2**20  # a line longer than any item's cap is not the probe's
MARK = b'"kiln":"'


class Transcript:
    """Feed it what arrives. ``ended`` is true once the end marker was read; ``started`` once the start marker was."""

    def __init__(self, nonce: str, *, on_progress: Callable[[Mapping[str, Any]], None] | None = None) -> None:
        self.started = False
        self.ended = False
        self.header: Mapping[str, Any] = {}
        self.items: dict[str, Item] = {}
        self.problems: list[str] = []
        self._nonce = nonce
        self._on_progress = on_progress
        self._digest = hashlib.sha256()
        self._tail = bytearray()
        self._trailer: Mapping[str, Any] = {}

    def feed(self, data: bytes) -> bool:
        """Take more bytes; true once there is nothing more to wait for."""
        searched = len(self._tail)
        self._tail += data
        if b"\n" in data and not self.ended:
            lines = bytes(self._tail).split(b"\n") if searched else data.split(b"\n")
            self._tail = bytearray(lines.pop())
            for line in lines:
                self._line(line + b"\n")
        if len(self._tail) > LINE_MAX:
            self._tail.clear()
        return self.ended

    def bundle(self, host: str) -> Bundle:
        """The evidence; ``complete`` only if the end marker, its count and its digest are right."""
        complete = self.ended and not self.problems
        if not self.started:
            self.problems.append("the probe did not start")
        elif not self.ended:
            self.problems.append(f"the probe stopped after {len(self.items)} items, without its end marker")
        return Bundle(
            host=host,
            items=dict(self.items),
            root=str(self.header.get("root", "")),
            started=str(self.header.get("started", "")),
            probe=str(self.header.get("probe", "")),
            complete=complete,
            notes=tuple(self.problems),
        )

    def _line(self, line: bytes) -> None:
        record = self._record(line)
        if record is None or self.ended:
            return
        event = record.get("event")
        if event == "start" and not self.started:
            self.started = True
            self.header = record
        elif self.started and event == "evidence":
            self._evidence(line, record)
        elif self.started and event == "progress" and self._on_progress:
            self._on_progress(record)
        elif self.started and event == "end":
            self._end(record)

    def _record(self, line: bytes) -> Mapping[str, Any] | None:
        """The line as a record of this run, or None for anything else."""
        if MARK not in line:
            return None
        try:
            record = json.loads(line)
        except ValueError:
            return None
        return record if isinstance(record, dict) and record.get("kiln") == self._nonce else None

    def _evidence(self, line: bytes, record: Mapping[str, Any]) -> None:
        self._digest.update(line)
        try:
            item = Item.from_dict(record.get("item") or {})
        except ParseError as error:
            self.problems.append(str(error))
            return
        if item.name in self.items:
            self.problems.append(f"item {item.name} came twice")
        self.items[item.name] = item
        if self._on_progress:
            self._on_progress({"event": "evidence", "item": item.name, "count": len(self.items)})

    def _end(self, record: Mapping[str, Any]) -> None:
        self.ended = True
        if record.get("items") != len(self.items) or record.get("digest") != self._digest.hexdigest():
            self.problems.append("the evidence does not match the digest in its end marker")
