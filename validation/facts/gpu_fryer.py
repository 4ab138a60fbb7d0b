"""gpu-fryer: the summary it prints per GPU, and its closing word; as text and as JSON, one object a line.

Formats: huggingface/gpu-fryer src/main.rs and src/logging.rs, read from 0.1 (2025-03) to 1.3 (2026-08).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "gpu-fryer"
_SIGN = re.compile(r'^\s*GPU #\d+: +[\d.]+ Gflops|^\s*Detected GPU #\d+: "|^\{.*"(?:burn_result|detected_gpus)"', re.M)
_GPU = re.compile(r"^\s*GPU #(\d+): +(\d+(?:\.\d+)?) Gflops(?:/s)? \(min: (\d+(?:\.\d+)?), max: (\d+(?:\.\d+)?)")
_THROTTLING = re.compile(r"Throttling HW: (true|false), Thermal SW: (true|false), Thermal HW: (true|false)")
_HEALTHY = re.compile(r"All GPUs seem healthy")
_UNHEALTHY = re.compile(r"(?:Some GPUs|GPU #?\d+).*(?:not|un)\s?healthy", re.I)
_DETECTED = re.compile(r'^\s*Detected GPU #(\d+): "(.*)" \(')
_PRECISION = re.compile(r"^\s*Using (?:precision\(s\):)?\s*((?:FP32|BF16|FP8|\s)+?)\s*$")
_BEGINS = re.compile(
    r'^\s*(?:GPU #\d+: +[\d.]+ Gflops|Detected GPU #|Using |\{.*"type": *"(?:detected_gpus|feature_detection|results)")'
)
_GIGA = 1e9


@dataclass(frozen=True)
class FriedGpu:
    """One GPU: mean, least and most GFLOPS, whether anything throttled it, and the board's name."""

    index: int
    gflops: float
    gflops_min: float
    gflops_max: float
    throttled: bool = False
    board: str = ""


@dataclass(frozen=True)
class GpuFryer:
    """``precision`` as gpu-fryer names it (FP32, BF16, FP8); "" where the text does not say."""

    gpus: tuple[FriedGpu, ...]
    said_healthy: bool
    precision: str = ""


def is_it(text: str) -> bool:
    """Told by a result, or by the list of boards that a run begins with."""
    return _SIGN.search(text) is not None


def parse(text: str) -> GpuFryer:
    """The summary. Of several runs in one text the worst counts, GPU by GPU.

    Raises ParseError where there is none, where a GPU that was detected is not in it, or no closing word is after it.
    """
    runs = [_Reader()]
    for line in lines(text):
        if runs[-1].ended and _BEGINS.match(line):
            runs.append(_Reader())
        runs[-1].read(line)
    found = [_run(reader) for reader in runs]
    by_index: dict[int, list[FriedGpu]] = {}
    for gpu in (gpu for run in found for gpu in run.gpus):
        by_index.setdefault(gpu.index, []).append(gpu)
    gpus = tuple(_worst(same) for _, same in sorted(by_index.items()))
    precision = " ".join(dict.fromkeys(run.precision for run in found))
    return GpuFryer(gpus, all(run.said_healthy for run in found), precision)


def _worst(same: list[FriedGpu]) -> FriedGpu:
    slowest = min(same, key=lambda gpu: gpu.gflops)
    return replace(slowest, throttled=any(gpu.throttled for gpu in same))


def _run(reader: _Reader) -> GpuFryer:
    if not reader.gpus:
        raise ParseError(TOOL, 0, "no result of a GPU, 'GPU #N: X Gflops (min: ..., max: ...)'")
    if not reader.ended:
        raise ParseError(TOOL, 0, "no closing word on the GPUs' health: the run did not end, or the text is cut short")
    lost = sorted(set(reader.names) - set(reader.gpus))
    if lost:
        raise ParseError(TOOL, 0, f"GPU {lost[0]} was detected and has no result: the text is cut short")
    gpus = tuple(reader.gpus[index] for index in sorted(reader.gpus))
    return GpuFryer(gpus, reader.healthy, reader.precision)


class _Reader:
    """Reads line by line; a line on throttling belongs to the GPU above it."""

    def __init__(self) -> None:
        self.gpus: dict[int, FriedGpu] = {}
        self.names: dict[int, str] = {}
        self.precision = ""
        self.healthy = self.ended = False
        self._current = -1

    def read(self, line: str) -> None:
        if line.lstrip().startswith("{"):
            self._json(line)
        elif match := _GPU.match(line):
            self._add(int(match[1]), float(match[2]), float(match[3]), float(match[4]), throttled=False)
        elif (match := _THROTTLING.search(line)) and self._current in self.gpus:
            one = self.gpus[self._current]
            self._add(one.index, one.gflops, one.gflops_min, one.gflops_max, throttled="true" in match.groups())
        elif match := _DETECTED.match(line):
            self.names[int(match[1])] = match[2]
        elif match := _PRECISION.match(line):
            self.precision = " ".join(match[1].split())
        elif _HEALTHY.search(line):
            self.healthy, self.ended = not self.ended or self.healthy, True
        elif _UNHEALTHY.search(line):
            self.healthy, self.ended = False, True

    def _add(self, index: int, mean: float, least: float, most: float, *, throttled: bool) -> None:
        self._current = index
        self.gpus[index] = FriedGpu(index, mean, least, most, throttled, self.names.get(index, ""))

    def _json(self, line: str) -> None:
        try:
            self._object(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ParseError(TOOL, 0, f"not whole objects of the known shape: {error!r}") from error

    def _object(self, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind == "detected_gpus":
            self.names = {int(gpu["index"]): str(gpu["name"]) for gpu in item["detected_gpus"]}
        elif kind == "feature_detection":
            self.precision = " ".join(name.upper() for name in ("fp32", "bf16", "fp8") if item[name])
        elif kind == "results":
            for gpu in item["gpus"]:
                self._result(gpu["burn_result"], float(gpu["flops_avg"]))
        elif kind == "problems":
            self.healthy, self.ended = not item["problems"], True

    def _result(self, burn: dict[str, Any], mean: float) -> None:
        hot = any(burn[f"throttling_{kind}"] for kind in ("hw", "thermal_sw", "thermal_hw"))
        least, most = float(burn["flops_min"]) / _GIGA, float(burn["flops_max"]) / _GIGA
        self._add(int(burn["gpu_idx"]), mean / _GIGA, least, most, throttled=hot)
