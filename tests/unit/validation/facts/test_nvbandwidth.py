"""nvbandwidth's matrices, in every form that its versions print, and its JSON; short texts of our own."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import nvbandwidth

HEAD = (
    "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:53:00)\nDevice 1: NVIDIA H100 80GB HBM3\n\n"
)
MATRIX = (
    "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0       N/A    395.60\n 1    395.10       N/A\n\nSUM device_to_device_memcpy_read_ce 790.70\n\n"
)
BANDWIDTH = f"{HEAD}Running device_to_device_memcpy_read_ce.\n{MATRIX}Waived:\n"
ROOT = "nvbandwidth"


def document(status: str = "Passed", devices: list[str] | None = None, **changes: object) -> str:
    case: dict[str, object] = {"name": "host_to_device_memcpy_ce", "status": status}
    case |= {"bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"}
    case |= {"bandwidth_matrix": [["55.50", "N/A"]]}
    return json.dumps({ROOT: {"git_version": "v0.8", "GPU Device list": devices, "testcases": [case], **changes}})


def test_a_matrix_is_read_and_waived_tests_are_counted() -> None:
    run = nvbandwidth.parse(BANDWIDTH)
    assert run.tests[0].values == ((0, 1, 395.6), (1, 0, 395.1))
    assert (run.version, len(run.devices), run.waived) == ("v0.8", 2, 1)


def test_the_first_versions_word_for_waived_is_known() -> None:
    run = nvbandwidth.parse(HEAD + "Waiving device_to_device_memcpy_read_ce.\n" + "Waiving device_local_copy.\n")
    assert (run.tests, run.waived) == ((), 2)


def test_three_matrices_of_one_test_are_three() -> None:
    name = "device_to_device_memcpy_read_ce"
    matrices = "".join(MATRIX.replace(f"SUM {name}", f"SUM {name}_{part}") for part in ("read1", "read2", "total"))
    run = nvbandwidth.parse(f"nvbandwidth Version: v0.10.0\n\nRunning {name}.\n{matrices}")
    assert [test.name.removeprefix(name) for test in run.tests] == ["_read1", "_read2", "_total"]
    assert run.devices == ()
    with pytest.raises(ParseError):
        nvbandwidth.parse(f"nvbandwidth Version: v0.10.0\n\nRunning {name}.\n{matrices[: matrices.rindex('memcpy')]}")


def test_a_text_whose_first_lines_were_not_pasted_is_known_and_read() -> None:
    rest = BANDWIDTH[BANDWIDTH.index("Running") :]
    assert nvbandwidth.is_it(rest)
    assert len(nvbandwidth.parse(rest).tests) == 1


def test_a_matrix_is_read_where_the_lines_above_it_were_left_out() -> None:
    assert nvbandwidth.parse(f"{HEAD}...\n\n{MATRIX}").tests[0].values == ((0, 1, 395.6), (1, 0, 395.1))


def test_json_says_the_same_as_text() -> None:
    run = nvbandwidth.parse(document(devices=["0: NVIDIA GB200 (00000000:06:00): (host1)"]))
    assert (run.version, run.devices) == ("v0.8", ("NVIDIA GB200",))
    assert (run.tests[0].unit, run.tests[0].values) == ("GB/s", ((0, 0, 55.5),))
    assert nvbandwidth.parse(document("Waived")).waived == 1
    assert nvbandwidth.parse(document("Error")).errors == ("host_to_device_memcpy_ce: Error",)
    assert nvbandwidth.parse(document(testcases=[], error="no device")).errors == ("no device",)


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Invalid value",
        "[CUDA_ERROR_NOT_SUPPORTED] operation not supported in expression x",
        "ASSERT in expression h == 0",
        "Aborted (core dumped)",
        "Not Found: test x",
    ],
)
def test_a_test_that_ended_in_an_error_is_told(line: str) -> None:
    run = nvbandwidth.parse(f"{HEAD}Running device_local_copy.\n{line}\n")
    assert run.errors == (f"device_local_copy: {line}",)


def test_data_that_came_back_wrong_is_told_from_an_error() -> None:
    run = nvbandwidth.parse(f"{HEAD}Running device_local_copy.\n Invalid value when checking the pattern at 0x7\n")
    assert run.corrupt == ("device_local_copy: Invalid value when checking the pattern at 0x7",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        BANDWIDTH[: BANDWIDTH.index("SUM")],
        BANDWIDTH.replace("    395.60\n", "\n"),
        BANDWIDTH.replace(" 1    395.10       N/A\n", ""),
        BANDWIDTH[: BANDWIDTH.index("memcpy")],
        BANDWIDTH.replace("395.10", "fast"),
        document()[:-9],
        document(testcases=[]),
        "{}",
    ],
)
def test_a_bandwidth_test_cut_short_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nvbandwidth.parse(text)
