"""nccl-tests' tables, old and new, below launchers' labels, and its JSON; short texts of our own."""

from __future__ import annotations

import json
import re

import pytest

from profiles.errors import ParseError
from validation.facts import nccl_tests
from validation.facts.missing import Missing

RANK = "#  Rank  0 Group  0 Pid 100 on host1 device  0 [0000:53:00] NVIDIA H100 80GB HBM3\n"
CLOSING = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 197.70\n#\n"
NCCL = (
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
    f"{RANK}"
    "#   size   count   type   redop   root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "      8       2     float     sum      -1    10.0    0.00    0.10      0    10.0    0.00    0.10      0\n"
    "host1:1:1 [0] NCCL INFO comm ready\n"
    "     16       4     float     sum      -1    10.0    0.00  400.50      0    10.0    0.00  390.10      0\n"
    f"{CLOSING}"
)
OLD = (
    "nThread 1 nGpus 8 minBytes 9 maxBytes 16 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1\n"
    "#   Rank  0 on  host1 device  0 [0x1a] Tesla V100-SXM2-32GB\n"
    "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
    "           8             2   float     sum    0.098   0.00   7.50    1e+00    0.090   0.00   0.00    1e+00\n"
    " Out of bounds values : 0 OK\n Avg bus bandwidth    : 0.116271\n"
)


def labelled(label: str) -> str:
    return "".join(f"{label}{line}\n" for line in NCCL.rstrip("\n").split("\n"))


def document(**changes: object) -> str:
    way = {"bus_bw": 470.1, "nwrong": 0}
    data = {
        "config": {"validation": 1, "devices": [{"hostname": "host1", "device_info": "NVIDIA H200"}]},
        "results": [{"size": 16, "out_of_place": way, "in_place": way}],
        "out_of_bounds": {"count": 0, "okay": True},
        "average_bus_bandwidth": {"bandwidth": 197.7, "okay": True},
    }
    return json.dumps({key: value for key, value in (data | changes).items() if value is not None})


def test_the_new_form_is_read() -> None:
    result = nccl_tests.parse(NCCL)
    assert (result.peak_gbps, result.average_gbps, result.checked, result.apart) == (400.5, 197.7, True, 1)
    assert result.ranks == (("host1", "NVIDIA H100 80GB HBM3"),)


def test_the_form_of_version_1_is_read() -> None:
    result = nccl_tests.parse(OLD)
    assert (result.peak_gbps, result.checked, result.failed, result.ranks[0][0]) == (7.5, True, False, "host1")
    assert nccl_tests.parse(OLD.replace("0 OK", "248 FAILED")).out_of_bounds == 248


@pytest.mark.parametrize("label", ["[1,0]<stdout>:", "[prterun-n1-1@1,0]<stdout>: ", "0: ", "2026-01-05T10:00:00.1Z "])
def test_labels_of_a_launcher_are_no_part_of_a_line(label: str) -> None:
    assert nccl_tests.is_it(labelled(label))
    assert nccl_tests.parse(labelled(label)) == nccl_tests.parse(NCCL)


def test_a_rank_before_every_piece_of_a_line_is_no_part_of_it() -> None:
    pieces = labelled("[0] ").replace("sum      -1 ", "sum      -1[0] ")
    assert nccl_tests.is_it(pieces)
    assert nccl_tests.parse(pieces) == nccl_tests.parse(NCCL)


def test_a_text_that_lost_its_hashes_is_read() -> None:
    bare = re.sub(r"(?m)^# ?", "", NCCL)
    assert nccl_tests.is_it(bare)
    assert nccl_tests.parse(bare) == nccl_tests.parse(NCCL)


def test_json_says_the_same_as_the_table() -> None:
    result = nccl_tests.parse(document())
    assert (result.peak_gbps, result.average_gbps, result.checked, result.failed) == (470.1, 197.7, True, False)
    assert result.ranks == (("host1", "NVIDIA H200"),)
    assert nccl_tests.parse(document(out_of_bounds={"count": 3, "okay": False})).failed
    assert nccl_tests.parse(document(average_bus_bandwidth={"bandwidth": 1, "okay": False})).below_minimum


