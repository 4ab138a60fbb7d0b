"""The probe's NVML document: values, errors by name, GPUs without a handle."""

from __future__ import annotations

import json
from typing import Any

import pytest

from profiles.errors import ParseError
from validation.facts import nvml
from validation.facts.gpu import DriverFault
from validation.facts.missing import ABSENT, Missing, Reason

REFUSED = {"error": "NVML_ERROR_NOT_SUPPORTED"}


def device(index: int, **changes: Any) -> dict[str, Any]:
    return {
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": f"GPU-{index}",
        "pci_address": f"00000000:5{index}:00.0",
        "memory": {"total_mib": 81559, "used_mib": 0},
        "ecc": {"enabled": True, "volatile_corrected": 0, "volatile_uncorrected": 0},
        "remapped_rows": {"correctable": 0, "uncorrectable": 0, "pending": False, "failure": False},
        "retired_pages": REFUSED,
        "power": {"draw_w": 72, "limit_w": 700.0},
        "throttle_reasons": ["gpu_idle"],
        "recovery_action": "None",
        "fabric": {"state": "Completed", "status": "Success", "clique_id": 0, "health": {"bandwidth": "N/A"}},
        "nvlinks": [{"link": 0, "active": True, "rate_mbps": 26562}, {"link": 1, "active": False}],
        "p2p": {str(other): "OK" for other in range(2) if other != index},
        **changes,
    }


def document(*devices: dict[str, Any], **changes: Any) -> str:
    base = {"driver_version": "580.1", "cuda_driver_version": "13.0", "device_count": len(devices), "devices": devices}
    return json.dumps({**base, **changes})


def test_values_are_read_and_groups_that_were_refused_are_missing() -> None:
    inventory = nvml.parse(document(device(0), device(1)))
    gpu = inventory.gpus[0]
    assert (inventory.driver_version, inventory.attached, inventory.lost) == ("580.1", 2, ())
    assert (gpu.pci_address, gpu.memory_total_mib, gpu.power_draw_w) == ("0000:50:00.0", 81559, 72.0)
    assert gpu.retired_pages.pending == Missing(Reason.NOT_APPLICABLE, "NVML_ERROR_NOT_SUPPORTED")
    assert gpu.serial == ABSENT
    assert not isinstance(gpu.nvlinks, Missing)
    assert [(link.active, link.rate_gbps) for link in gpu.nvlinks] == [(True, 26.562), (False, ABSENT)]
    assert gpu.fabric.health == ()


def test_a_gpu_without_a_handle_is_lost_and_stays_counted() -> None:
    inventory = nvml.parse(document(device(0), {"index": 1, "handle_error": "NVML_ERROR_GPU_IS_LOST"}))
    assert [gpu.index for gpu in inventory.gpus] == [0]
    assert (inventory.lost, inventory.attached) == (("GPU1",), 2)


def test_a_gpu_that_may_not_be_looked_at_is_not_lost() -> None:
    with pytest.raises(ParseError, match="GPU1 gives no handle: NVML_ERROR_NO_PERMISSION"):
        nvml.parse(document(device(0), {"index": 1, "handle_error": "NVML_ERROR_NO_PERMISSION"}))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", "library-mismatch"),
        ("NVML_ERROR_DRIVER_NOT_LOADED", "not-loaded"),
        ("NVML_ERROR_LIBRARY_NOT_FOUND", None),
    ],
)
def test_a_library_that_does_not_start_names_the_fault(error: str, kind: str | None) -> None:
    text = json.dumps({"init_error": error, "errors": [error]})
    assert nvml.fault(text) == (DriverFault("nvml", kind, error) if kind else None)
    with pytest.raises(ParseError, match=error):
        nvml.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        document(device(0), device_count=2),
        document(device(1), device(0)),
        document(device(0), device_count={"error": "NVML_ERROR_UNKNOWN"}),
        document(device(0, memory=5)),
        document(device(0, memory={"total_mib": "81559"})),
        document(device(0, ecc={"enabled": 1})),
        document(device(0, nvlinks=[{"active": True}])),
        document(device(0, pci_address="somewhere")),
        document(device(0))[:-40],
    ],
)
def test_a_document_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nvml.parse(text)


def test_the_peer_matrix_must_hold_every_pair() -> None:
    assert nvml.p2p(document(device(0), device(1))).status == {(0, 1): "OK", (1, 0): "OK"}
    with pytest.raises(ParseError, match="GPU0 to GPU1"):
        nvml.p2p(document(device(0, p2p={"1": REFUSED}), device(1)))
    with pytest.raises(ParseError, match="GPU0 to GPU1"):
        nvml.p2p(document(device(0, p2p=REFUSED), device(1)))


def test_no_gpu_at_all_is_a_fact() -> None:
    assert nvml.parse(document()).gpus == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (document(device(0), device_count=10**12), "1000000000000 devices counted"),
        (document(device(0, power={"limit_w": float("nan")})), "NaN in place of a number"),
        (document(device(0, power={"limit_w": float("inf")})), "Infinity in place of a number"),
        (document(device(0, nvlinks=[{"link": 0, "active": True}] * 18)), "a link is listed twice"),
    ],
)
def test_what_would_fool_a_comparison_is_no_document(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        nvml.parse(text)
