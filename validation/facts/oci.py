"""The JSON of Oracle's active health check (oci-gpu-scanner): TFLOPS and memory bandwidth it measured per GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import clean

TOOL = "OCI active health check"
# Measurements by test and field: which of our units each is in. Names as in the 2025 sample of the scanner.
_MEASUREMENTS = (
    ("compute_throughput", "gpu_results", "tflops", "TFLOPS"),
    ("memory_bandwidth", "", "bandwidth_gbps", "GB/s"),
    ("tensor_core_utilization", "", "tflops", "TFLOPS"),
    ("sustained_workload", "", "effective_tflops", "TFLOPS"),
    ("mixed_precision_testing", "", "tflops", "TFLOPS"),
    ("model_mfu", "", "achieved_tflops", "TFLOPS"),
)


@dataclass(frozen=True)
class Measurement:
    """One number: the test, the GPU's UUID, the value in ``unit`` and the tool's own word on it, if any."""

    test: str
    gpu: str
    value: float
    unit: str
    word: str = ""


@dataclass(frozen=True)
class OciResult:
    """``said`` is the tool's own overall word, which is not believed."""

    gpu_name: str
    dtype: str
    said: str
    measurements: tuple[Measurement, ...]


def parse(text: str) -> OciResult:
    """Raises ParseError where the document is not of this tool, or a number is not one."""
    try:
        data = json.loads(clean(text))
    except (ValueError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole JSON document: {error}") from error
    entries = [entry for entry in (data if isinstance(data, list) else [data]) if is_result(entry)]
    if not entries:
        raise ParseError(TOOL, 1, "no entry with 'tests' and 'final_result'")
    entry = entries[0]
    found = [item for rule in _MEASUREMENTS for item in _measured(entry["tests"], *rule)]
    if not found:
        raise ParseError(TOOL, 0, "no measurement per GPU")
    return OciResult(
        gpu_name=str(entry.get("gpu_info", {}).get("gpu_name", "")),
        dtype=str(entry.get("dtype", "")),
        said=str(entry.get("final_result", "")),
        measurements=tuple(found),
    )


def is_result(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("tests"), dict) and "final_result" in entry


def _measured(tests: dict[str, Any], test: str, inner: str, field: str, unit: str) -> list[Measurement]:
    block = tests.get(test)
    if isinstance(block, dict) and inner:
        block = block.get(inner)
    if not isinstance(block, dict):
        return []
    found = []
    for gpu, values in block.items():
        if not isinstance(values, dict) or field not in values:
            continue
        value = values[field]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ParseError(TOOL, 0, f"{test} of {gpu}: {field} is {value!r}, not a number")
        found.append(Measurement(test, str(gpu), float(value), unit, str(values.get("status", ""))))
    return found
