"""gpu-burn's progress lines and verdicts, in every form that its versions print; short texts of our own."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import gpu_burn

FIRST = "10.0%  proc'd: 0 (0 Gflop/s) - 0 (0 Gflop/s)   errors: 0 - 0   temps: 30 C - 31 C \r"
LAST = "100.0%  proc'd: 40 (900 Gflop/s) - 41 (905 Gflop/s)   errors: 0 - -7  (WARNING!)  temps: 60 C - 61 C \n"
TESTED = "Killing processes.. done\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n"
BOARDS = "GPU 0: NVIDIA L4 (UUID: GPU-a)\nGPU 1: NVIDIA T4 (UUID: GPU-b)\n"


def test_the_last_progress_counts_and_a_carriage_return_ends_one() -> None:
    burn = gpu_burn.parse(FIRST + LAST + TESTED)
    assert [(gpu.iterations, gpu.errors, gpu.verdict) for gpu in burn.gpus] == [(40, 0, "OK"), (41, -7, "FAULTY")]
    assert (burn.finished, burn.aborted, burn.percent) == (True, False, 100.0)


def test_a_progress_line_that_was_cut_does_not_hide_a_gpu() -> None:
    cut = "100.0%  proc'd: 50 (900 Gflop/s)   errors: 0   temps: 60 C\n"
    assert len(gpu_burn.parse(LAST + cut).gpus) == 2


def test_errors_are_remembered_when_the_count_begins_anew() -> None:
    later = LAST.replace("-7  (WARNING!) ", "0 ")
    assert [gpu.errors for gpu in gpu_burn.parse(LAST + later).gpus] == [0, -7]


def test_temperatures_that_nobody_knows_and_power_are_no_other_gpus() -> None:
    line = "50.0%  proc'd: 1 (9 Gflop/s) - 2 (8 Gflop/s)   errors: 0 - 0   temps: -- - 61 C   power: 300 W - -- \n"
    assert [gpu.iterations for gpu in gpu_burn.parse(line).gpus] == [1, 2]


def test_boards_are_named_where_as_many_are_listed_as_were_burned() -> None:
    assert [gpu.board for gpu in gpu_burn.parse(BOARDS + LAST).gpus] == ["NVIDIA L4", "NVIDIA T4"]
    only_one = BOARDS + "100.0%  proc'd: 40 (900 Gflop/s)   errors: 0   temps: 60 C\n"
    assert [gpu.board for gpu in gpu_burn.parse(only_one).gpus] == [""]


def test_a_run_that_never_began_says_why() -> None:
    burn = gpu_burn.parse("Burning for 60 seconds.\nCouldn't init a GPU test: out of memory\n")
    assert (burn.gpus, burn.finished, burn.troubles) == ((), False, ("Couldn't init a GPU test: out of memory",))


@pytest.mark.parametrize("text", ["Burning for 60 seconds.\n", LAST, TESTED, "Couldn't init a GPU test: x\n"])
def test_it_is_told_from_other_texts(text: str) -> None:
    assert gpu_burn.is_it(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "Burning for 60 seconds.\n",
        LAST + "Tested 3 GPUs:\n\tGPU 0: OK\n",
        LAST.replace("0 - -7  (WARNING!)", "0") + TESTED,
        LAST.replace("60 C - 61 C", "60 C") + TESTED,
        LAST + TESTED.replace("GPU 1:", "GPU 7:"),
    ],
)
def test_a_burn_in_that_does_not_add_up_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        gpu_burn.parse(text)


def test_a_bad_run_is_not_forgotten_for_a_good_one_in_the_same_text() -> None:
    good = LAST.replace("-7  (WARNING!) ", "0 ") + TESTED.replace("FAULTY", "OK")
    listed, died = LAST.replace("-7  (WARNING!) ", "0 ") + TESTED, LAST.replace("(WARNING!)", "(DIED!)")
    for both in (listed + good, good + listed, listed + BOARDS + good, TESTED + good):
        assert "FAULTY" in [gpu.verdict for gpu in gpu_burn.parse(both).gpus], both
    assert gpu_burn.parse(died + FIRST + good).gpus[1].died
    assert not gpu_burn.parse(LAST + FIRST + good).finished
    assert [gpu.verdict for gpu in gpu_burn.parse(good + good).gpus] == ["OK", "OK"]


def test_wrong_results_on_a_narrower_line_count_too() -> None:
    narrow = "2.1%  proc'd: 7 (900 Gflop/s)   errors: 24  (WARNING!)  temps: 60 C\n"
    assert [gpu.errors for gpu in gpu_burn.parse(narrow + LAST).gpus] == [24, -7]


def test_first_words_that_a_child_repeats_begin_no_other_run() -> None:
    good = LAST.replace("-7  (WARNING!) ", "0 ")
    begun = "Burning for 60 seconds.\n" + BOARDS
    burn = gpu_burn.parse(begun + good + begun + TESTED.replace("FAULTY", "OK") + begun)
    assert [(gpu.iterations, gpu.verdict, gpu.board) for gpu in burn.gpus] == [
        (40, "OK", "NVIDIA L4"), (41, "OK", "NVIDIA T4"),
    ]  # fmt: skip
    assert burn.finished


def test_verdicts_alone_show_no_work_unless_one_is_bad() -> None:
    assert [gpu.verdict for gpu in gpu_burn.parse(TESTED).gpus] == ["OK", "FAULTY"]
    with pytest.raises(ParseError, match="a list of verdicts alone"):
        gpu_burn.parse(TESTED.replace("FAULTY", "OK"))
    assert gpu_burn.parse("Burning for 9 seconds.\n" + TESTED.replace("FAULTY", "OK")).gpus[0].iterations == 0
