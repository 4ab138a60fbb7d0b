"""gpu-fryer's summary, as text and as JSON; short texts of our own."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import gpu_fryer

HEALTHY = "All GPUs seem healthy\n"
DETECTED = 'Detected GPU #0: "NVIDIA L4" (GPU-a)\n'
FRYER = (
    "  GPU #0:  56263 Gflops/s (min: 56214.09, max: 56372.36, dev: 0.06%)\n          Temperature: 47.38\n"
    f"          Throttling HW: false, Thermal SW: true, Thermal HW: false\n{HEALTHY}"
)


def document(*problems: str, hot: int = 0, cut: bool = False) -> str:
    burn = {"gpu_idx": 0, "flops_min": 1e12, "flops_max": 3e12}
    burn |= {"throttling_hw": hot, "throttling_thermal_sw": 0, "throttling_thermal_hw": 0}
    rows = [
        {"type": "detected_gpus", "detected_gpus": [{"index": 0, "name": "NVIDIA L4"}]},
        {"type": "feature_detection", "fp32": False, "bf16": True, "fp8": True},
        {"type": "results", "gpus": [{"burn_result": burn, "flops_avg": 2e12}]},
        {"type": "problems", "problems": list(problems)},
    ]
    return "\n".join(json.dumps(row) for row in (rows[:-1] if cut else rows))


def test_the_summary_and_closing_word_are_read() -> None:
    fryer = gpu_fryer.parse(FRYER)
    assert (fryer.gpus[0].gflops, fryer.gpus[0].throttled, fryer.said_healthy) == (56263, True, True)
    assert not gpu_fryer.parse(FRYER.replace(HEALTHY, "Some GPUs are not healthy\n")).said_healthy


def test_the_board_and_the_precision_are_read() -> None:
    fryer = gpu_fryer.parse(f"{DETECTED}Using BF16\n{FRYER}")
    assert (fryer.gpus[0].board, fryer.precision) == ("NVIDIA L4", "BF16")


def test_objects_say_the_same_as_text() -> None:
    fryer = gpu_fryer.parse(document())
    one = fryer.gpus[0]
    assert (one.gflops, one.gflops_min, one.gflops_max, one.board) == (2000, 1000, 3000, "NVIDIA L4")
    assert (fryer.said_healthy, one.throttled, fryer.precision) == (True, False, "BF16 FP8")
    assert not gpu_fryer.parse(document("GPU 0: low flops")).said_healthy
    assert gpu_fryer.parse(document(hot=1)).gpus[0].throttled


@pytest.mark.parametrize("text", [FRYER, DETECTED, document()])
def test_it_is_told_from_other_texts(text: str) -> None:
    assert gpu_fryer.is_it(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        DETECTED,
        FRYER.replace(HEALTHY, ""),
        DETECTED.replace("#0", "#1") + FRYER,
        document(cut=True),
        document()[:-9],
        document().replace("flops_avg", "flops"),
    ],
)
def test_a_run_that_did_not_end_or_lost_a_gpu_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        gpu_fryer.parse(text)


def test_a_bad_run_is_not_forgotten_for_a_good_one_in_the_same_text() -> None:
    bad = FRYER.replace(HEALTHY, "Some GPUs are not healthy\n").replace("56263", "0")
    for both in (bad + FRYER, FRYER + bad, document() + "\n" + bad, bad + document()):
        fryer = gpu_fryer.parse(both)
        assert (fryer.gpus[0].gflops, fryer.said_healthy) == (0, False), both
    assert gpu_fryer.parse(FRYER + FRYER).said_healthy
    with pytest.raises(ParseError, match="did not end"):
        gpu_fryer.parse(FRYER + FRYER.replace(HEALTHY, ""))


def test_reasons_below_the_closing_word_are_no_other_run() -> None:
    bad = FRYER.replace(HEALTHY, "Some GPUs are not healthy:\n  GPU #0: low flops\n")
    assert not gpu_fryer.parse(bad).said_healthy
