"""Two sources on the same GPUs: neither hides what the other says is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from validation.facts import merge
from validation.facts.gpu import Ecc, Fabric, Gpu, GpuInventory, NvLink, PcieLink, RemappedRows, Repairs
from validation.facts.missing import ABSENT, Missing, Reason

UUID = "GPU-00000000-0000-0000-0000-000000000000"
FAULT = Missing(Reason.FAULT, "[Unknown Error]")
NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
REFUSED = Missing(Reason.COULD_NOT_LOOK, "NVML_ERROR_INVALID_ARGUMENT")


def gpu(index: int = 0, **fields: Any) -> Gpu:
    return Gpu(index=index, **{"uuid": f"GPU-{index}", "pci_address": f"0000:0{index}:00.0", **fields})


def merged(one: Gpu, other: Gpu) -> Gpu:
    whole = merge.inventories(GpuInventory("nvml", (one,)), GpuInventory("nvidia-smi-q-x", (other,)))
    return whole.gpus[0]


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"ecc": Ecc(volatile_uncorrected=0)}, {"ecc": Ecc(volatile_uncorrected=5)}),
        ({"ecc": Ecc(aggregate_uncorrected=0)}, {"ecc": Ecc(aggregate_uncorrected=8)}),
        ({"ecc": Ecc(sram_threshold_exceeded=False)}, {"ecc": Ecc(sram_threshold_exceeded=True)}),
        ({"remapped_rows": RemappedRows(pending=False)}, {"remapped_rows": RemappedRows(pending=True)}),
        ({"remapped_rows": RemappedRows(failure=False)}, {"remapped_rows": RemappedRows(failure=True)}),
        ({"recovery_action": "None"}, {"recovery_action": "Reset"}),
        ({"temperature_c": 31.0}, {"temperature_c": FAULT}),
        ({"temperature_c": 31.0}, {"temperature_c": 91.0}),
        ({"tlimit_margin_c": 50.0}, {"tlimit_margin_c": -1.0}),
        ({"processes": 0}, {"processes": 2}),
        ({"ecc": Ecc(enabled=True)}, {"ecc": Ecc(enabled=False)}),
        ({"ecc": Ecc(enabled_next=True)}, {"ecc": Ecc(enabled_next=False)}),
        ({"persistence": True}, {"persistence": False}),
        ({"power_limit_w": 700.0}, {"power_limit_w": 400.0}),
        ({"pcie": PcieLink(width=16)}, {"pcie": PcieLink(width=8)}),
        ({"repairs": Repairs(channel_pending=False)}, {"repairs": Repairs(channel_pending=True)}),
        ({"repairs": Repairs(inforom_corrupt=False)}, {"repairs": Repairs(inforom_corrupt=True)}),
        ({"fabric": Fabric(state="Completed")}, {"fabric": Fabric(state="In Progress")}),
        ({"fabric": Fabric(status="Success")}, {"fabric": Fabric(status="Insufficient Resources")}),
        ({"fabric": Fabric(health_summary="Healthy")}, {"fabric": Fabric(health_summary="Unhealthy")}),
    ],
)
def test_what_either_source_says_is_wrong_stands(good: dict[str, Any], bad: dict[str, Any], swap: bool) -> None:
    first, second = (bad, good) if swap else (good, bad)
    whole = merged(gpu(**first), gpu(**second))
    for name, value in bad.items():
        assert getattr(whole, name) == value


@pytest.mark.parametrize("swap", [False, True])
def test_what_holds_the_clocks_down_in_either_reading_stands(swap: bool) -> None:
    idle, slow = (gpu(throttle_reasons=frozenset(reasons)) for reasons in (["gpu_idle"], ["hw_thermal_slowdown"]))
    whole = merged(slow, idle) if swap else merged(idle, slow)
    assert whole.throttle_reasons == frozenset({"gpu_idle", "hw_thermal_slowdown"})


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("name", "NVIDIA H100 80GB HBM3", "NVIDIA H20"), ("vbios", "96.1", "96.2"), ("mig_enabled", False, True)],
)
def test_what_a_board_is_and_how_it_is_set_is_no_fact_where_the_sources_differ(name: str, one: Any, other: Any) -> None:
    value = getattr(merged(gpu(**{name: one}), gpu(**{name: other})), name)
    assert isinstance(value, Missing)
    assert (value.reason, value.text) == (Reason.COULD_NOT_LOOK, f"NVML says {one}, nvidia-smi says {other}")


@pytest.mark.parametrize("said", [NONE, REFUSED, ABSENT])
def test_a_value_that_one_source_does_not_give_comes_from_the_other(said: Missing) -> None:
    assert merged(gpu(recovery_action=said), gpu(recovery_action="None")).recovery_action == "None"


def test_a_source_that_gives_no_value_takes_none_away() -> None:
    assert merged(gpu(recovery_action="None"), gpu(recovery_action=NONE)).recovery_action == "None"
    assert merged(gpu(recovery_action=REFUSED), gpu(recovery_action=NONE)).recovery_action == REFUSED


def test_gpus_with_one_scrubbed_uuid_are_told_apart_by_their_address() -> None:
    one = tuple(gpu(index, uuid=UUID) for index in range(2))
    other = tuple(gpu(index, uuid=UUID, temperature_c=30.0 + index) for index in range(2))
    whole = merge.inventories(GpuInventory("nvml", one), GpuInventory("nvidia-smi-q-x", other))
    assert [found.temperature_c for found in whole.gpus] == [30.0, 31.0]


def test_links_that_nvidia_smi_calls_all_inactive_are_down_whatever_nvml_says() -> None:
    up = gpu(nvlinks=tuple(NvLink(index, True) for index in range(18)))
    whole = merge.links(GpuInventory("nvml", (up,)), GpuInventory("nvlink-s", (replace(up, nvlinks=()),)))
    assert whole.gpus[0].nvlinks == ()


def test_a_gpu_without_nvlink_has_none_after_the_merge() -> None:
    card = gpu(nvlinks=NONE)
    whole = merge.links(GpuInventory("nvml", (card,)), GpuInventory("nvlink-s", (card,)))
    assert whole.gpus[0].nvlinks == NONE
