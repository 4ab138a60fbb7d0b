"""Why a container did not get its GPU: the words of Docker, Podman, containerd and NVIDIA's container library."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "the container runtime's error"
# Texts of Docker 20 to 28, Podman 4 and 5, containerd, libnvidia-container 1.13 to 1.18. The first that matches names
# the line; a fault of the driver that they pass on is validation/facts/driver_fault.py's.
_KINDS = (
    ("no-runtime", re.compile(r'could not select device driver "[^"]*" with capabilities: \[\[.*gpu|'
                              r"(?:unknown or invalid|[Uu]nknown) runtime (?:name|specified):? nvidia", re.I)),
    ("no-cdi", re.compile(r"unresolvable CDI devices|failed to inject CDI devices|CDI device injection failed", re.I)),
    ("driver-too-old", re.compile(r"nvidia-container-cli: requirement error: unsatisfied condition", re.I)),
    ("no-such-gpu", re.compile(r"nvidia-container-cli: device error: .*(?:unknown device|no such device)", re.I)),
    ("not-given", re.compile(r'exec: "(?:/usr/bin/)?nvidia-smi": executable file not found', re.I)),
    ("no-socket", re.compile(r"/nvidia-persistenced/socket: no such file", re.I)),
    ("library", re.compile(r"nvidia-container-cli: [\w -]+ error: ", re.I)),
)  # fmt: skip
KINDS = tuple(dict.fromkeys(kind for kind, _ in _KINDS))
_LINE_MAX = 8000


@dataclass(frozen=True)
class ContainerError:
    """One line. ``kind`` is one of ``KINDS``; ``text`` is the part of the line from the words that name it."""

    kind: str
    text: str


def is_it(text: str) -> bool:
    return _find(text) is not None


def parse(text: str) -> ContainerError:
    """The first line that says why. Raises ParseError where none does."""
    found = _find(text)
    if found is None:
        raise ParseError(TOOL, 0, "no line in which a container runtime says why a container got no GPU")
    return found


def _find(text: str) -> ContainerError | None:
    for line in lines(text):
        for kind, pattern in _KINDS:
            match = pattern.search(line[:_LINE_MAX])
            if match:
                return ContainerError(kind, line[match.start() : _LINE_MAX].strip()[:300])
    return None
