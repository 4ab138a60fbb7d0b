"""What bounds a GPU: rows for pass, trouble, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.limits import MaxClock, PowerLimit, Temperature
from validation.facts.gpu import GpuInventory
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
DENIED = Missing(Reason.COULD_NOT_LOOK, "[Insufficient Permissions]")
GONE = ["UNKNOWN host: could not look: tool: not found"]

ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (PowerLimit, "p5.48xlarge", lambda h: h, ["PASS host: 700 W on each of 8 GPUs"]),
    (PowerLimit, "p5.48xlarge", lambda h: h.gpu(4, power_limit_w=500.0), ["WARN GPU4: power limit is 500 W"]),
    (
        PowerLimit,
        "p5.48xlarge",
        lambda h: h.gpu(4, power_limit_w=NONE),
        ["UNKNOWN GPU4: power limit: not applicable (N/A)"],
    ),
    (
        PowerLimit,
        "g5.xlarge",
        lambda h: h.profiled(gpu={"power_limit_w": None}).gpu(0, power_limit_default_w=300.0, power_limit_w=250.0),
        ["WARN GPU0: power limit is 250 W"],
    ),
    (
        PowerLimit,
        "g5.xlarge",
        lambda h: h.profiled(gpu={"power_limit_w": None}).gpu(0, power_limit_default_w=ABSENT),
        ["UNKNOWN GPU0: the profile of g5.xlarge gives no power limit, so there is nothing to judge against"],
    ),
    (PowerLimit, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
    (Temperature, "p5.48xlarge", lambda h: h, ["PASS host: at most 31 degrees C on 8 GPUs"]),
    (
        Temperature,
        "p5.48xlarge",
        lambda h: h.gpu(0, temperature_c=88.0, tlimit_margin_c=-1.0),
        ["FAIL GPU0: 88 degrees C, -1 left to the slowdown"],
    ),
    (
        Temperature,
        "g4dn.xlarge",
        lambda h: h.gpu(0, tlimit_margin_c=ABSENT, slowdown_c=93.0),
        ["PASS host: at most 31 degrees C on 1 GPU"],
    ),
    (
        Temperature,
        "g4dn.xlarge",
        lambda h: h.gpu(0, temperature_c=94.0, tlimit_margin_c=ABSENT, slowdown_c=93.0),
        ["FAIL GPU0: 94 degrees C, slowdown begins at 93"],
    ),
    (
        Temperature,
        "g4dn.xlarge",
        lambda h: h.gpu(0, tlimit_margin_c=NONE, slowdown_c=NONE),
        ["WARN GPU0: 31 degrees C; the driver prints neither a limit nor a margin"],
    ),
    (
        Temperature,
        "g4dn.xlarge",
        lambda h: h.gpu(0, temperature_c=NONE),
        ["UNKNOWN GPU0: temperature: not applicable (N/A)"],
    ),
    (Temperature, "g4dn.xlarge", lambda h: h.drop(GpuInventory), GONE),
    (
        PowerLimit,
        "p5.48xlarge",
        lambda h: h.every(power_limit_w=400.0).expecting(power_limit_w=400.0),
        ["PASS host: 400 W on each of 8 GPUs"],
    ),
    (
        PowerLimit,
        "p5.48xlarge",
        lambda h: h.every(power_limit_w=400.2).gpu(1, power_limit_w=700.0).expecting(power_limit_w=400.0),
        ["FAIL GPU1: power limit is 700 W, 400 W was asked for"],
    ),
    (MaxClock, "p5.48xlarge", lambda h: h, ["PASS host: 1980 MHz on each of 8 GPUs"]),
    (
        MaxClock,
        "p5.48xlarge",
        lambda h: h.gpu(2, sm_clock_max_mhz=1755.0),
        ["WARN GPU2: its highest clock is 1755 MHz"],
    ),
    (
        MaxClock,
        "p5.48xlarge",
        lambda h: h.every(sm_clock_max_mhz=NONE),
        ["NOT_APPLICABLE host: the driver does not tell the highest clock"],
    ),
    (
        MaxClock,
        "p5.48xlarge",
        lambda h: h.profiled(gpu={"sm_clock_max_mhz": None}),
        ["NOT_APPLICABLE host: no source tells this board's highest clock"],
    ),
    (
        MaxClock,
        "p5.48xlarge",
        lambda h: h.gpu(2, sm_clock_max_mhz=DENIED),
        ["UNKNOWN GPU2: highest clock: could not look ([Insufficient Permissions])"],
    ),
    (MaxClock, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
]


@pytest.mark.parametrize(("check", "name", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, name: str, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host(name)).says(check()) == said
