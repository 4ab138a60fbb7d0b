"""Repairs beyond memory rows, and the infoROM: rows with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.repairs import GpuRepair, Inforom
from validation.facts.gpu import DriverFault, GpuInventory, Repairs
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
REFUSED = Missing(Reason.COULD_NOT_LOOK, "NVML_ERROR_NO_PERMISSION")
BROKEN = Missing(Reason.FAULT, "NVML_ERROR_UNKNOWN")
GOOD = Repairs(channel_pending=False, tpc_pending=False, unrepairable_memory=NONE, inforom_corrupt=False)
WARNING = "WARNING: infoROM is corrupted at gpu 0000:86:00.0"
GONE = ["UNKNOWN host: could not look: tool: not found"]

ROWS: list[tuple[Any, Callable[[Host], Host], list[str]]] = [
    (GpuRepair, lambda h: h.every(repairs=GOOD), ["PASS host: no repair pending on 8 GPUs"]),
    (
        GpuRepair,
        lambda h: h.every(repairs=GOOD).gpu(2, repairs=Repairs(channel_pending=True, tpc_pending=True)),
        ["FAIL GPU2: repair pending: memory channel, TPC"],
    ),
    (
        GpuRepair,
        lambda h: h.every(repairs=GOOD).gpu(5, repairs=Repairs(False, False, unrepairable_memory=True)),
        ["FAIL GPU5: the driver says that it has memory which cannot be repaired"],
    ),
    (
        GpuRepair,
        lambda h: h.every(repairs=Repairs(ABSENT, ABSENT, ABSENT)),
        ["NOT_APPLICABLE host: the driver does not tell: memory channel, TPC, unrepairable memory"],
    ),
    (
        GpuRepair,
        lambda h: h.every(repairs=GOOD).gpu(1, repairs=Repairs(False, BROKEN, False)),
        ["FAIL GPU1: TPC: fault (NVML_ERROR_UNKNOWN)"],
    ),
    (GpuRepair, lambda h: h.drop(GpuInventory), GONE),
    (Inforom, lambda h: h.every(repairs=GOOD), ["PASS host: the infoROM is valid on 8 GPUs"]),
    (
        Inforom,
        lambda h: h.every(repairs=GOOD).gpu(4, repairs=Repairs(inforom_corrupt=True)),
        ["FAIL GPU4: the infoROM is corrupted: its checksums are wrong"],
    ),
    (
        Inforom,
        lambda h: h.every(repairs=GOOD).driver(warned=("0000:86:00.0",)),
        ["FAIL GPU3: the infoROM is corrupted: nvidia-smi warns of it"],
    ),
    (
        Inforom,
        lambda h: h.driver(warned=("0000:86:00.0",)).gpu(3, repairs=Repairs(inforom_corrupt=True)),
        ["FAIL GPU3: the infoROM is corrupted: nvidia-smi warns of it"],
    ),
    (
        Inforom,
        lambda h: h.drop(GpuInventory).put(DriverFault("nvidia-smi", "inforom-corrupt", WARNING, "0000:86:00.0")),
        [f"FAIL 0000:86:00.0: the infoROM is corrupted: {WARNING}"],
    ),
    (Inforom, lambda h: h, ["NOT_APPLICABLE host: the driver does not tell: infoROM"]),
    (
        Inforom,
        lambda h: h.every(repairs=Repairs(inforom_corrupt=REFUSED)).only(1),
        ["UNKNOWN GPU0: infoROM: could not look (NVML_ERROR_NO_PERMISSION)"],
    ),
    (Inforom, lambda h: h.drop(GpuInventory), GONE),
]


@pytest.mark.parametrize(("check", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host("p5.48xlarge")).says(check()) == said


def test_what_the_driver_refuses_to_tell_of_it_closes_no_gate(host: Callable[..., Host]) -> None:
    from validation.judge import judge_facts

    refused = host("g5.xlarge").every(repairs=Repairs(REFUSED, REFUSED, REFUSED, REFUSED))
    findings = judge_facts(refused.facts(), refused.expected, "host", [GpuRepair(), Inforom()])
    assert [finding.required for finding in findings] == [False, False]
