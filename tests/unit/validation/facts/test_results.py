"""Counters of NVLink, devices for containers, and the measurements of Oracle's active check."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import container_gpus, nvlink_errors, oci
from validation.facts.missing import Missing, Reason


def oci_document(**changes: object) -> str:
    tests = {"memory_bandwidth": {"GPU-1": {"bandwidth_gbps": 3000.5, "status": "IDEAL"}}, "gpu_topology": {"raw": "x"}}
    return json.dumps([{"tests": tests, "final_result": "pass", "gpu_info": {"gpu_name": "NVIDIA H200"}, **changes}])


def test_measurements_per_gpu_are_read_with_the_tools_own_word() -> None:
    result = oci.parse(oci_document())
    assert [(item.test, item.value, item.unit, item.word) for item in result.measurements] == [
        ("memory_bandwidth", 3000.5, "GB/s", "IDEAL")
    ]
    text = {"memory_bandwidth": {"GPU-1": {"bandwidth_gbps": "fast"}}}
    for bad in ("", "[]", oci_document(tests={}), oci_document(tests=text)):
        with pytest.raises(ParseError):
            oci.parse(bad)


COUNTERS = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n"
    + "".join(f"\t Link {link}: {name}: {link}\n" for link in range(2) for name in ("Replay Errors", "CRC Errors"))
    for gpu in range(2)
)


def test_nvlink_counters_are_read_per_link() -> None:
    errors = nvlink_errors.parse(COUNTERS)
    assert len(errors.counters) == 8
    assert (errors.counters[-1].gpu, errors.counters[-1].link, errors.counters[-1].count) == (1, 1, 1)
    without = nvlink_errors.parse("GPU 0: NVIDIA L4 (UUID: GPU-0)\nDevice does not have or support Nvlink\n")
    assert without.without == ((0, Missing(Reason.NOT_APPLICABLE, "Device does not have or support Nvlink")),)


def test_nvlink_counters_of_blackwell_are_read_and_its_error_rates_are_no_counts() -> None:
    names = ("Malformed packet Errors: 0", "Effective BER: 15e-255", "FEC Errors - 0: 36140749276", "Symbol Errors: 2")
    text = "GPU 0: NVIDIA B200 (UUID: GPU-0)\n" + "".join(f"\t Link 4: {name}\n" for name in names)
    counts = {item.name: item.count for item in nvlink_errors.parse(text).counters}
    assert counts == {"Malformed packet Errors": 0, "FEC Errors - 0": 36140749276, "Symbol Errors": 2}


def test_nvlink_counters_that_the_driver_does_not_have_are_not_zero() -> None:
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: Replay Errors: N/A\n\t Link 0: CRC Errors: N/A\n"
    errors = nvlink_errors.parse(text)
    assert errors.counters == ()
    assert errors.without == ((0, Missing(Reason.NOT_APPLICABLE, "N/A")),)


@pytest.mark.parametrize(
    "text", ["", COUNTERS.rstrip("\n").rpartition("\n")[0], "GPU 0: NVIDIA L4 (UUID: GPU-0)\n", COUNTERS + "hello\n"]
)
def test_nvlink_counters_cut_short_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nvlink_errors.parse(text)


def test_devices_for_containers_are_counted_by_index() -> None:
    text = 'time="x" level=info msg="Found 4 CDI devices"\nnvidia.com/gpu=0\nnvidia.com/gpu=1\nnvidia.com/gpu=GPU-1\n'
    assert container_gpus.parse(text + "nvidia.com/gpu=all\n").indices == (0, 1)
    for bad in ("", text):
        with pytest.raises(ParseError):
            container_gpus.parse(bad)
