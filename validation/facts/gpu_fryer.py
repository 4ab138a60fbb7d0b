"""gpu-fryer: the summary it prints per GPU, and its closing word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "gpu-fryer"
_GPU = re.compile(r"^\s*GPU #(\d+): +(\d+(?:\.\d+)?) Gflops(?:/s)? \(min: (\d+(?:\.\d+)?), max: (\d+(?:\.\d+)?)")
_THROTTLING = re.compile(r"Throttling HW: (true|false), Thermal SW: (true|false), Thermal HW: (true|false)")
_HEALTHY = re.compile(r"All GPUs seem healthy")
_UNHEALTHY = re.compile(r"(?:Some GPUs|GPU #?\d+).*(?:not|un)\s?healthy", re.I)


@dataclass(frozen=True)
class FriedGpu:
    """One GPU: mean, least and most GFLOPS, and whether anything throttled it."""

    index: int
    gflops: float
    gflops_min: float
    gflops_max: float
    throttled: bool = False


@dataclass(frozen=True)
class GpuFryer:
    gpus: tuple[FriedGpu, ...]
    said_healthy: bool


def parse(text: str) -> GpuFryer:
    """The summary. Raises ParseError where there is none, or no closing word after it."""
    gpus: dict[int, FriedGpu] = {}
    current, healthy, ended = -1, False, False
    for line in lines(text):
        match, throttling = _GPU.match(line), _THROTTLING.search(line)
        if match:
            current = int(match[1])
            gpus[current] = FriedGpu(current, float(match[2]), float(match[3]), float(match[4]))
        elif throttling and current in gpus:
            one = gpus[current]
            hot = "true" in throttling.groups()
            gpus[current] = FriedGpu(one.index, one.gflops, one.gflops_min, one.gflops_max, throttled=hot)
        healthy = healthy or bool(_HEALTHY.search(line))
        ended = ended or healthy or bool(_UNHEALTHY.search(line))
    if not gpus:
        raise ParseError(TOOL, 0, "no line 'GPU #N: X Gflops (min: ..., max: ...)'")
    if not ended:
        raise ParseError(TOOL, 0, "no closing word on the GPUs' health: the run did not end, or the text is cut short")
    return GpuFryer(tuple(gpus[index] for index in sorted(gpus)), healthy)
