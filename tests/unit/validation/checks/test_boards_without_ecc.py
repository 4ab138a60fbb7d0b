"""A desk's board by its name: no ECC is no fault there, where no profile says what the board has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from profiles.expectation import expect
from profiles.models import Expectation
from validation.checks.errors import EccUncorrected, RowRemap
from validation.checks.per_gpu import sold_without_ecc
from validation.checks.presence import GpuName
from validation.checks.settings import EccMode
from validation.facts.gpu import Ecc, Gpu, GpuInventory, RemappedRows, RetiredPages
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
CHECKS = (EccMode(), EccUncorrected(), RowRemap())


def verdicts(name: str, expected: Expectation) -> list[Verdict]:
    gpu = Gpu(
        index=0,
        name=name,
        ecc=Ecc(enabled=NONE, volatile_uncorrected=NONE),
        remapped_rows=RemappedRows(NONE, NONE, NONE, NONE),
        retired_pages=RetiredPages(NONE, NONE, NONE),
    )
    facts = Facts({GpuInventory: GpuInventory("test", (gpu,))})
    return [finding.verdict for check in CHECKS for finding in check.evaluate(facts, expected)]


def test_a_board_for_desks_needs_none() -> None:
    assert verdicts("NVIDIA GeForce RTX 3080", Expectation(instance_type="")) == [Verdict.NOT_APPLICABLE] * 3


def test_a_board_for_servers_does_and_a_profile_decides_over_any_name() -> None:
    assert verdicts("NVIDIA H100 80GB HBM3", Expectation(instance_type="")) == [Verdict.UNKNOWN] * 3
    assert verdicts("NVIDIA GeForce RTX 3080", expect("p5.48xlarge")) == [Verdict.UNKNOWN] * 3


@pytest.mark.parametrize(
    ("name", "desk"),
    [
        ("GeForce GTX 1080 Ti", True),
        ("NVIDIA RTX A6000", True),
        ("Quadro P2000", True),
        ("NVIDIA TITAN V", True),
        ("GRID T4-4C", True),
        ("NVIDIA L40S-8Q", True),
        ("NVIDIA GB10", True),
        ("Orin (nvgpu)", True),
        ("NVIDIA GB200", False),
        ("NVIDIA A100-SXM4-80GB", False),
        ("NVIDIA A100-PCIE-40GB", False),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", False),
        ("Tesla V100-SXM2-16GB", False),
        ("NVIDIA L4", False),
    ],
)
def test_boards_are_told_by_their_names(name: str, desk: bool) -> None:
    assert sold_without_ecc(Gpu(index=0, name=name)) == (name if desk else "")


def test_a_name_that_is_cut_is_told_by_its_brand() -> None:
    assert sold_without_ecc(Gpu(index=0, brand="GeForce")) == "GeForce"
    assert sold_without_ecc(Gpu(index=0, name="Graphics Device", brand="GeForce")) == "Graphics Device"
    assert sold_without_ecc(Gpu(index=0, brand="Tesla")) == ""


@pytest.mark.parametrize(
    ("instance_type", "opens"),
    [
        ("g5g.metal", True),
        ("g5g.16xlarge", False),
        ("ecs.ebmgn9g.64xlarge", True),
        ("ecs.gn9gc.4xlarge", True),
        ("g7.2xlarge", False),
    ],
)
def test_ecc_that_is_off_as_the_machine_is_delivered_warns_and_elsewhere_closes_the_gate(
    host: Callable[[str], Host], instance_type: str, opens: bool
) -> None:
    def verdict(**ecc: object) -> Verdict:
        one = host(instance_type)
        one.every(ecc=replace(one.gpus[0].ecc, **ecc))  # type: ignore[arg-type]
        return combine(judge_facts(one.facts(), one.expected, "host"))

    assert verdict(enabled=False, volatile_uncorrected=NONE).opens_gate is opens
    assert verdict(enabled=True).opens_gate
    assert verdict(enabled=True, volatile_uncorrected=1) is Verdict.FAIL


def test_what_the_stack_asked_for_is_excused_on_no_type(host: Callable[..., Host]) -> None:
    def verdict(asked: bool | None, found: bool) -> Verdict:
        one = host("g5g.metal", ecc=asked)
        one.every(ecc=replace(one.gpus[0].ecc, enabled=found))
        return combine(judge_facts(one.facts(), one.expected, "host", [GpuName(), EccMode()]))

    assert verdict(asked=True, found=False) is Verdict.FAIL
    assert verdict(asked=False, found=True) is Verdict.FAIL
    assert verdict(asked=False, found=False) is Verdict.PASS
