"""Counters: rows for pass, trouble, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.counters import EccCorrected, PcieReplays
from validation.facts.gpu import Ecc, GpuInventory, PcieLink
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
DENIED = Missing(Reason.COULD_NOT_LOOK, "no permission")
ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.gpu(0, ecc=Ecc(True, 177, 0)),
        ["PASS host: corrected ECC errors within the limit on 8 GPUs"],
    ),
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.gpu(0, ecc=Ecc(True, 20_000_001, 0)),
        ["WARN GPU0: 20000001 corrected ECC errors since the driver was loaded"],
    ),
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.every(ecc=Ecc()),
        ["NOT_APPLICABLE host: the driver counts no corrected errors here"],
    ),
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.gpu(0, ecc=Ecc(True, DENIED, 0)),
        ["UNKNOWN GPU0: corrected ECC errors: could not look (no permission)"],
    ),
    (EccCorrected, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (PcieReplays, "p5.48xlarge", lambda h: h, ["PASS host: PCIe replays within the limit on 8 GPUs"]),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.gpu(0, pcie=PcieLink(replays=81)),
        ["WARN GPU0: 81 PCIe replays since the driver was loaded"],
    ),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.every(pcie=PcieLink(replays=ABSENT)),
        ["NOT_APPLICABLE host: the driver counts no PCIe replays here"],
    ),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.gpu(0, pcie=PcieLink(replays=DENIED)),
        ["UNKNOWN GPU0: PCIe replays: could not look (no permission)"],
    ),
    (PcieReplays, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_counters(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
