"""What GPUs remember: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.errors import EccUncorrected, RecoveryAction, RowRemap, Throttle
from validation.facts.gpu import Ecc, GpuInventory, RemappedRows, RetiredPages
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
DENIED = Missing(Reason.COULD_NOT_LOOK, "[Insufficient Permissions]")
LOST = Missing(Reason.FAULT, "GPU is lost")
REFUSED = Missing(Reason.COULD_NOT_LOOK, "NVML_ERROR_INVALID_ARGUMENT")
NO_ROWS = RemappedRows(NONE, NONE, NONE, NONE)


def ecc(
    uncorrected: int | Missing, lifetime: int | Missing = 0, *, on: bool | Missing = True, sram: bool = False
) -> Ecc:
    return Ecc(on, 0, uncorrected, 0, lifetime, sram)


def without_ecc(h: Host) -> Host:
    board = h.profile.gpu.ecc
    assert board is not None
    return h.profiled(gpu={"ecc": board.model_copy(update={"value": False})}).every(ecc=ecc(NONE, NONE, on=NONE))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (EccUncorrected, "p5.48xlarge", lambda h: h, ["PASS host: no uncorrectable ECC error on 8 GPUs"]),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.expecting(profile=None),
        ["PASS host: no uncorrectable ECC error on 8 GPUs"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(1)),
        ["FAIL GPU4: 1 uncorrectable ECC error since the driver was loaded"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: without_ecc(h).gpu(4, ecc=ecc(0)),
        [
            f"UNKNOWN GPU{index}: this board has no ECC, but others of its kind do tell"
            for index in range(8)
            if index != 4
        ],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(5, 8)),
        ["FAIL GPU4: 5 uncorrectable ECC errors since the driver was loaded"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(0, 3)),
        ["WARN GPU4: 3 uncorrectable ECC errors over the board's life, none since driver load"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(0, sram=True)),
        ["FAIL GPU4: the driver says that the SRAM error threshold is exceeded"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(NONE, NONE, on=False)),
        ["UNKNOWN GPU4: ECC is off, so errors are not counted"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(NONE, NONE)),
        ["UNKNOWN GPU4: uncorrectable ECC errors: not applicable (N/A)"],
    ),
    (
        EccUncorrected,
        "p5.48xlarge",
        lambda h: h.gpu(4, ecc=ecc(DENIED)),
        ["UNKNOWN GPU4: uncorrectable ECC errors: could not look ([Insufficient Permissions])"],
    ),
    (EccUncorrected, "g5.xlarge", without_ecc, ["NOT_APPLICABLE host: this board has no ECC"]),
    (EccUncorrected, "g5.xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (RowRemap, "p5.48xlarge", lambda h: h, ["PASS host: no repair pending or failed on 8 GPUs"]),
    (RowRemap, "g5.xlarge", lambda h: h, ["PASS host: no repair pending or failed on 1 GPU"]),
    (RowRemap, "g4dn.xlarge", lambda h: h, ["PASS host: no repair pending or failed on 1 GPU"]),
    (RowRemap, "p3.16xlarge", lambda h: h, ["PASS host: no repair pending or failed on 8 GPUs"]),
    (
        RowRemap,
        "p3.16xlarge",
        lambda h: h.expecting(profile=None),
        ["PASS host: no repair pending or failed on 8 GPUs"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.expecting(profile=None),
        ["PASS host: no repair pending or failed on 8 GPUs"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.gpu(2, remapped_rows=RemappedRows(177, 0, True, False)),
        ["FAIL GPU2: a row remap is pending (177 correctable, 0 uncorrectable)"],
    ),
    (
        RowRemap,
        "g6f.large",  # a share of a board, which is not known to tell
        lambda h: h.gpu(0, remapped_rows=RemappedRows(0, 1, False, True)),
        ["FAIL GPU0: a row remap failed"],
    ),
    (
        RowRemap,
        "g6f.large",
        lambda h: h.gpu(0, retired_pages=RetiredPages(0, 1, True)),
        ["FAIL GPU0: a page retirement is pending (0 correctable, 1 uncorrectable)"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.gpu(2, remapped_rows=RemappedRows(0, 8, True, True)),
        ["FAIL GPU2: a row remap failed"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.gpu(2, remapped_rows=RemappedRows(3, 2, False, False)),
        ["PASS host: no repair pending or failed on 8 GPUs"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.gpu(2, remapped_rows=RemappedRows(512, 1, False, False)),
        ["FAIL GPU2: 513 rows are remapped, more than 512"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.gpu(2, remapped_rows=NO_ROWS),
        ["UNKNOWN GPU2: failed row remap: not applicable (N/A)"],
    ),
    (
        RowRemap,
        "p4d.24xlarge",
        lambda h: h.gpu(2, remapped_rows=RemappedRows(0, 0, DENIED, False)),
        ["UNKNOWN GPU2: pending row remap: could not look ([Insufficient Permissions])"],
    ),
    (
        RowRemap,
        "g5.xlarge",
        lambda h: h.gpu(0, remapped_rows=NO_ROWS, mig_enabled=True),
        ["WARN GPU0: row remapping cannot be read while MIG is on"],
    ),
    (
        RowRemap,
        "p3.16xlarge",
        lambda h: h.gpu(1, retired_pages=RetiredPages(60, 5, False)),
        ["FAIL GPU1: 65 pages are retired, 62 or more"],
    ),
    (
        RowRemap,
        "p3.16xlarge",
        lambda h: h.gpu(4, retired_pages=RetiredPages(2, 4, True)),
        ["FAIL GPU4: a page retirement is pending (2 correctable, 4 uncorrectable)"],
    ),
    (
        RowRemap,
        "p3.16xlarge",
        lambda h: h.gpu(4, retired_pages=RetiredPages(2, ABSENT, False)),
        ["UNKNOWN GPU4: retired pages (double bit): absent"],
    ),
    (
        RowRemap,
        "p3.16xlarge",
        lambda h: h.gpu(4, retired_pages=RetiredPages(NONE, NONE, NONE)),
        ["UNKNOWN GPU4: pending page retirement: not applicable (N/A)"],
    ),
    (
        RowRemap,
        "g4dn.xlarge",
        lambda h: h.profiled(gpu={"memory_repair": h.profile.gpu.memory_repair.model_copy(update={"value": "none"})}),
        ["NOT_APPLICABLE host: this board repairs no memory by itself"],
    ),
    (RowRemap, "g4dn.xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (RecoveryAction, "p5.48xlarge", lambda h: h, ["PASS host: the driver asks for no recovery of 8 GPUs"]),
    (
        RecoveryAction,
        "p5.48xlarge",
        lambda h: h.gpu(7, recovery_action="Reset"),
        ["FAIL GPU7: the driver asks for: Reset"],
    ),
    (RecoveryAction, "p5.48xlarge", lambda h: h.gpu(7, recovery_action="9"), ["FAIL GPU7: the driver asks for: 9"]),
    (
        RecoveryAction,
        "p5.48xlarge",
        lambda h: h.every(recovery_action=ABSENT).driver(driver_version="550.163.01"),
        ["NOT_APPLICABLE host: driver 550.163.01 does not report it (new in 565.57)"],
    ),
    (
        RecoveryAction,
        "g5.xlarge",
        lambda h: h.every(recovery_action=REFUSED).driver(driver_version="535.288.01"),
        ["NOT_APPLICABLE host: driver 535.288.01 does not report it (new in 565.57)"],
    ),
    (
        RecoveryAction,
        "g5.xlarge",
        lambda h: h.every(recovery_action=LOST).driver(driver_version="535.288.01"),
        ["FAIL GPU0: recovery action: fault (GPU is lost)"],
    ),
    (
        RecoveryAction,
        "g5.xlarge",
        lambda h: h.every(recovery_action=ABSENT),  # driver 580 has the field
        ["UNKNOWN GPU0: recovery action: absent"],
    ),
    (
        RecoveryAction,
        "p5.48xlarge",
        lambda h: h.gpu(7, recovery_action=NONE),
        ["WARN GPU7: the driver reports no recovery action (N/A): not asked for is not known"],
    ),
    (
        RecoveryAction,
        "p5.48xlarge",
        lambda h: h.gpu(7, recovery_action=DENIED),
        ["UNKNOWN GPU7: recovery action: could not look ([Insufficient Permissions])"],
    ),
    (RecoveryAction, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (Throttle, "p5.48xlarge", lambda h: h, ["PASS host: no slowdown on 8 GPUs (gpu_idle)"]),
    (
        Throttle,
        "p5.48xlarge",
        lambda h: h.every(throttle_reasons=frozenset()),
        ["PASS host: no slowdown on 8 GPUs (no reason active)"],
    ),
    (
        Throttle,
        "p5.48xlarge",
        lambda h: h.every(throttle_reasons=frozenset({"sw_power_cap", "applications_clocks_setting"})),
        ["PASS host: no slowdown on 8 GPUs (applications_clocks_setting, sw_power_cap)"],
    ),
    (
        Throttle,
        "p5.48xlarge",
        lambda h: h.gpu(6, throttle_reasons=frozenset({"hw_slowdown", "hw_thermal_slowdown"}), temperature_c=91.0),
        ["FAIL GPU6: the hardware halved the clocks (heat or power), the hardware slowed it for heat, at 91 degrees C"],
    ),
    (
        Throttle,
        "p5.48xlarge",
        lambda h: h.gpu(6, throttle_reasons=frozenset({"hw_power_brake_slowdown"}), temperature_c=ABSENT),
        ["FAIL GPU6: an external power brake slows the GPU"],
    ),
    (
        Throttle,
        "p5.48xlarge",
        lambda h: h.gpu(6, throttle_reasons=frozenset({"gpu_idle", "0x800"})),
        ["WARN GPU6: throttle reason not known here: 0x800"],
    ),
    (
        Throttle,
        "p5.48xlarge",
        lambda h: h.gpu(6, throttle_reasons=NONE),
        ["UNKNOWN GPU6: throttle reasons: not applicable (N/A)"],
    ),
    (Throttle, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_memory_and_clocks(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
