"""Seconds of the wall and of the processor. The processor's count here: this machine runs the hosts' work too."""

from __future__ import annotations

import contextlib
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass
class Taken:
    """``wall_s`` from begin to end; ``own_s`` processor seconds of this process; ``children_s`` of the children that
    ended meanwhile and were waited for, and of theirs."""

    wall_s: float = 0.0
    own_s: float = 0.0
    children_s: float = 0.0


@contextlib.contextmanager
def taken() -> Iterator[Taken]:
    """What the block took, filled in at its end."""
    result = Taken()
    begun, own, children = time.monotonic(), _cpu_s(resource.RUSAGE_SELF), _cpu_s(resource.RUSAGE_CHILDREN)
    yield result
    result.wall_s = time.monotonic() - begun
    result.own_s = _cpu_s(resource.RUSAGE_SELF) - own
    result.children_s = _cpu_s(resource.RUSAGE_CHILDREN) - children


def median(values: Sequence[float]) -> float:
    """Rounded to a millisecond."""
    return round(statistics.median(values), 3)


def peak_memory_mib() -> float:
    """The most that this process has had so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
