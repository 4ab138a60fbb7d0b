"""The burn-in's result: read whole, or not at all."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from profiles.errors import ParseError
from validation.facts.burnin import parse

GPU: dict[str, Any] = {
    "index": 0,
    "pci": "0000:00:1e.0",
    "name": "Tesla T4",
    "phase": "done",
    "error": None,
    "no_cublas": None,
    "cublas": 120600,
    "library": "libcublas.so.12",
    "cpus": "0-3",
    "copy": {"h2d_gbps": 6.2, "d2h_gbps": 6.4, "bytes": 33554432, "intact": True},
    "gemm": {
        "n": 8192,
        "iterations": 50,
        "seconds": 2.0,
        "tflops": 27.0,
        "compared": 20,
        "mismatches": 0,
        "first_mismatch": None,
        "untouched": False,
        "checked_columns": 64,
        "wrong_columns": 0,
        "checksum": "e1e6e8b3",
        "stable": True,
        "complete": True,
    },
    "samples": {
        "sm_clock_mhz": [1590.0],
        "pcie_generation": [4],
        "pcie_width": [16],
        "power_w": [69.0],
        "temp_c": [60.0],
        "throttle": [["sw_power_cap"]],
        "errors": [],
    },
}
RESULT: dict[str, Any] = {
    "schema": "kiln/burn-in/v1",
    "level": "quick",
    "outcome": "ran",
    "error": None,
    "driver_cuda": 13000,
    "sampling_error": None,
    "wall_s": 5.9,
    "gpus": [GPU],
}


def changed(path: str, value: Any) -> str:
    """The result with one value changed; ``...`` takes the key away."""
    data = copy.deepcopy(RESULT)
    *parents, key = path.split(".")
    target: Any = data
    for parent in parents:
        target = target[int(parent)] if isinstance(target, list) else target[parent]
    if value is ...:
        del target[key]
    else:
        target[key] = value
    return json.dumps(data)


def test_a_whole_result_is_read() -> None:
    result = parse(json.dumps(RESULT))
    gpu = result.gpus[0]
    assert (gpu.label, gpu.pci, gpu.cublas) == ("GPU0", "0000:00:1e.0", 120600)
    assert gpu.gemm is not None
    assert gpu.gemm.tflops == 27.0
    assert gpu.copy_ is not None
    assert gpu.copy_.intact
    assert gpu.samples is not None
    assert gpu.samples.throttle == (("sw_power_cap",),)


def test_what_was_not_measured_is_none() -> None:
    error = {"phase": "setup", "call": "", "code": None, "name": "hang", "text": "no answer in 60 s"}
    stopped = {**GPU, "phase": "setup", "error": error, "copy": None, "gemm": None, "samples": None}
    gpu = parse(changed("gpus", [stopped])).gpus[0]
    assert (gpu.copy_, gpu.gemm, gpu.samples) == (None, None, None)
    assert gpu.error is not None
    assert gpu.error.name == "hang"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the document: Invalid JSON"),
        ("[]", "the document: Input should be an object"),
        ("{}", "schema: Field required"),
        (changed("schema", "kiln/burn-in/v2"), "schema: Input should be 'kiln/burn-in/v1'"),
        (changed("outcome", "fine"), "outcome: Input should be"),
        (changed("extra", 1), "extra: Extra inputs are not permitted"),
        (changed("gpus", []), "the document: Value error, it ran, but on no GPU"),
        (changed("gpus", [GPU, GPU]), "the document: Value error, two GPUs with the same index"),
        (changed("gpus.0.copy.h2d_gbps", "6.2"), "gpus.0.copy.h2d_gbps: Input should be a valid number"),
        (changed("gpus.0.copy.h2d_gbps", -1.0), "gpus.0.copy.h2d_gbps: Input should be greater than or equal to 0"),
        (changed("gpus.0.gemm.tflops", float("nan")), "gpus.0.gemm.tflops: Input should be a finite number"),
        (changed("gpus.0.gemm.tflops", float("inf")), "gpus.0.gemm.tflops: Input should be a finite number"),
        (changed("gpus.0.gemm.compared", ...), "gpus.0.gemm.compared: Field required"),
        (changed("gpus.0.gemm.mismatches", 21), "gpus.0.gemm: Value error, more differences than comparisons"),
        (changed("gpus.0.gemm.stable", ...), "gpus.0.gemm: Value error, complete, but without the comparison"),
        (changed("gpus.0.gemm", None), "gpus.0: Value error, GPU0: no GEMM, and no reason"),
        (changed("gpus.0.phase", "gemm"), "gpus.0: Value error, GPU0: phase 'gemm' does not fit its error"),
    ],
)
def test_anything_else_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert str(refused.value).startswith(f"burn-in: {reason}")
