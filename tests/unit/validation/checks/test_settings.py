"""Settings of GPUs: rows for pass, trouble, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.settings import (
    EccMode,
    Firmware,
    Identity,
    Idle,
    Mig,
    Persistence,
    VgpuLicense,
)
from validation.facts.gpu import Ecc, GpuInventory
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
DENIED = Missing(Reason.COULD_NOT_LOOK, "[Insufficient Permissions]")
GONE = ["UNKNOWN host: could not look: tool: not found"]


def board_without_ecc(h: Host) -> Host:
    ecc = h.profile.gpu.ecc
    assert ecc is not None
    return h.profiled(gpu={"ecc": ecc.model_copy(update={"value": False})})


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (Mig, "p5.48xlarge", lambda h: h, ["PASS host: MIG is off on 8 GPUs"]),
    (
        Mig,
        "g5.xlarge",
        lambda h: h.gpu(0, mig_enabled=NONE, mig_pending=NONE),
        ["NOT_APPLICABLE host: this board has no MIG"],
    ),
    (Mig, "p5.48xlarge", lambda h: h.gpu(2, mig_enabled=True), ["FAIL GPU2: MIG is on"]),
    (Mig, "p5.48xlarge", lambda h: h.gpu(2, mig_enabled=ABSENT), ["UNKNOWN GPU2: MIG mode: absent"]),
    (
        Mig,
        "p5.48xlarge",
        lambda h: h.gpu(2, mig_pending=DENIED),
        ["UNKNOWN GPU2: MIG mode after the next reset: could not look ([Insufficient Permissions])"],
    ),
    (
        Mig,
        "p5.48xlarge",
        lambda h: h.gpu(2, mig_pending=True),
        ["FAIL GPU2: MIG is off, and will be on after the next reset"],
    ),
    (
        Mig,
        "p5.48xlarge",
        lambda h: h.every(mig_enabled=True, mig_pending=True).expecting(mig=True),
        ["PASS host: MIG is on on 8 GPUs"],
    ),
    (Mig, "g5.xlarge", lambda h: h.expecting(mig=True), ["FAIL GPU0: MIG is off"]),
    (
        Mig,
        "g5.xlarge",
        lambda h: h.gpu(0, mig_enabled=NONE).expecting(mig=True),
        ["UNKNOWN GPU0: MIG mode: not applicable (N/A)"],
    ),
    (Mig, "g5.xlarge", lambda h: h.drop(GpuInventory), GONE),
    (Persistence, "p5.48xlarge", lambda h: h, ["PASS host: persistence mode is on on 8 GPUs"]),
    (Persistence, "p5.48xlarge", lambda h: h.gpu(0, persistence=False), ["WARN GPU0: persistence mode is off"]),
    (Persistence, "p5.48xlarge", lambda h: h.gpu(0, persistence=ABSENT), ["UNKNOWN GPU0: persistence mode: absent"]),
    (
        Persistence,
        "p5.48xlarge",
        lambda h: h.every(persistence=False).expecting(persistence=False),
        ["NOT_APPLICABLE host: the stack does not ask for persistence mode"],
    ),
    (Persistence, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
    (EccMode, "p5.48xlarge", lambda h: h, ["PASS host: ECC is on on 8 GPUs"]),
    (EccMode, "p5.48xlarge", lambda h: h.gpu(1, ecc=Ecc(enabled=False)), ["FAIL GPU1: ECC is off"]),
    (
        EccMode,
        "p5.48xlarge",
        lambda h: h.gpu(1, ecc=Ecc(enabled=True, enabled_next=False)),
        ["FAIL GPU1: ECC is on, and will be off after the next reset"],
    ),
    (EccMode, "p5.48xlarge", lambda h: h.expecting(ecc=False).only(1), ["FAIL GPU0: ECC is on"]),
    (
        EccMode,
        "p5.48xlarge",
        lambda h: h.expecting(ecc=False).every(ecc=Ecc(enabled=False, enabled_next=False)),
        ["PASS host: ECC is off, as asked for, on 8 GPUs"],
    ),
    (
        EccMode,
        "p5.48xlarge",
        lambda h: h.expecting(ecc=False).every(ecc=Ecc(enabled=False, enabled_next=True)).only(1),
        ["FAIL GPU0: ECC is off, and will be on after the next reset"],
    ),
    (
        EccMode,
        "g5.xlarge",
        lambda h: board_without_ecc(h).gpu(0, ecc=Ecc(enabled=NONE)),
        ["NOT_APPLICABLE host: this board has no ECC"],
    ),
    (
        EccMode,
        "p5.48xlarge",
        lambda h: h.gpu(1, ecc=Ecc(enabled=NONE)),
        ["UNKNOWN GPU1: ECC mode: not applicable (N/A)"],
    ),
    (EccMode, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
    (
        Idle,
        "p5.48xlarge",
        lambda h: h.gpu(2, memory_used_mib=DENIED),
        ["UNKNOWN GPU2: memory in use: could not look ([Insufficient Permissions])"],
    ),
    (Idle, "p5.48xlarge", lambda h: h, ["PASS host: no process on 8 GPUs"]),
    (Idle, "p5.48xlarge", lambda h: h.gpu(3, processes=1), ["WARN GPU3: 1 process runs on it"]),
    (Idle, "p5.48xlarge", lambda h: h.gpu(3, processes=2), ["WARN GPU3: 2 processes run on it"]),
    (
        Idle,
        "p5.48xlarge",
        lambda h: h.gpu(3, memory_used_mib=9000.0),
        ["WARN GPU3: 9000 MiB are in use, and no process shows"],
    ),
    (Idle, "p5.48xlarge", lambda h: h.gpu(3, memory_used_mib=ABSENT), ["PASS host: no process on 8 GPUs"]),
    (
        Idle,
        "p5.48xlarge",
        lambda h: h.gpu(3, processes=DENIED),
        ["UNKNOWN GPU3: processes: could not look ([Insufficient Permissions])"],
    ),
    (Idle, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
    (VgpuLicense, "p5.48xlarge", lambda h: h, ["NOT_APPLICABLE host: not a virtual GPU"]),
    (
        VgpuLicense,
        "g6.xlarge",
        lambda h: h.gpu(0, virtualization="VGPU", vgpu_license="Licensed (Expiry: 2026-12-1)"),
        ["PASS host: 1 virtual GPU licensed"],
    ),
    (
        VgpuLicense,
        "g6.xlarge",
        lambda h: h.gpu(0, virtualization="VGPU", vgpu_license="Unlicensed (Restricted)"),
        ["FAIL GPU0: licence: Unlicensed (Restricted)"],
    ),
    (
        VgpuLicense,
        "g6.xlarge",
        lambda h: h.gpu(0, virtualization="VGPU", vgpu_license="Unlicensed (Unrestricted)"),
        ["UNKNOWN GPU0: licence: Unlicensed (Unrestricted)"],
    ),
    (
        VgpuLicense,
        "g6.xlarge",
        lambda h: h.gpu(0, virtualization="VGPU", vgpu_license=NONE),
        ["UNKNOWN GPU0: vGPU licence: not applicable (N/A)"],
    ),
    (
        VgpuLicense,
        "g6f.xlarge",
        lambda h: h.gpu(0, virtualization=DENIED, vgpu_license=ABSENT),
        ["UNKNOWN GPU0: vGPU licence: absent"],
    ),
    (
        VgpuLicense,
        "ecs.vgn6i-m8-vws.2xlarge",
        lambda h: h.gpu(0, virtualization=ABSENT),
        ["PASS host: 1 virtual GPU licensed"],
    ),
    (VgpuLicense, "g6.xlarge", lambda h: h.drop(GpuInventory), GONE),
    (Identity, "p5.48xlarge", lambda h: h, ["PASS host: 8 GPUs, each with its own UUID"]),
    (Identity, "p5.48xlarge", lambda h: h.gpu(5, serial="1650"), ["PASS host: 8 GPUs, each with its own UUID"]),
    (Identity, "p5.48xlarge", lambda h: h.gpu(5, uuid="GPU-2"), ["FAIL GPU5: has the UUID of GPU2"]),
    (
        Identity,
        "p5.48xlarge",
        lambda h: h.gpu(5, uuid=DENIED),
        ["UNKNOWN GPU5: UUID: could not look ([Insufficient Permissions])"],
    ),
    (Identity, "p5.48xlarge", lambda h: h.only(0), ["UNKNOWN host: no GPU answered, so none was looked at"]),
    (Identity, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
    (Firmware, "p5.48xlarge", lambda h: h, ["PASS host: VBIOS 96.00.89.00.01, GSP firmware 580.105.08 on 8 GPUs"]),
    (Firmware, "p3.16xlarge", lambda h: h.every(gsp_firmware=NONE), ["PASS host: VBIOS 96.00.89.00.01 on 8 GPUs"]),
    (
        Firmware,
        "p5.48xlarge",
        lambda h: h.gpu(6, vbios="96.00.74.00.01"),
        ["WARN host: 2 versions of VBIOS: 96.00.74.00.01, 96.00.89.00.01"],
    ),
    (
        Firmware,
        "p5.48xlarge",
        lambda h: h.gpu(6, name="NVIDIA L4", vbios="95.04.29.00.06", gsp_firmware=NONE),
        ["PASS host: VBIOS 95.04.29.00.06, 96.00.89.00.01, GSP firmware 580.105.08 on 8 GPUs"],
    ),
    (
        Firmware,
        "p5.48xlarge",
        lambda h: h.gpu(3, gsp_firmware=NONE),
        ["WARN host: GSP firmware runs on some GPUs and not on GPU3"],
    ),
    (Firmware, "p5.48xlarge", lambda h: h.gpu(0, vbios=NONE), ["UNKNOWN GPU0: VBIOS: not applicable (N/A)"]),
    (Firmware, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_settings(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
