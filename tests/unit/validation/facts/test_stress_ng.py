"""stress-ng's log in the forms of its versions and options; short texts of our own."""

from __future__ import annotations

import re

import pytest

from profiles.errors import ParseError
from validation.facts import stress_ng

ENDED = "stress-ng: info:  [12] successful run completed in 60.01s (1 min, 0.01 secs)\n"
FAILED = (
    "stress-ng: info:  [12] setting to a 60 second run per stressor\n"
    "stress-ng: info:  [12] dispatching hogs: 8 cpu\n"
    "stress-ng: fail:  [13] cpu: wrong result\nstress-ng: fail:  [14] cpu: wrong result\n"
    "stress-ng: info:  [12] skipped: 0\nstress-ng: info:  [12] passed: 7: cpu (7)\n"
    "stress-ng: info:  [12] failed: 1: cpu (1)\nstress-ng: info:  [12] metrics untrustworthy: 0\n"
    "stress-ng: info:  [12] unsuccessful run completed in 60.01s\n"
)
GOOD = "stress-ng: info:  [12] dispatching hogs: 8 cpu, 1 vm\n" + ENDED


def test_a_run_says_what_failed_once() -> None:
    run = stress_ng.parse(FAILED)
    assert (run.succeeded, run.passed, run.failed, run.failures) == (False, 7, 1, ("cpu: wrong result",))
    assert (run.asked_s, run.took_s, run.dispatched, run.counted) == (60, 60.01, 8, True)


def test_an_older_version_counts_nothing() -> None:
    run = stress_ng.parse(GOOD)
    assert (run.succeeded, run.dispatched, run.counted, run.took_s) == (True, 9, False, 60.01)


@pytest.mark.parametrize("before", ["stress-ng: 18:54:44.35 ", "[    4.567890] rc.local[77]: stress-ng: "])
def test_a_timestamp_or_a_console_changes_nothing(before: str) -> None:
    text = GOOD.replace("stress-ng: ", before)
    assert stress_ng.is_it(text)
    assert stress_ng.parse(text) == stress_ng.parse(GOOD)


def test_a_brief_log_has_neither_names_nor_levels() -> None:
    brief = re.sub(r"(?m)^stress-ng: \w+: +\[\d+\] ", "", GOOD)
    assert stress_ng.is_it(brief)
    assert stress_ng.parse(brief) == stress_ng.parse(GOOD)


@pytest.mark.parametrize(
    ("words", "skip"),
    [
        ("tsc stressor will be skipped, not a recognised Intel CPU", "tsc stressor will be skipped"),
        ("disabled 'smi' as it may hang or reboot the machine", "disabled 'smi'"),
        ("metrics-check: all bogo-op counters are zero, data may be incorrect", "metrics-check"),
        ("vm                      0      2.00      0.60      0.10      12638.96", "vm did no operation"),
    ],
)
def test_a_stressor_that_did_nothing_is_told(words: str, skip: str) -> None:
    run = stress_ng.parse(f"stress-ng: info:  [12] {words}\n" + GOOD)
    assert [text[: len(skip)] for text in run.skips] == [skip]


def test_work_that_was_done_is_no_skip() -> None:
    row = "stress-ng: metrc: [12] vm                25316      2.00      0.60      0.10      12638.96\n"
    assert stress_ng.parse(row + GOOD).skips == ()


def test_an_error_that_did_not_stop_the_run_is_kept() -> None:
    assert stress_ng.parse("stress-ng: error: [12] cannot open /sys\n" + GOOD).errors == ("cannot open /sys",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        FAILED[: FAILED.index("stress-ng: info:  [12] unsuccessful")],
        "dispatching hogs: 8 cpu\n",
        "---\nsystem-info:\n      stress-ng-version: 0.15.06\n",
    ],
)
def test_a_run_that_did_not_end_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        stress_ng.parse(text)


def test_a_bad_run_is_not_forgotten_for_a_good_one_in_the_same_text() -> None:
    for both in (FAILED + GOOD, GOOD + FAILED):
        run = stress_ng.parse(both)
        assert (run.succeeded, run.passed, run.failed, run.dispatched, run.counted) == (False, 7, 1, 17, False)
    assert not stress_ng.parse(ENDED.replace("successful", "unsuccessful") + ENDED).succeeded
    short = FAILED.replace("60.01s", "1.00s")
    assert (stress_ng.parse(short + FAILED).took_s, stress_ng.parse(FAILED + short).took_s) == (1, 1)
    with pytest.raises(ParseError, match="did not end"):
        stress_ng.parse(GOOD + GOOD.removesuffix(ENDED))


def test_counts_without_that_of_the_skipped_are_not_all_of_them() -> None:
    assert not stress_ng.parse(FAILED.replace("stress-ng: info:  [12] skipped: 0\n", "")).counted
