from __future__ import annotations

from validation.report import table
from validation.report.model import StackReport


def test_a_faulty_stack_is_shown_exactly_so(faulty: StackReport) -> None:
    assert table.render(faulty, width=100) == EXPECTED


def test_no_escape_code_is_written_without_colour(faulty: StackReport, hostile: StackReport) -> None:
    for report in (faulty, hostile):
        assert "\x1b" not in table.render(report)


def test_colour_is_written_where_asked_for(faulty: StackReport) -> None:
    assert "\x1b[1;31mFAIL\x1b[0m" in table.render(faulty, color=True)


def test_texts_of_hosts_are_not_read_as_markup(hostile: StackReport) -> None:
    assert "[a](b)" in table.render(hostile, width=200)


def test_a_narrow_terminal_still_names_subject_and_remedy(faulty: StackReport) -> None:
    text = table.render(faulty, width=50)
    assert "gpu-2/GPU3/link7" in text
    assert "-> Reboot once;" in text
    assert max(len(row) for row in text.splitlines()) <= 50


def test_a_stack_without_hosts_is_one_line(empty: StackReport) -> None:
    assert table.render(empty) == "demo: gate CLOSED: UNKNOWN, no host was judged\n"


EXPECTED = """\
demo: gate CLOSED: FAIL, 1 of 2 hosts good

 host   instance  type         verdict  checks                        burn-in   time
 ───────────────────────────────────────────────────────────────────────────────────
 gpu-1  i-gpu-1   p5.48xlarge  PASS     2 PASS gpu nvlink  1 n/a efa  quick    1.2 s
 gpu-2  i-gpu-2   p5.48xlarge  FAIL     1 FAIL nvlink  1 WARN gpu     quick    1.2 s

FAIL  gpu-2/GPU3/link7  nvlink.links_active  [reboot-once]
      17 of 18 NVLinks active, link 7 is down
      measured 17, expected 18 (profile p5.48xlarge (golden, 2026-03-20))
      -> Reboot once; if it repeats, replace the host.

WARN (advisory FAIL)  gpu-2/GPU1  gpu.throttle
      power brake
      -> Look at it.
"""
