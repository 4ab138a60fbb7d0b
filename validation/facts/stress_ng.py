"""stress-ng: whether the run succeeded, and which stressors failed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "stress-ng"
_LINE = re.compile(r"^stress-ng: (?P<level>info|fail|error|warn|metrc|metric|debug):\s+\[\d+\]\s+(?P<text>.*)$")
_ENDED = re.compile(r"^(?P<un>un)?successful run completed in (?P<time>\S+)")
_COUNT = re.compile(r"^(?P<what>skipped|passed|failed): (?P<count>\d+)")


@dataclass(frozen=True)
class StressNg:
    """``failures`` are stress-ng's own words; counts are of stressor instances."""

    succeeded: bool
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...]


def parse(text: str) -> StressNg:
    """Raises ParseError where the closing line is missing: the run did not end, or the text is cut short."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures: list[str] = []
    ended: bool | None = None
    seen = False
    for line in lines(text):
        match = _LINE.match(line.strip())
        if match is None:
            continue
        seen = True
        end, count = _ENDED.match(match["text"]), _COUNT.match(match["text"])
        if end:
            ended = end["un"] is None
        elif count:
            counts[count["what"]] = int(count["count"])
        elif match["level"] in ("fail", "error"):
            failures.append(match["text"])
    if not seen:
        raise ParseError(TOOL, 0, "no line of stress-ng")
    if ended is None:
        raise ParseError(TOOL, 0, "no line 'successful run completed': the run did not end, or the text is cut short")
    return StressNg(ended, counts["passed"], counts["failed"], counts["skipped"], tuple(failures))
