"""Broken in random places, every real output still gets an explanation: no traceback, and no check that crashes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from validation.explain import explain

ROUNDS = 12
SMALL = 20_000  # bytes; the large captures are the same formats
LETTERS = '0123456789-.:,|xX NAé\t"{}[]<>='


def broken(lines: list[str], others: list[str], rng: random.Random) -> str:
    """A few of: a line gone, cut, doubled, from another tool, one letter changed, the head or the tail missing."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        text = lines[at]
        place = rng.randrange(len(text) + 1)
        lines = rng.choice(
            (
                lines[:at] + lines[at + 1 :],
                [*lines[:at], text[:place], *lines[at + 1 :]],
                [*lines[:at], text, *lines[at:]],
                [*lines[:at], rng.choice(others), *lines[at + 1 :]],
                [*lines[:at], text[:place] + rng.choice(LETTERS) + text[place + 1 :], *lines[at + 1 :]],
                [*lines[:at], text.replace("0", rng.choice(("", "-", "9" * 30, "N/A", "1.2.3")), 1), *lines[at + 1 :]],
                lines[:at],
                lines[at:],
            )
        ) or [""]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_broken_output_is_explained_without_a_crash(samples: Path, seed: int) -> None:
    rng = random.Random(seed)
    texts = [path.read_bytes().decode() for path in sorted(samples.iterdir()) if path.stat().st_size < SMALL]
    others = [line for text in texts for line in text.split("\n")]
    for text in texts:
        changed = broken(text.split("\n"), others, rng)
        explanation = explain(changed, profile=rng.choice((None, "p5.48xlarge", "g5.xlarge")))
        crashed = [finding.message for finding in explanation.findings if "crashed" in finding.message]
        assert not crashed, (crashed, changed)
        assert explanation.to_dict()["verdict"]
