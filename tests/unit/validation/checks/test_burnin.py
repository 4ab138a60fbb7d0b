"""Burn-in: rows for pass, fail, not applicable and what was not measured, with the exact text."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.base import Check
from validation.checks.burnin import RIGHT_CHECKSUMS, BurnInCopy, BurnInGemm
from validation.checks.burnin_speed import BurnInBandwidth, BurnInPeers, BurnInSpeed, BurnInThrottle
from validation.facts.burnin import BurnInResult
from validation.judge import judge_facts
from validation.probe.burnload import PERIOD, Pattern, checked_columns, expected_sums
from validation.verdict import FaultClass, Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

CHECKS: tuple[Check, ...] = (
    BurnInGemm(),
    BurnInCopy(),
    BurnInSpeed(),
    BurnInPeers(),
    BurnInBandwidth(),
    BurnInThrottle(),
)
Data = dict[str, Any]
NOT_READY = "cuX: CUDA_ERROR_SYSTEM_NOT_READY (802), in phase 'init')"
UNAVAILABLE = "cuX: CUDA_ERROR_DEVICE_UNAVAILABLE (46)"


def gpu(index: int, **changes: Any) -> Data:
    """A healthy H100; ``gemm={...}`` and the like change single keys, None replaces the whole."""
    data: Data = {
        "index": index,
        "pci": f"0000:{0x53 + index:02x}:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "phase": "done",
        "error": None,
        "no_cublas": None,
        "cublas": 120600,
        "library": "libcublas.so.12",
        "cpus": "0-47",
        "copy": {"h2d_gbps": 25.0, "d2h_gbps": 26.0, "bytes": 33554432, "intact": True},
        "gemm": {
            "n": 8192,
            "iterations": 1300,
            "seconds": 2.0,
            "tflops": 700.0,
            "compared": 20,
            "mismatches": 0,
            "first_mismatch": None,
            "untouched": False,
            "checked_columns": 64,
            "wrong_columns": 0,
            "checksum": RIGHT_CHECKSUMS[8192],
            "stable": True,
            "complete": True,
        },
        "samples": {
            "sm_clock_mhz": [1755.0, 1740.0],
            "power_w": [690.0, 699.0],
            "temp_c": [55.0, 61.0],
            "throttle": [["sw_power_cap"], ["sw_power_cap"]],
            "errors": [],
        },
    }
    for key, value in changes.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) and isinstance(data[key], dict) else value
    return data


def error(name: str, phase: str = "gemm", code: int | None = None) -> Data:
    return {"phase": phase, "call": "cuX", "code": code, "name": name, "text": f"cuX: {name} ({code})"}


def stopped(index: int, name: str, phase: str = "gemm", code: int | None = None, **changes: Any) -> Data:
    """A GPU that did not finish."""
    return gpu(index, **{"phase": phase, "error": error(name, phase, code), "gemm": None, **changes})


def result(*broken: Data, **changes: Any) -> BurnInResult:
    """Eight GPUs, healthy but for the given ones."""
    gpus = {index: gpu(index) for index in range(8)} | {data["index"]: data for data in broken}
    document = {
        "schema": "kiln/burn-in/v1",
        "level": "quick",
        "outcome": "ran",
        "error": None,
        "driver_cuda": 13000,
        "sampling_error": None,
        "wall_s": 6.0,
        "gpus": list(gpus.values()),
        **changes,
    }
    return BurnInResult.model_validate(document, strict=False)


def nothing(outcome: str, why: Data | None) -> BurnInResult:
    return result(outcome=outcome, error=why, gpus=[])


PASSES: dict[Callable[[], Check], str] = {
    BurnInGemm: "PASS host: 8 GPUs, at least 1300 products of order 8192 each: all results right",
    BurnInCopy: "PASS host: 8 GPUs: 32 MiB came back as they were sent",
    BurnInSpeed: "PASS host: 8 GPUs at 700.0 TFLOPS, fp16",
    BurnInPeers: "PASS host: 8 GPUs within 0.0 % of each other",
    BurnInBandwidth: "PASS host: 8 GPUs: 25.0 GB/s to the GPU, 26.0 GB/s from it",
    BurnInThrottle: "PASS host: 8 GPUs not held back by heat or power brake under load, up to 61 C",
}

# Check, the burn-in, and what is said.
ROWS: list[tuple[Callable[[], Check], BurnInResult, list[str]]] = [
    *((check, result(), [text]) for check, text in PASSES.items()),
    (
        BurnInGemm,
        result(gpu(3, gemm={"mismatches": 1, "first_mismatch": 312})),
        ["FAIL GPU3: wrong results: 1 of 20 batches of products differ, the first within 312 products"],
    ),
    (
        BurnInGemm,
        result(gpu(3, gemm={"wrong_columns": 2, "checksum": "00000000"})),
        ["FAIL GPU3: wrong results: 2 of 64 checked columns of the product differ from the right ones"],
    ),
    (
        BurnInGemm,
        result(gpu(3, gemm={"checksum": "43d6083f"})),
        ["FAIL GPU3: wrong results: the column sums of the product are not the right ones"],
    ),
    (
        BurnInGemm,
        result(gpu(3, gemm={"stable": False})),
        ["FAIL GPU3: wrong results: the last product differs from the first"],
    ),
    (
        BurnInGemm,
        result(gpu(2, gemm={"untouched": True, "iterations": 0, "tflops": 0.0, "seconds": 0.0, "compared": 0})),
        ["FAIL GPU2: no work done: the driver reported success, but the result was never written"],
    ),
    (
        BurnInGemm,
        result(gpu(2, gemm={"compared": 0})),
        ["UNKNOWN GPU2: no results were compared"],
    ),
    (
        BurnInGemm,
        result(gpu(2, gemm={"n": 1000})),
        ["UNKNOWN GPU2: matrices of order 1000: their right answer is not known"],
    ),
    (
        BurnInGemm,
        result(gpu(1, gemm=None, no_cublas="libcublas.so.12: cannot open")),
        ["UNKNOWN GPU1: not measured: no cuBLAS: libcublas.so.12: cannot open"],
    ),
    (
        BurnInGemm,
        result(stopped(5, "CUDA_ERROR_ECC_UNCORRECTABLE", code=214)),
        ["FAIL GPU5: error in phase 'gemm' (cuX: CUDA_ERROR_ECC_UNCORRECTABLE (214), in phase 'gemm')"],
    ),
    (
        BurnInGemm,
        result(stopped(5, "hang", gemm=gpu(5, gemm={"complete": False, "stable": None})["gemm"])),
        ["UNKNOWN GPU5: it did not answer (cuX: hang (None), in phase 'gemm')"],
    ),
    (
        BurnInGemm,
        result(stopped(5, "memory-in-use", "setup", copy=None)),
        ["UNKNOWN GPU5: too little GPU memory is free (cuX: memory-in-use (None), in phase 'setup')"],
    ),
    (
        BurnInGemm,
        nothing("cuda-error", error("CUDA_ERROR_SYSTEM_NOT_READY", "init", 802)),
        [f"FAIL host: the system is not set up: the fabric manager has not done its work ({NOT_READY}"],
    ),
    (BurnInGemm, nothing("no-devices", None), ["FAIL host: CUDA sees no GPU"]),
    (
        BurnInGemm,
        nothing("no-cuda", error("OSError", "init")),
        ["UNKNOWN host: the CUDA driver library could not be loaded (cuX: OSError (None), in phase 'init')"],
    ),
    (
        BurnInGemm,
        result(gpus=[gpu(index) for index in range(7)]),
        [
            "PASS host: 7 GPUs, at least 1300 products of order 8192 each: all results right",
            "UNKNOWN host: 7 GPUs were burned in; p5.48xlarge has 8",
        ],
    ),
    (
        BurnInCopy,
        result(gpu(3, copy={"intact": False})),
        ["FAIL GPU3: 32 MiB copied to the GPU and back differ from what was sent"],
    ),
    (
        BurnInCopy,
        result(stopped(5, "CUDA_ERROR_DEVICE_UNAVAILABLE", "setup", 46, copy=None)),
        [f"UNKNOWN GPU5: not measured: the GPU is busy or not open to this process ({UNAVAILABLE}, in phase 'setup')"],
    ),
    (
        BurnInCopy,
        nothing("no-devices", None),
        ["UNKNOWN host: nothing was measured: CUDA sees no GPU"],
    ),
    (
        BurnInSpeed,
        result(gpu(3, gemm={"tflops": 234.0})),
        ["FAIL GPU3: fp16 products 234.0 TFLOPS; expected at least 459 TFLOPS"],
    ),
    (
        BurnInSpeed,
        result(gpu(3, gemm={"tflops": 3510.0})),
        ["UNKNOWN GPU3: fp16 products 3510.0 TFLOPS; not possible above 1071 TFLOPS"],
    ),
    (
        BurnInSpeed,
        result(gpu(3, gemm={"seconds": 0.0, "tflops": 0.0})),
        ["UNKNOWN GPU3: 1300 products in no time: this is no measurement"],
    ),
    (
        BurnInSpeed,
        result(gpu(3, gemm={"iterations": 0, "tflops": 0.0})),
        ["UNKNOWN GPU3: not measured: no work done"],
    ),
    (
        BurnInPeers,
        result(gpu(3, gemm={"tflops": 600.0})),
        ["FAIL GPU3: fp16 products 600.0 TFLOPS, 14 % below the median 700.0 of its peers"],
    ),
    (BurnInPeers, result(gpu(3, gemm={"tflops": 640.0})), ["PASS host: 8 GPUs within 8.6 % of each other"]),
    (
        BurnInPeers,
        result(gpus=[gpu(0), gpu(1, gemm={"tflops": 3510.0})]),  # an impossible figure accuses no peer
        ["UNKNOWN GPU0: no peer was measured"],
    ),
    (BurnInPeers, result(gpus=[gpu(0)]), ["NOT_APPLICABLE host: one GPU has no peers"]),
    (
        BurnInBandwidth,
        result(gpu(3, copy={"h2d_gbps": 6.1})),
        ["FAIL GPU3: host to GPU 6.1 GB/s; expected at least 10.5 GB/s"],
    ),
    (
        BurnInBandwidth,
        result(gpu(3, copy={"d2h_gbps": 70.0})),
        ["UNKNOWN GPU3: GPU to host 70.0 GB/s; not possible above 63 GB/s"],
    ),
    (
        BurnInBandwidth,
        result(stopped(5, "hang", "copy", copy=None)),
        ["UNKNOWN GPU5: not measured: it did not answer (cuX: hang (None), in phase 'copy')"],
    ),
    (
        BurnInThrottle,
        result(gpu(3, samples={"throttle": [["hw_slowdown", "hw_thermal_slowdown"], ["hw_thermal_slowdown"]]})),
        [
            "FAIL GPU3: held back by heat in 2 of 2 samples under load, up to 61 C: hw_thermal_slowdown",
            "FAIL GPU3: held back by its power brake in 1 of 2 samples under load, up to 61 C: hw_slowdown",
        ],
    ),
    (
        BurnInThrottle,
        result(gpu(3, samples={"throttle": [["sw_thermal_slowdown"], [], [], []]})),
        ["WARN GPU3: held back by heat in 1 of 4 samples under load, up to 61 C: sw_thermal_slowdown"],
    ),
    (
        BurnInThrottle,
        result(gpu(3, samples=None), sampling_error="NVML did not answer in 2 s"),
        ["UNKNOWN GPU3: not seen under load: NVML did not answer in 2 s"],
    ),
    (
        BurnInThrottle,
        result(stopped(5, "hang", "setup", copy=None)),
        ["UNKNOWN GPU5: not measured: it did not answer (cuX: hang (None), in phase 'setup')"],
    ),
]


@pytest.mark.parametrize(("check", "burn_in", "said"), ROWS)
def test_a_burn_in_is_judged_by_what_was_measured(
    host: Callable[..., Host], check: Callable[[], Check], burn_in: BurnInResult, said: list[str]
) -> None:
    assert host("p5.48xlarge", burn_in="quick").put(burn_in).says(check()) == said


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
class TestEveryCheck:
    def test_does_not_apply_where_no_burn_in_was_asked_for(self, host: Callable[..., Host], check: Check) -> None:
        assert host("p5.48xlarge").says(check) == ["NOT_APPLICABLE host: burn-in not asked for"]

    def test_does_not_know_without_a_result(self, host: Callable[..., Host], check: Check) -> None:
        asked = host("p5.48xlarge", burn_in="quick").drop(BurnInResult, "evidence item 'burn-in' was not gathered")
        assert asked.says(check) == ["UNKNOWN host: could not look: evidence item 'burn-in' was not gathered"]

    def test_never_passes_where_a_gpu_hung_before_it_was_loaded(self, host: Callable[..., Host], check: Check) -> None:
        hung = host("p5.48xlarge", burn_in="quick").put(result(stopped(5, "hang", "setup", copy=None)))
        assert all(line.startswith("UNKNOWN GPU5: ") for line in hung.says(check))


def test_mig_hides_the_whole_gpus_from_a_burn_in(host: Callable[..., Host]) -> None:
    said = host("p5.48xlarge", burn_in="quick", mig=True).put(result(gpus=[gpu(0)])).says(BurnInGemm())
    assert said[-1] == (
        "UNKNOWN host: 1 GPU was burned in; p5.48xlarge has 8; with MIG on, CUDA shows a process one instance: "
        "burn in before MIG is turned on"
    )


@pytest.mark.parametrize("instance_type", ["g7.48xlarge", "g5g.xlarge"])
def test_a_board_without_figures_is_not_called_fast(host: Callable[..., Host], instance_type: str) -> None:
    asked = host(instance_type, burn_in="quick")
    asked.put(result(gpus=[gpu(index) for index in range(len(asked.gpus))]))
    for check in (BurnInSpeed(), BurnInBandwidth()):
        findings = judge_facts(asked.facts(), asked.expected, "host", [check])
        assert {(finding.verdict, finding.required) for finding in findings} == {(Verdict.UNKNOWN, False)}


def test_wrong_results_close_the_gate_on_every_type_of_the_catalogue(host: Callable[..., Host]) -> None:
    from profiles import catalog

    for instance_type in catalog.types():
        asked = host(instance_type, burn_in="quick").put(result(gpus=[gpu(0, gemm={"checksum": "43d6083f"})]))
        findings = judge_facts(asked.facts(), asked.expected, "host", [BurnInGemm()])
        faults = [(f.verdict, f.fault_class, f.required) for f in findings if f.subject == "host/GPU0"]
        assert faults == [(Verdict.FAIL, FaultClass.REPLACE_NOW, True)], instance_type


def test_an_error_nobody_knows_accuses_nobody(host: Callable[..., Host]) -> None:
    asked = host("p5.48xlarge", burn_in="quick").put(result(stopped(0, "CUDA_ERROR_12345", code=12345)))
    finding = judge_facts(asked.facts(), asked.expected, "host", [BurnInGemm()])[0]
    assert (finding.verdict, finding.fault_class) == (Verdict.UNKNOWN, None)


def bits(numbers: bytes, width: int) -> list[bytes]:
    """The numbers' bits by weight, eight to a byte: in each, bit k is that of the number at k."""
    digits = [bytes(48 + (value >> weight & 1) for value in range(256)) for weight in range(width)]
    return [int(numbers.translate(table)[::-1], 2).to_bytes(len(numbers) // 8 + 1, "little") for table in digits]


def cut(plane: bytes, start: int, n: int) -> int:
    """n bits of it from a start."""
    return int.from_bytes(plane[start // 8 : (start + n) // 8 + 1], "little") >> start % 8 & (1 << n) - 1


@pytest.mark.parametrize("n", RIGHT_CHECKSUMS)
def test_the_right_checksums_follow_from_the_pattern(n: int) -> None:
    left, right = Pattern(1), Pattern(2)
    starts = [k * n % PERIOD for k in range(n)]
    prefix = [0, *itertools.accumulate(left.numbers)]
    row = [prefix[start + n] - prefix[start] for start in starts]
    # n squared products, a whole column at a time, as counts of the places where a bit of both factors is set. For that
    # both begin at 0: the row's factor is number + 2**17, in bytes of 6 bits; the column's is (number + 15) / 2.
    total, factors = sum(row), [number + 2**17 for number in row]
    assert 0 <= min(factors) <= max(factors) < 2**18
    r = [plane for shift in (0, 6, 12) for plane in bits(bytes(factor >> shift & 63 for factor in factors), 6)]
    weights = [(cut(plane, 0, n), weight) for weight, plane in enumerate(r)]
    columns = bits(bytes((number + 15) // 2 for number in right.numbers), 4)
    sums = []
    for start in starts:
        column = [(cut(plane, start, n), weight) for weight, plane in enumerate(columns)]
        products = sum((one & other).bit_count() << i + j for one, i in weights for other, j in column)
        content = sum(plane.bit_count() << weight for plane, weight in column)
        sums.append(2 * (products - 2**17 * content) - 15 * total)
    assert f"{zlib.crc32(struct.pack(f'<{n}f', *sums)):08x}" == RIGHT_CHECKSUMS[n]
    assert [sums[j] for j in checked_columns(n)] == expected_sums(n, left, right)
    assert n * 15 * 15 < 2**24  # no element of a product can leave what fp32 holds exactly
    assert max(map(abs, sums)) < 2**24 / 4  # nor, by a wide margin, does any column's sum


@pytest.mark.parametrize(
    ("tflops", "verdict"), [(340.0, Verdict.FAIL), (400.0, Verdict.WARN), (640.0, Verdict.WARN), (700.0, Verdict.WARN)]
)
def test_a_gpu_below_half_of_its_peers_closes_the_gate_where_a_wider_spread_than_10_percent_is_excused(
    host: Callable[..., Host], tflops: float, verdict: Verdict
) -> None:
    asked = host("ecs.gn7i-8x.32xlarge", burn_in="quick").put(result(gpu(3, gemm={"tflops": tflops})))
    checks = [BurnInGemm(), BurnInSpeed(), BurnInPeers()]  # no floor is known of this board, so speed always warns
    assert combine(judge_facts(asked.facts(), asked.expected, "host", checks)) is verdict
