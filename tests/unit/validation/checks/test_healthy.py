"""A healthy host of any type of the catalogue opens the gate: what its profile does not know warns at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from profiles import catalog
from validation.checks import CHECKS
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

WITH_CAPTURES = (
    "p5.48xlarge",
    "p4d.24xlarge",
    "p3.16xlarge",
    "g5.48xlarge",
    "g5.xlarge",
    "g6.xlarge",
    "g6e.xlarge",
    "g4dn.xlarge",
)


@pytest.mark.parametrize("name", catalog.types())
def test_a_healthy_host_of_any_type_opens_the_gate(host: Callable[..., Host], name: str) -> None:
    healthy = host(name)
    findings = judge_facts(healthy.facts(), healthy.expected, "host", CHECKS)
    trouble = [f for f in findings if f.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)]
    assert [f for f in trouble if f.required] == []
    assert combine(findings) in (Verdict.PASS, Verdict.WARN)


@pytest.mark.parametrize("name", WITH_CAPTURES)
def test_a_healthy_host_of_a_type_with_captures_warns_of_nothing(host: Callable[..., Host], name: str) -> None:
    healthy = host(name)
    assert combine(judge_facts(healthy.facts(), healthy.expected, "host", CHECKS)) is Verdict.PASS


@pytest.mark.parametrize("name", catalog.types())
def test_a_host_with_a_gpu_too_few_closes_the_gate_on_every_type(host: Callable[..., Host], name: str) -> None:
    broken = host(name).without(0)
    assert combine(judge_facts(broken.facts(), broken.expected, "host", CHECKS)) is Verdict.FAIL
