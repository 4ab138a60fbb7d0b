"""RDMA links that drop: rows with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.rdma_counters import RdmaFlaps
from validation.facts.rdma_counters import PortCounters, RdmaCounters
from validation.judge import judge_facts

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


def ports(*counters: dict[str, int]) -> RdmaCounters:
    return RdmaCounters(tuple(PortCounters(f"mlx5_{number}", found) for number, found in enumerate(counters)))


ROWS: list[tuple[Any, int, Callable[[Host], Host], list[str]]] = [
    (RdmaFlaps, 32, lambda h: h, ["PASS host: 32 RDMA ports; no error counted"]),
    (
        RdmaFlaps,
        0,
        lambda h: h.put(ports({"link_downed": 1, "symbol_error": 3}, {"link_downed": 0, "symbol_error": 4})),
        ["PASS host: 2 RDMA ports; counted since the driver was loaded: symbol_error 7"],
    ),
    (
        RdmaFlaps,
        0,
        lambda h: h.put(ports({"link_downed": 0}, {"link_downed": 9})),
        ["WARN mlx5_1: its link dropped 9 times since the driver was loaded"],
    ),
    (
        RdmaFlaps,
        0,
        lambda h: h.drop(RdmaCounters, "/sys/class/infiniband: not found"),
        ["NOT_APPLICABLE host: there is no RDMA port that counts"],
    ),
    (
        RdmaFlaps,
        32,
        lambda h: h.drop(RdmaCounters, "/sys/class/infiniband: not found"),
        ["UNKNOWN host: could not look: /sys/class/infiniband: not found"],
    ),
    (
        RdmaFlaps,
        0,
        lambda h: h.drop(RdmaCounters, "permission denied"),
        ["UNKNOWN host: could not look: permission denied"],
    ),
]


@pytest.mark.parametrize(("check", "efa", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, efa: int, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host("p5.48xlarge", efa_count=efa)).says(check()) == said


def test_counters_that_cannot_be_read_close_no_gate(host: Callable[..., Host]) -> None:
    silent = host("p5.48xlarge", efa_count=32).drop(RdmaCounters)
    findings = judge_facts(silent.facts(), silent.expected, "host", [RdmaFlaps()])
    assert [finding.required for finding in findings] == [False]
