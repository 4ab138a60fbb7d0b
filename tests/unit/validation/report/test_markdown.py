from __future__ import annotations

import re

from validation.report import markdown
from validation.report.model import StackReport


def test_a_faulty_stack_is_written_exactly_so(faulty: StackReport) -> None:
    assert markdown.render(faulty) == EXPECTED


def test_a_good_stack_has_no_section_of_trouble(good: StackReport) -> None:
    assert "###" not in markdown.render(good)


def test_a_stack_without_hosts_says_so(empty: StackReport) -> None:
    assert markdown.render(empty).startswith("## demo: gate CLOSED: UNKNOWN, no host was judged\n")


def test_hostile_texts_neither_open_a_tag_nor_a_cell_nor_a_link(hostile: StackReport) -> None:
    text = markdown.render(hostile)
    assert not re.search(r"(?<!\\)<script", text)
    assert not re.search(r"(?<!\\)\[a", text)
    assert "\x1b" not in text
    rows = [row for row in text.splitlines() if row.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {10}


EXPECTED = """\
## demo: gate CLOSED: FAIL, 1 of 2 hosts good

Judged 2026-05-01T10:00:00Z in 2.5 s.

| host | instance | type | verdict | FAIL | UNKNOWN | WARN | PASS | NOT_APPLICABLE |
| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
| gpu-1 | i-gpu-1 | p5.48xlarge | PASS | 0 | 0 | 0 | 2 | 1 |
| gpu-2 | i-gpu-2 | p5.48xlarge | **FAIL** | 1 | 0 | 1 | 1 | 0 |

### What closes the gate

- **FAIL** gpu-2/GPU3/link7 (nvlink.links\\_active, reboot-once): 17 of 18 NVLinks active, link 7 is down
  - measured 17, expected 18 (profile p5.48xlarge (golden, 2026-03-20))
  - Remedy: Reboot once; if it repeats, replace the host.

### Warnings

- **WARN (advisory FAIL)** gpu-2/GPU1 (gpu.throttle): power brake
  - Remedy: Look at it.
"""
