"""The lines the probe writes: JSON, one a line, each with the client's nonce, pure ASCII.

``start`` (root, time, probe digest), ``progress``, ``evidence`` (one item), and ``end`` with the number of items and
the digest over the evidence lines. A login shell may print anything before ``start``; without ``end`` the client
judges nothing.
"""

import hashlib
import json
import os
import select
from typing import Any, Dict

STALLED_S = 120.0  # longer than the client listens: a connection that takes nothing for so long has no reader


class Wire:
    """Writes to a file descriptor. Raises BrokenPipeError where the client is gone or takes nothing any more."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        self.descriptor = descriptor
        self.nonce = nonce
        self.digest = hashlib.sha256()
        self.items = 0

    def start(self, header: Dict[str, Any]) -> None:
        # A line break first: whatever a login script printed last may not have ended its line.
        self._send(b"\n" + self._line("start", header))

    def progress(self, fields: Dict[str, Any]) -> None:
        self._send(self._line("progress", fields))

    def evidence(self, item: Dict[str, Any]) -> None:
        line = self._line("evidence", {"item": item})
        self.digest.update(line)
        self.items += 1
        self._send(line)

    def end(self) -> None:
        self._send(self._line("end", {"items": self.items, "digest": self.digest.hexdigest()}))

    def _line(self, event: str, fields: Dict[str, Any]) -> bytes:
        record = dict(fields, kiln=self.nonce, event=event)
        return json.dumps(record, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"

    def _send(self, data: bytes) -> None:
        while data:
            # A descriptor that is shared may have been made non-blocking.
            if not select.select([], [self.descriptor], [], STALLED_S)[1]:
                raise BrokenPipeError("nothing was read for %g s" % STALLED_S)
            data = data[os.write(self.descriptor, data) :]
