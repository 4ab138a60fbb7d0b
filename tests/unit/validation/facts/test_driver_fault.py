"""The driver's own words for not working, wherever they stand."""

from __future__ import annotations

import pytest

from validation.facts import driver_fault


@pytest.mark.parametrize(
    ("line", "kind", "gpu"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "library-mismatch", ""),
        ("Failed to initialize NVML: Unknown Error", "no-access", ""),
        ("Failed to initialize NVML: Insufficient Permissions", "no-access", ""),
        ("Failed to initialize NVML: Driver Not Loaded", "not-loaded", ""),
        ("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND", "no-library", ""),
        ("libnvidia-ml.so.1: cannot open shared object file: no such file or directory", "no-library", ""),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure", "not-loaded", ""),
        ("No devices were found", "no-devices", ""),
        ("Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error", "gpu-lost", "0000:34:00.0"),
        ("Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.", "gpu-lost", "0000:41:00.0"),
        ("Unable to determine the device handle for GPU0000:0A:00.0: Unknown Error", "gpu-lost", "0000:0a:00.0"),
        ("Unable to determine the device handle for gpu 0000:86:00.0: GPU is lost.", "gpu-lost", "0000:86:00.0"),
        ("Unable to detect the device handle for GPU0000:B1:00.0: Unknown Error", "gpu-lost", "0000:b1:00.0"),
        ("Failed to run topology matrix", "no-matrix", ""),
        ("WARNING: infoROM is corrupted at gpu 0000:65:00.0", "inforom-corrupt", "0000:65:00.0"),
        ("Failed to display p2p capability matrix for the specified p2p Index", "no-matrix", ""),
        ("Test CUDA failure common.cu:941 'system not yet initialized'", "fabric-not-ready", ""),
        ("CUDA error 802: system not yet initialized", "fabric-not-ready", ""),
    ],
)
def test_a_failure_is_named(line: str, kind: str, gpu: str) -> None:
    found = driver_fault.first(f"some noise\n{line}\nmore\n", "tool")
    assert found is not None
    assert (found.kind, found.gpu, found.text) == (kind, gpu, line)


@pytest.mark.parametrize(
    "line",
    [
        "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        "GPU is lost",
        "NVML_ERROR_GPU_IS_LOST",
        "the NVIDIA driver is not loaded",
        "NVML: Driver Not Loaded",
        "NVML_ERROR_DRIVER_NOT_LOADED",
        "No supported driver",
        "Can't communicate with NVIDIA driver",
        "No devices found.",
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "cudaErrorSystemNotReady",
        "CUDA error: 802",
        "CUDA error code: 802",
        "Failed to \x1b[1mini\x1b[0mtialize NVML",
        "Failed to ini\x00tialize NVML",
    ],
)
def test_every_wording_is_found_beneath_a_long_output(line: str) -> None:
    assert driver_fault.first("a line of no matter\n" * 1000 + line.upper() + "\n", "tool") is not None


def test_a_fault_of_all_gpus_stands_before_one_of_a_single_gpu() -> None:
    text = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\nNo devices were found\n"
    assert [fault.kind for fault in driver_fault.find(text, "t")] == ["gpu-lost", "no-devices"]
    first = driver_fault.first(text, "t")
    assert first is not None
    assert first.kind == "no-devices"


def test_a_lost_gpu_stands_before_a_matrix_that_was_not_printed_for_it() -> None:
    text = (
        "Failed to run topology matrix\nUnable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
    )
    first = driver_fault.first(text, "t")
    assert first is not None
    assert first.kind == "gpu-lost"


@pytest.mark.parametrize(
    "text", ["", "GPU 0: NVIDIA L4\n", "No devices were found on the list of a colleague\n", "the topology matrix\n"]
)
def test_other_words_are_no_fault(text: str) -> None:
    assert driver_fault.first(text, "t") is None