def test_results_that_were_not_checked_are_said_to_be() -> None:
    assert not nccl_tests.parse(NCCL.replace("validation: 1", "validation: 0")).checked
    assert not nccl_tests.parse(
        NCCL.replace("     0    10.0", "   N/A    10.0").replace("     0\n", "   N/A\n")
    ).checked
    # Some collectives have no check in place.
    assert nccl_tests.parse(NCCL.replace("390.10      0", "390.10    N/A")).checked


def test_wrong_results_are_counted_in_the_rows_and_at_the_end() -> None:
    rows = NCCL.replace("390.10      0", "390.10      3")
    assert nccl_tests.parse(rows).sizes[1].wrong == 3
    wrong = nccl_tests.parse(rows.replace("values : 0 OK", "values : 3 FAILED"))
    assert (wrong.failed, wrong.out_of_bounds) == (True, 3)


def test_an_error_of_rounding_is_no_wrong_value() -> None:
    old = NCCL.replace("#wrong", "error").replace("400.50      0", "400.50  1e-06")
    assert nccl_tests.parse(old).sizes[1].wrong == 0


def test_columns_of_time_and_a_timestamp_are_read() -> None:
    text = NCCL.replace("busbw #wrong\n", "busbw #wrong  timestamp\n")
    text = text.replace("0.10      0\n", "0.10      0  2026-01-05 10:00:00\n")
    text = text.replace("390.10      0\n", "390.10      0  2026-01-05 10:00:01\n")
    assert nccl_tests.parse(text).peak_gbps == 400.5


def test_a_minimum_that_was_not_reached_is_told() -> None:
    assert nccl_tests.parse(NCCL.replace(": 197.70", ": 197.70 FAILED")).below_minimum


def test_a_run_that_broke_off_says_why() -> None:
    text = NCCL[: NCCL.index("# Out of")] + "host1: Test NCCL failure common.cu:1005 'remote process exited'\n"
    assert nccl_tests.parse(text).failures == ("Test NCCL failure common.cu:1005 'remote process exited'",)
    before_any_row = RANK + "host1: Test NCCL failure common.cu:958 'invalid usage'\n"
    assert nccl_tests.parse(before_any_row).peak_gbps == 0


def test_processes_that_know_nothing_of_each_other_are_counted() -> None:
    head, tail = NCCL.split(RANK)
    assert nccl_tests.parse(head + RANK + RANK.replace("Pid 100", "Pid 101") + tail).apart == 2
    # Two runs, one after the other, are no such thing.
    assert nccl_tests.parse(NCCL + NCCL.replace("Pid 100", "Pid 101")).apart == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        NCCL[: NCCL.index("# Out of")],
        NCCL[: NCCL.index("# Out of")] + NCCL,
        NCCL + NCCL[: NCCL.index("# Out of")],
        NCCL.replace("-1    10.0    0.00  400.50", "10.0    0.00  400.50"),
        NCCL.replace("400.50", "fast"),
        NCCL[: NCCL.index("      8       2")] + NCCL[NCCL.index("# Out of") :],
        NCCL.replace("busbw #wrong     time", "busbw #wrong     clock"),
        document(out_of_bounds=None),
        document(results=[]),
        document(config=None),
        document()[:-9],
    ],
)
def test_a_collective_that_did_not_end_or_has_other_columns_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nccl_tests.parse(text)


def test_a_size_that_json_does_not_check_is_missing() -> None:
    way = {"bus_bw": 470.1, "nwrong": None}
    size = nccl_tests.parse(document(results=[{"size": 16, "out_of_place": way, "in_place": way}])).sizes[0]
    assert isinstance(size.wrong, Missing)


def test_a_table_and_a_document_in_one_text_are_not_read_half() -> None:
    wrong = document(out_of_bounds={"count": 3, "okay": False})
    for both in (f"{NCCL}{wrong}", f"{wrong}\n{NCCL}"):
        with pytest.raises(ParseError):
            nccl_tests.parse(both)
