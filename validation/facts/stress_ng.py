"""stress-ng: whether the run succeeded, which stressors failed or were skipped, and whether it ran as long as asked.

Formats: runs of stress-ng 0.12.06, 0.15.06, 0.17.06 and 0.22.01 (2026-11-30), with every option that changes a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "stress-ng"
_SIGN = re.compile(
    r"^.{0,60}?\bstress-ng: (?:\d\d:\d\d:\d\d\.\d+ )?\w+:\s+\[\d+\]|^dispatching hogs:|^ +stress-ng-version: ", re.M
)
# --timestamp puts a time before the level; a serial console or a log puts its own words before the name.
_LINE = re.compile(
    r"^.{0,60}?\bstress-ng: (?:\d\d:\d\d:\d\d\.\d+ )?(?P<level>info|fail|error|warn|metrc|metric|debug):\s+\[\d+\]"
    r"\s+(?P<text>.*)$"
)
_ASKED = re.compile(r"^setting to an? (?P<time>.+?) run per stressor")
_DISPATCHED = re.compile(r"^dispatching hogs:(?P<hogs>.*)$")
_HOG = re.compile(r"(\d+) [\w-]+")
_ENDED = re.compile(r"^(?P<un>un)?successful run completed in (?P<time>.+)$")
_COUNT = re.compile(r"^(?P<what>skipped|passed|failed|metrics untrustworthy): (?P<count>\d+)")
# 0.15 and older count no skipped stressor: only such a line tells of it. No version counts one that did nothing.
_SKIPPED = re.compile(
    r"stressor will be skipped|skipping stress(?:or| test)|^disabled '\S+' as it may hang|bogo-op counters are zero"
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|y)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 31_556_926}
_OPERATIONS = re.compile(r"^(?P<name>[a-z][\w-]*) +(?P<count>\d+) +\d+\.\d+ +\d+\.\d+ +\d+\.\d+ ")  # --metrics
_METRICS = re.compile(r"^ +stress-ng-version: ", re.M)


@dataclass(frozen=True)
class StressNg:
    """``failures`` are stress-ng's own words; counts are of stressor instances.

    ``errors`` and ``skips`` are its words on what did not stop the run. ``asked_s`` is the time that was set, 0 where
    none was (then operations bound the run); ``took_s`` what it took. ``dispatched`` and ``counted``: how many were to
    run, and whether the version counts those that passed. ``untrusted``: measurements it does not trust itself.
    """

    succeeded: bool
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...]
    errors: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    asked_s: float = 0.0
    took_s: float = 0.0
    dispatched: int = 0
    counted: bool = False
    untrusted: int = 0


def is_it(text: str) -> bool:
    """Told by the name before each line, or by what every run begins with."""
    return _SIGN.search(text) is not None


def parse(text: str) -> StressNg:
    """Raises ParseError where the closing line is missing: the run did not end, or the text is cut short.

    ``--log-brief`` prints no names and levels: then counts and the closing line alone speak.
    """
    found = [(match["level"], match["text"].strip()) for line in lines(text) if (match := _LINE.match(line))]
    if not found and _METRICS.search(text):
        raise ParseError(TOOL, 0, "the file of --yaml says what was done, not whether it succeeded: the log says that")
    if not found:
        found = [("info", line.strip()) for line in lines(text)]
        if not any(_DISPATCHED.match(words) for _, words in found):
            raise ParseError(TOOL, 0, "no line of stress-ng")
    readers = [_Reader()]
    for level, words in found:
        if readers[-1].ended and (_ASKED.match(words) or _DISPATCHED.match(words)):
            readers.append(_Reader())
        readers[-1].read(level, words)
    return _together([reader.result() for reader in readers])


def _together(runs: list[StressNg]) -> StressNg:
    """Several runs in one text: what is bad in any is bad, and of the times those of the run that kept its least."""
    short = min(runs, key=lambda run: run.took_s / run.asked_s if run.asked_s else run.took_s and 1.0)
    return StressNg(
        succeeded=all(run.succeeded for run in runs),
        passed=sum(run.passed for run in runs),
        failed=sum(run.failed for run in runs),
        skipped=sum(run.skipped for run in runs),
        failures=tuple(dict.fromkeys(words for run in runs for words in run.failures)),
        errors=tuple(dict.fromkeys(words for run in runs for words in run.errors)),
        skips=tuple(dict.fromkeys(words for run in runs for words in run.skips)),
        asked_s=short.asked_s,
        took_s=short.took_s,
        dispatched=sum(run.dispatched for run in runs),
        counted=all(run.counted for run in runs),
        untrusted=sum(run.untrusted for run in runs),
    )


class _Reader:
    """Reads line by line."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lists: dict[str, list[str]] = {"fail": [], "error": [], "skip": []}
        self._ended: re.Match[str] | None = None
        self._asked_s = 0.0
        self._dispatched = 0

    @property
    def ended(self) -> bool:
        return self._ended is not None

    def read(self, level: str, words: str) -> None:
        if end := _ENDED.match(words):
            self._ended = self._ended if self._ended and self._ended["un"] else end
        elif count := _COUNT.match(words):
            self._counts[count["what"]] = int(count["count"])
        elif asked := _ASKED.match(words):
            self._asked_s = seconds(asked["time"])
        elif hogs := _DISPATCHED.match(words):
            self._dispatched = sum(int(number) for number in _HOG.findall(hogs["hogs"]))
        elif level in ("fail", "error"):
            self._lists[level].append(words)
        elif _SKIPPED.search(words):
            self._lists["skip"].append(words)
        elif (done := _OPERATIONS.match(words)) and not int(done["count"]):
            self._lists["skip"].append(f"{done['name']} did no operation")

    def result(self) -> StressNg:
        if self._ended is None:
            reason = "no line 'successful run completed': the run did not end, or the text is cut short"
            raise ParseError(TOOL, 0, reason)
        unique = {name: tuple(dict.fromkeys(words)) for name, words in self._lists.items()}
        return StressNg(
            succeeded=self._ended["un"] is None,
            passed=self._counts.get("passed", 0),
            failed=self._counts.get("failed", 0),
            skipped=self._counts.get("skipped", 0),
            failures=unique["fail"],
            errors=unique["error"],
            skips=unique["skip"],
            asked_s=self._asked_s,
            took_s=seconds(self._ended["time"]),
            dispatched=self._dispatched,
            counted={"passed", "skipped"} <= set(self._counts),
            untrusted=self._counts.get("metrics untrustworthy", 0),
        )


def seconds(text: str) -> float:
    """Seconds of a duration in any of its spellings; 0 for one without end.

    >>> seconds("7200.50s (2 hours, 0.50 secs)"), seconds("1 min, 0.02 secs"), seconds("2 second"), seconds("infinite")
    (7200.5, 60.02, 2.0, 0)
    """
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text.partition("(")[0]))
