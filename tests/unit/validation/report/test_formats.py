from __future__ import annotations

from validation.report.formats import FORMATS
from validation.report.model import StackReport


def test_every_format_ends_with_one_newline(good: StackReport, faulty: StackReport, empty: StackReport) -> None:
    for render in FORMATS.values():
        for report in (good, faulty, empty):
            text = render(report)
            assert text.endswith("\n")
            assert not text.endswith("\n\n")
