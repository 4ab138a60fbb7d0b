"""fio's results as text, as JSON and as terse lines; short texts of our own."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import fio

JOB = (
    "seq: (groupid=0, jobs=1): err= 0: pid=27970: Mon Nov 30 18:42:41 2026\n"
    "  read: IOPS=1151, BW=1151MiB/s (1207MB/s)(2304MiB/2002msec)\n"
    "  write: IOPS=2.5k, BW=4KiB/s (4096B/s)(8KiB/2002msec); 0 zone resets\n"
)
END = "\nRun status group 0 (all jobs):\n   READ: bw=1151MiB/s (1207MB/s), io=2304MiB, run=2002-2002msec\n"
EIO = "fio: pid=7, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error\n"
FAILED = JOB.replace("err= 0:", "err= 5 (file:io_u.c:1876, func=io_u error, error=Input/output error):")
TERSE = ";".join(["3", "fio-3.33", "seq", "0", "5", "10", "20", "30", "1", *["0"] * 37, "40", "50", "60"]) + "\n"


def job(**changes: object) -> dict[str, object]:
    direction = {"bw_bytes": 2_000_000, "bw": 1953, "iops": 500.0}
    return {"jobname": "seq", "error": 0, "read": direction, "write": {"bw": 0, "iops": 0}, **changes}


def document(*jobs: dict[str, object], key: str = "jobs") -> str:
    return json.dumps({"fio version": "fio-3.28", key: list(jobs or (job(),))})


def test_jobs_are_read_after_warnings() -> None:
    one = fio.parse("fio: warning, a note\n" + document()).jobs[0]
    assert (one.name, one.read_bytes_s, one.write_bytes_s, one.read_iops) == ("seq", 2_000_000, 0, 500)


def test_of_several_documents_the_last_counts() -> None:
    assert [job.name for job in fio.parse(document() + "\n" + document(job(jobname="last"))).jobs] == ["last"]


def test_an_error_that_fio_went_on_after_is_an_error() -> None:
    assert fio.parse(document(job(total_err=9, first_error=5))).jobs[0].error == 5
    went_on = JOB + "     errors    : total=9, first_error=5/<Input/output error>\n" + END
    assert (fio.parse(went_on).jobs[0].error, fio.parse(went_on).jobs[0].why[:8]) == (5, "9 errors")


def test_jobs_of_a_server_are_read_without_their_sum() -> None:
    assert len(fio.parse(document(job(), job(jobname="All clients"), key="client_stats")).jobs) == 1
    total = JOB.replace("seq", "All clients").replace("1151MiB/s (1207MB/s)", "1151Mi (1207M)")
    assert [job.name for job in fio.parse(f"<node1> {JOB}{END}{total}").jobs] == ["seq"]


def test_trimmed_bytes_are_moved_data() -> None:
    assert fio.parse(document(job(trim={"bw_bytes": 7, "iops": 1}))).jobs[0].trim_bytes_s == 7


def test_text_says_the_same_as_json() -> None:
    one = fio.parse("fio-3.33\n" + JOB + END).jobs[0]
    assert (one.read_bytes_s, one.write_bytes_s, one.read_iops, one.write_iops) == (1.207e9, 4096, 1151, 2500)
    old = JOB.replace("IOPS=1151, BW=1151MiB/s (1207MB/s)(2304MiB/2002msec)", "io=9KB, bw=2KB/s, iops=5 , runt=3msec")
    assert fio.parse(old + END).jobs[0].read_bytes_s == 2048


def test_terse_lines_say_the_same() -> None:
    one = fio.parse(EIO + TERSE).jobs[0]
    assert (one.name, one.read_bytes_s, one.write_bytes_s, one.error) == ("seq", 20480, 51200, 5)
    assert (one.read_iops, one.write_iops, one.why) == (30, 60, "Input/output error")


def test_the_reason_of_an_error_is_in_words() -> None:
    assert fio.parse(FAILED + END).jobs[0].why == "Input/output error"
    verify = "verify: bad header\ncrc32c: verify failed at file /d offset 7, length 9\n"
    assert "verify failed at file /d" in fio.parse(verify + FAILED + END).jobs[0].why


def test_a_job_that_stopped_before_its_report_is_not_lost() -> None:
    only = fio.parse(EIO).jobs[0]
    assert (only.error, only.why) == (5, "Input/output error")


def test_an_error_whose_jobs_line_is_not_pasted_is_not_lost() -> None:
    only = fio.parse("fio: io_u error on file /dev/nvme5n1: Input/output error: write offset=2359, buflen=4096\n").jobs[
        0
    ]
    assert (only.error, only.why[:18]) == (5, "Input/output error")


def test_the_kernels_words_among_the_lines_are_kept() -> None:
    noise = "[ 1993.2] Buffer I/O error on dev nvme0n1, logical block 1566816, lost async page write\n"
    assert fio.parse("fio-3.12\n" + noise + noise).kernel == ("Buffer I/O error on dev nvme0n1",)
    assert fio.parse(noise + JOB + END).jobs[0].error == 0


def test_a_signal_is_told() -> None:
    assert fio.parse("fio: terminating on signal 2\n" + JOB + END).interrupted
    assert fio.parse("fio: terminating on signal 2\n" + document()).interrupted


@pytest.mark.parametrize("text", ["fio-3.33\n", JOB, EIO, TERSE, document(), document(key="client_stats")])
def test_it_is_told_from_other_texts(text: str) -> None:
    assert fio.is_it(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"fio version": "3", "jobs": []}',
        '{"fio version": "3", "jobs": [{}]}',
        '{"fio version"',
        document()[:-9],
        "fio-3.33\n",
        JOB,
        JOB.replace("IOPS=", "rate=") + END,
        TERSE[:40],
        JOB + JOB.replace("seq: (groupid=0", "two: (groupid=1") + END,
        document(job(error=None)),
    ],
)
def test_a_run_that_did_not_end_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        fio.parse(text)
