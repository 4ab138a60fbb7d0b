"""``kiln:index:Healthy``: exists only while the gate is open. What must wait for health depends on it.

The gate itself records its verdict and succeeds, so depending on the gate waits for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INPUTS = frozenset({"healthy", "judgedIn", "recheck", "summary"})


def check(inputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Property and reason for each input that is wrong."""
    wrong = [
        (name, "no such input; pass the gate itself: Healthy(name, gate)") for name in inputs if name not in INPUTS
    ]
    return wrong + [
        (name, "missing; pass the gate itself: Healthy(name, gate)") for name in ("healthy",) if name not in inputs
    ]


def closed(inputs: Mapping[str, Any]) -> str:
    """Why the gate is closed, in one line; empty where it is open and was judged in this very run."""
    if inputs.get("healthy") is not True:
        summary = " | ".join(str(inputs.get("summary") or "no verdict").splitlines())
        return f"the gate is closed: {summary}"
    if not inputs.get("recheck") or inputs.get("judgedIn") != inputs.get("recheck"):
        return "the gate is closed: the hosts were not judged in this run; run pulumi up without --target or --exclude"
    return ""


def outputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept: that it was healthy, and in which run."""
    return {"healthy": True, "judgedIn": inputs["judgedIn"]}
