"""NVML through pynvml: shapes, errors by name, and fallbacks, without a library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from validation.probe import nvml, nvml_links, nvml_query

NOT_SUPPORTED = {"error": "NVML_ERROR_NOT_SUPPORTED"}


class Answers:
    """Replaces NVML calls by name: a value, or an NVML error number to raise."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def value(self, name: str, value: Any) -> None:
        self._patch.setattr(pynvml, name, lambda *_, **__: value)

    def error(self, name: str, number: int) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise pynvml.NVMLError(number)

        self._patch.setattr(pynvml, name, refuse)

    def call(self, name: str, function: Callable[..., Any]) -> None:
        self._patch.setattr(pynvml, name, function)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Every NVML call that is not answered in the test says that this driver does not have it."""
    for name in dir(pynvml):
        if name.startswith(("nvmlDevice", "nvmlSystem")) or name == "nvmlInit":

            def missing(*_: Any, **__: Any) -> None:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

            monkeypatch.setattr(pynvml, name, missing)
    return Answers(monkeypatch)


def field_values(returned: int = 0, **value: Any) -> Callable[..., Any]:
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

    def answer(_: Any, __: Any) -> Any:
        field = pynvml.c_nvmlFieldValue_t()
        field.nvmlReturn = returned
        for name, number in value.items():
            field.valueType = members.index(name)
            setattr(field.value, name, number)
        return [field]

    return answer


@pytest.mark.parametrize(
    "number",
    [number for name, number in vars(pynvml).items() if name.startswith("NVML_ERROR_")],
)
def test_every_nvml_error_has_its_name(number: int) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(number)

    name = nvml_query.guarded(refuse)["error"]
    assert getattr(pynvml, name) == number


def test_an_error_number_nobody_knows_is_named_by_its_number() -> None:
    assert nvml_query.error_name(pynvml.NVMLError(777)) == "NVML_ERROR_777"


def test_a_defect_in_one_query_is_its_value_and_nothing_more() -> None:
    facts = nvml_query.group((("good", lambda: 1), ("bad", lambda: 1 // 0)))
    assert facts == {"good": 1, "bad": {"error": "ZeroDivisionError: integer division or modulo by zero"}}


@pytest.mark.parametrize("number", nvml_query.NOT_THIS_WAY)
def test_the_next_query_is_asked_where_a_driver_lacks_the_first(number: int, answers: Answers) -> None:
    answers.error("nvmlInit", number)
    assert nvml_query.first_of(pynvml.nvmlInit, lambda: "second") == "second"


def test_a_lost_gpu_is_not_asked_in_another_way(answers: Answers) -> None:
    answers.error("nvmlInit", pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(pynvml.NVMLError):
        nvml_query.first_of(pynvml.nvmlInit, lambda: "second")


@pytest.mark.parametrize("value", [{"dVal": 1.5}, {"uiVal": 7}, {"ullVal": 2**40}, {"siVal": -8}, {"usVal": 3}])
def test_a_field_value_is_read_by_its_type(value: dict[str, Any], answers: Answers) -> None:
    answers.call("nvmlDeviceGetFieldValues", field_values(**value))
    assert nvml_query.field(None, 1) == next(iter(value.values()))


def test_a_field_that_is_refused_is_an_error_of_its_own(answers: Answers) -> None:
    answers.call("nvmlDeviceGetFieldValues", field_values(returned=3))
    assert nvml_query.guarded(lambda: nvml_query.field(None, 1)) == NOT_SUPPORTED


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([5], "5"), ([0, 1, 2, 8], "0-2,8"), ([0, 2, 4], "0,2,4"), ([3, 4], "3-4")]
)
def test_numbers_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert nvml.ranges(numbers) == text


def test_cpu_affinity_is_a_list_of_cpus(answers: Answers) -> None:
    answers.value("nvmlDeviceGetCpuAffinity", [0xFFFF_FFFF_FFFF, 0xFFFF_FFFF_0000_0000, 0x0000_FFFF])
    assert nvml.cpu_affinity(None) == "0-47,96-143"


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0x0, []),
        (0x1, ["gpu_idle"]),
        (0x48, ["hw_slowdown", "hw_thermal_slowdown"]),
        (0x10004, ["sw_power_cap", "0x10000"]),
    ],
)
def test_throttle_reasons_are_named_and_unknown_ones_are_kept(mask: int, names: list[str], answers: Answers) -> None:
    answers.value("nvmlDeviceGetCurrentClocksThrottleReasons", mask)
    assert nvml.throttle_reasons(None) == names


def test_a_fabric_mask_is_read_into_the_words_of_nvidia_smi() -> None:
    healthy = nvml_links.fabric_health(2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8)
    assert healthy == {
        "bandwidth": "Full",
        "route_recovery_in_progress": "False",
        "route_unhealthy": "False",
        "access_timeout_recovery": "False",
        "incorrect_configuration": "None",
        "partition_assigned": "N/A",
    }
    assert nvml_links.fabric_health(1 << 4)["route_unhealthy"] == "True"
    assert nvml_links.fabric_health(15 << 8)["incorrect_configuration"] == "0xf"


def test_an_old_driver_is_asked_for_the_fabric_in_its_own_way(answers: Answers) -> None:
    def fill(_: Any, info: Any) -> None:
        info._obj.state, info._obj.cliqueId = 3, 0

    answers.call("nvmlDeviceGetGpuFabricInfo", fill)
    block = nvml_links.fabric(None)
    assert (block["state"], block["status"], block["health_summary"]) == ("Completed", "Success", "N/A")
    assert block["cluster_uuid"] == "00000000-0000-0000-0000-000000000000"


def test_a_gpu_without_a_fabric_is_not_supported(answers: Answers) -> None:
    answers.value("nvmlDeviceGetGpuFabricInfoV", None)
    assert nvml_query.guarded(lambda: nvml_links.fabric(None)) == NOT_SUPPORTED


def test_links_are_listed_as_far_as_the_gpu_has_them(answers: Answers) -> None:
    def state(_: Any, link: int) -> int:
        if link >= 18:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return 0 if link == 7 else 1

    answers.call("nvmlDeviceGetNvLinkState", state)
    answers.call("nvmlDeviceGetFieldValues", field_values(uiVal=26562))
    answers.value("nvmlDeviceGetNvLinkRemoteDeviceType", 2)
    links = nvml_links.nvlinks(None)
    assert len(links) == 18
    assert links[7] == {"link": 7, "active": False}
    assert links[8] == {
        "link": 8,
        "active": True,
        "rate_mbps": 26562,
        "version": {"error": "NVML_ERROR_FUNCTION_NOT_FOUND"},
        "remote": "switch",
    }


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "NVML_ERROR_NOT_SUPPORTED"),
        (pynvml.NVML_ERROR_INVALID_ARGUMENT, "NVML_ERROR_NOT_SUPPORTED"),
        (pynvml.NVML_ERROR_GPU_IS_LOST, "NVML_ERROR_GPU_IS_LOST"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "NVML_ERROR_NO_PERMISSION"),
    ],
)
def test_a_gpu_that_refuses_every_link_is_one_error(number: int, name: str, answers: Answers) -> None:
    answers.error("nvmlDeviceGetNvLinkState", number)
    assert nvml_links.nvlinks(None) == {"error": name}


def test_a_library_that_does_not_start_is_an_init_error(answers: Answers) -> None:
    answers.error("nvmlInit", pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    name = "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
    assert nvml.collect() == {"init_error": name, "errors": [name]}


def test_a_driver_without_a_count_has_no_devices(answers: Answers) -> None:
    answers.value("nvmlInit", None)
    facts = nvml.collect()
    assert facts["device_count"] == {"error": "NVML_ERROR_FUNCTION_NOT_FOUND"}
    assert facts["devices"] == []


def test_a_gpu_without_a_handle_keeps_its_place_and_the_others_do_not_ask_for_it(answers: Answers) -> None:
    def handle(index: int) -> str:
        if index == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return f"handle {index}"

    answers.value("nvmlInit", None)
    answers.value("nvmlDeviceGetCount", 3)
    answers.call("nvmlDeviceGetHandleByIndex", handle)
    answers.value("nvmlDeviceGetP2PStatus", 0)
    answers.value("nvmlSystemGetCudaDriverVersion_v2", 12080)
    facts = nvml.collect()
    assert facts["cuda_driver_version"] == "12.8"
    assert [device["index"] for device in facts["devices"]] == [0, 1, 2]
    assert facts["devices"][1] == {"index": 1, "handle_error": "NVML_ERROR_GPU_IS_LOST"}
    assert facts["devices"][0]["p2p"] == {"2": "OK"}
    assert facts["errors"] == ["GPU1: NVML_ERROR_GPU_IS_LOST"]


def test_the_keys_are_those_of_the_docstring(answers: Answers) -> None:
    answers.value("nvmlInit", None)
    answers.value("nvmlDeviceGetCount", 1)
    answers.value("nvmlDeviceGetHandleByIndex", "handle")
    device = nvml.collect()["devices"][0]
    documented = nvml.__doc__ or ""
    assert all(f'"{key}"' in documented for key in device)
    groups = ("ecc", "retired_pages", "clocks", "power", "temperature", "pcie")
    assert all(f'"{key}"' in documented for name in groups for key in device[name])
