"""What is going on, on stderr: a live table on a terminal, plain lines otherwise. Called from many threads."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from validation.report.text import line

LASTING = ("warning", "error", "failed")  # stages that must not vanish with the table
REPEAT_S = 60.0
ROWS = 20  # more hosts than this are counted by stage, and only the latest are listed


class Progress(Protocol):
    """A context in which stages of hosts are shown."""

    def __enter__(self) -> Progress: ...
    def __exit__(self, *exception: object) -> None: ...
    def __call__(self, host: str, stage: str, text: str) -> None: ...


def progress(stream: TextIO | None = None) -> Progress:
    """The progress that suits the stream (stderr): a live table on a terminal, else plain lines."""
    target = stream or sys.stderr
    return LiveTable(target) if target.isatty() else Lines(target)


@dataclass
class Lines:
    """One line for every change of a host's stage or text: ``  3.2s gpu-1  driver: waiting for nvidia-smi``.

    What stays the same is said again every ``REPEAT_S`` while it is reported: silence would look like a hang.
    """

    stream: TextIO
    _started: float = field(default_factory=time.monotonic)
    _last: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stream.flush()

    def __call__(self, host: str, stage: str, text: str) -> None:
        with self._lock:
            now = time.monotonic()
            *last, said = self._last.get(host, ("", "", 0.0))
            if last == [stage, text] and now - said < REPEAT_S:
                return
            self._last[host] = (stage, text, now)
            elapsed = now - self._started
            words = f"{line(stage)}: {line(text)}" if text else line(stage)
            self.stream.write(f"{elapsed:6.1f}s {line(host)}  {words}\n")
            self.stream.flush()


@dataclass
class _Row:
    stage: str
    text: str
    since: float
    changed: float


class LiveTable:
    """A table that is redrawn in place and removed at the end: the result says it better."""

    def __init__(self, stream: TextIO) -> None:
        self._rows: dict[str, _Row] = {}
        self._lock = threading.Lock()
        console = Console(file=stream, highlight=False)
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def __call__(self, host: str, stage: str, text: str) -> None:
        now = time.monotonic()
        with self._lock:
            since = self._rows[host].since if host in self._rows else now
            self._rows[host] = _Row(stage, text, since, now)
        if stage in LASTING:
            self._live.console.print(Text(f"{line(host)}  {line(stage)}: {line(text)}"))

    def _draw(self) -> RenderableType:
        now = time.monotonic()
        with self._lock:
            rows = dict(self._rows)
        shown = dict(sorted(rows.items(), key=lambda entry: -entry[1].changed)[:ROWS]) if len(rows) > ROWS else rows
        table = Table(box=None, pad_edge=False, show_header=False)
        for host, row in shown.items():
            table.add_row(
                Text(line(host), style="bold"),
                Text(line(row.stage), style="cyan"),
                Text(line(row.text)),
                f"{now - row.since:.0f} s",
            )
        if len(rows) <= ROWS:
            return table
        stages = Counter(line(row.stage) for row in rows.values())
        counted = ", ".join(f"{number} {stage}" for stage, number in stages.most_common())
        return Group(Text(f"{len(rows)} hosts: {counted}"), table)
