"""Burn-in tools' results: a row for every verdict, with words of the text. No closing word is believed alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from validation.checks.base import Check
from validation.checks.peaks import PEAKS, peak_of
from validation.checks.tool_results import GpuBurnResult, GpuFryerResult, OciHealthResult
from validation.facts.gpu_burn import BurnGpu, GpuBurn
from validation.facts.gpu_fryer import FriedGpu, GpuFryer
from validation.facts.oci import Measurement, OciResult

H100 = "NVIDIA H100 80GB HBM3"
L4 = "NVIDIA L4"


def burn(*gpus: BurnGpu, aborted: bool = False, finished: bool = True, troubles: tuple[str, ...] = ()) -> GpuBurn:
    return GpuBurn(gpus, aborted, finished, 100.0, troubles)


def burned(
    index: int = 0,
    *,
    work: int = 40,
    gflops: float = 900,
    errors: int = 0,
    died: bool = False,
    word: str = "OK",
    name: str = "",
) -> BurnGpu:
    return BurnGpu(index, work, gflops, errors, died, word, name)


def fryer(
    *rates: float, healthy: bool = True, hot: bool = False, names: tuple[str, ...] = (), precision: str = ""
) -> GpuFryer:
    boards = names or ("",) * len(rates)
    gpus = [FriedGpu(at, rate, rate, rate, hot, boards[at]) for at, rate in enumerate(rates)]
    return GpuFryer(tuple(gpus), healthy, precision)


def oci(value: float, unit: str = "GB/s", name: str = H100, word: str = "pass") -> OciResult:
    return OciResult(name, "float16", word, (Measurement("memory_bandwidth", "GPU-1", value, unit, "IDEAL"),))


ROWS: list[tuple[Check, object, list[str]]] = [
    (GpuBurnResult(), burn(burned(), burned(1, gflops=880)), ["PASS host: 2 GPUs OK, 880 to 900"]),
    (GpuBurnResult(), burn(burned(), burned(1, gflops=700)), ["WARN GPU1: 700 Gflop/s, the best GPU has 900"]),
    (GpuBurnResult(), burn(burned(work=100), burned(1)), ["WARN GPU1: 40 iterations, the best GPU did 100"]),
    # Boards of two kinds are no peers.
    (GpuBurnResult(), burn(burned(name=H100), burned(1, gflops=90, work=9, name=L4)), ["PASS host: 2 GPUs OK"]),
    (GpuBurnResult(), burn(burned(gflops=140_000, name=L4)), ["UNKNOWN GPU0: 140000 Gflop/s is more than"]),
    (GpuBurnResult(), burn(burned(gflops=2e7)), ["UNKNOWN GPU0: 20000000 Gflop/s is more than"]),
    (GpuBurnResult(), burn(burned(), burned(1, word="FAULTY")), ["FAIL GPU1: FAULTY"]),
    (GpuBurnResult(), burn(burned(errors=-7, word="FAULTY")), ["FAIL GPU0: FAULTY: -7 wrong results"]),
    (GpuBurnResult(), burn(burned(errors=3)), ["FAIL GPU0: 3 wrong results"]),
    (GpuBurnResult(), burn(burned(errors=3, word=""), finished=False), ["FAIL GPU0: 3 wrong results"]),
    (GpuBurnResult(), burn(burned(work=0, gflops=0)), ["FAIL GPU0: zero work done"]),
    (GpuBurnResult(), burn(burned(work=0, gflops=0, word=""), finished=False), ["UNKNOWN host: the run did not end"]),
    (
        GpuBurnResult(),
        burn(burned(work=-1, died=True, word=""), aborted=True, finished=False),
        ["FAIL GPU0: its process died", "FAIL host: no process was left"],
    ),
    (GpuBurnResult(), burn(burned(word=""), finished=False), ["UNKNOWN host: the run did not end"]),
    (GpuBurnResult(), burn(finished=False, troubles=("out of memory",)), ["UNKNOWN host: did not start: out of mem"]),
    (GpuFryerResult(), fryer(900, 890), ["PASS host: 2 GPUs within 10 %"]),
    (GpuFryerResult(), fryer(0, 0), ["FAIL GPU0: zero work done", "FAIL GPU1: zero work done"]),
    (GpuFryerResult(), fryer(900, 700), ["FAIL GPU1: 700 Gflop/s"]),
    (GpuFryerResult(), fryer(900, 700, names=(H100, L4)), ["PASS host: 2 GPUs within 10 %"]),
    (GpuFryerResult(), fryer(140_000, names=(L4,), precision="BF16"), ["UNKNOWN GPU0: 140000 Gflop/s is more than"]),
    (GpuFryerResult(), fryer(130_000, names=(L4,), precision="FP8"), ["PASS host"]),
    (GpuFryerResult(), fryer(400_000, names=(L4,), precision="FP8"), ["UNKNOWN GPU0: 400000 Gflop/s is more than"]),
    (GpuFryerResult(), fryer(400_000, names=(L4,), precision=""), ["PASS host"]),
    (GpuFryerResult(), fryer(1_050_000, names=(H100,), precision="BF16"), ["PASS host"]),
    (GpuFryerResult(), fryer(900, hot=True), ["WARN GPU0: was throttled"]),
    (GpuFryerResult(), fryer(900, healthy=False), ["FAIL host: gpu-fryer does not call all GPUs healthy"]),
    (OciHealthResult(), oci(3000), ["PASS host: 1 measurement within"]),
    (OciHealthResult(), oci(4276), ["UNKNOWN memory_bandwidth: 4276 GB/s, which the tool calls IDEAL"]),
    (OciHealthResult(), oci(1500, "TFLOPS"), ["UNKNOWN memory_bandwidth: 1500 TFLOPS"]),
    (OciHealthResult(), oci(0), ["FAIL host: zero work done"]),
    (OciHealthResult(), oci(3000, word="fail"), ["FAIL host: the tool's own result is fail", "PASS host"]),
    (OciHealthResult(), oci(3000, name="NVIDIA Newer"), ["UNKNOWN host: no physical limit is known"]),
]


@pytest.mark.parametrize(("check", "fact", "wanted"), ROWS, ids=lambda value: getattr(value, "id", ""))
def test_a_burn_in_means_what_its_numbers_say(
    check: Check, fact: object, wanted: list[str], said: Callable[..., list[str]]
) -> None:
    found = said(check, fact)
    assert len(found) == len(wanted), found
    assert all(text.startswith(start) for text, start in zip(found, wanted, strict=True)), found


def test_limits_are_those_of_exactly_one_board() -> None:
    assert peak_of("NVIDIA L4") is not None
    assert peak_of("NVIDIA L4-3Q") is None
    assert peak_of("NVIDIA H200 NVL") is None
    assert peak_of("Tesla T4") == peak_of("T4")
    assert all(peak.memory_gbps > 0 and peak.fp16_tflops > 0 for peak in PEAKS)
