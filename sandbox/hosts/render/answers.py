"""What a rendered host consists of: answers of tools, files below its root, and the stub libraries' description."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """What a tool prints and how it ends."""

    stdout: str = ""
    stderr: str = ""
    rc: int = 0


@dataclass(frozen=True)
class Rendered:
    """``answers`` by file name (``nvidia-smi/topo-m``), ``root`` by path below the host's root, ``machine`` as text."""

    answers: dict[str, Answer] = field(default_factory=dict)
    root: dict[str, str | bytes] = field(default_factory=dict)
    machine: str = ""
