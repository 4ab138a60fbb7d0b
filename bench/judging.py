"""How fast evidence is parsed and judged, without any network."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from profiles.models import Expectation
from validation.evidence import Bundle
from validation.facts.assemble import assemble
from validation.judge import judge_facts

FOR_S = 1.0


def per_second(folder: Path, expected: Expectation) -> tuple[float, float]:
    """Hosts a second from a kept bundle: (parsed, judged)."""
    bundle = Bundle.read(folder)
    facts = assemble(bundle)
    return _rate(lambda: assemble(bundle)), _rate(lambda: judge_facts(facts, expected, "host"))


def _rate(work: Callable[[], object]) -> float:
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < FOR_S:
        work()
        count += 1
    return count / (time.monotonic() - begun)
