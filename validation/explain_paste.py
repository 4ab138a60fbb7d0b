"""What a paste means: each output in it explained, however it was pasted, and nothing in it passed over in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from validation import paste
from validation.explain import READ, SCHEMA, Explanation, NotJudged, explain
from validation.report.text import line
from validation.verdict import Verdict

_KERNEL = "kernel-log"
_DRIVER = "driver-error"
_LOG_LINE = re.compile(r"\bNVRM: (?!version:)|\bSXid \(|\bnvidia-nvswitch\d*:")
_FILTER = re.compile(r"\s*\|\s*(?:e?grep|awk|sed|head|tail|cut|less|more|column|tr|findstr|Select-String)\b.*$")
_PIECES_MAX = 8  # outputs in a row without a command between them
_PROSE_LINES = 3  # what somebody wrote about the output, not an output
_WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS)


@dataclass(frozen=True)
class Output:
    """One output of the paste: the command that was typed for it, where the paste shows it, and what it means."""

    command: str
    explanation: Explanation


@dataclass(frozen=True)
class Outputs:
    """Every output found, in order; at least one."""

    outputs: tuple[Output, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        seen = {output.explanation.verdict for output in self.outputs}
        return next((verdict for verdict in _WORST_FIRST if verdict in seen), Verdict.NOT_APPLICABLE)

    def to_dict(self) -> dict[str, Any]:
        """The one explanation's own document, or one that holds several."""
        documents = [output.explanation.to_dict() for output in self.outputs]
        if len(documents) == 1:
            return documents[0]
        outputs = [
            {"command": output.command, **document} for output, document in zip(self.outputs, documents, strict=True)
        ]
        return {"schema": SCHEMA, "outputs": outputs, "verdict": self.verdict.value}


def explain_paste(text: str, *, profile: str | None = None) -> Outputs:
    """Raises ConfigError for an instance type that there is none of."""
    found: list[Output] = []
    left: list[paste.Part] = []
    for part in paste.parts(text):
        outputs = _of_part(part, profile)
        found += outputs
        left += [] if outputs else [part]
    if not found:
        return Outputs((Output("", _unknown(text, left, profile)),))
    return Outputs(_with_rest(tuple(found), left))


def _unknown(text: str, parts: Iterable[paste.Part], profile: str | None) -> Explanation:
    """Nothing in the paste is known; where a filter stands behind the command, that may be why."""
    filtered = next((part.command for part in parts if _FILTER.search(part.command)), "")
    return _blamed(explain(paste.plain(text), profile=profile), filtered)


def _blamed(explanation: Explanation, command: str) -> Explanation:
    """Of what could not be read, the filter behind its command is named as what may be why."""
    if _was_read(explanation) or not _FILTER.search(command):
        return explanation
    remedy = f"Show what it prints without the filter: {line(_FILTER.split(command)[0])}"
    findings = tuple(
        replace(finding, remedy=remedy) if finding.check == READ else finding for finding in explanation.findings
    )
    return replace(explanation, findings=findings)


def _of_part(part: paste.Part, profile: str | None) -> list[Output]:
    """The outputs of one part; none where nothing known prints such a text. Kernel lines in it are always judged."""
    found = [Output(part.command, explanation) for explanation in _explained(part, profile)]
    if any(output.explanation.kind == _KERNEL for output in found):
        return found
    log = "\n".join(row for row in part.text.split("\n") if _LOG_LINE.search(row))
    return [*found, Output("", explain(log, kind=_KERNEL, profile=profile))] if log else found


def _explained(part: paste.Part, profile: str | None) -> list[Explanation]:
    """By the first reading that is recognised and whole; else as the paragraphs that are; else as first recognised."""
    broken: list[Explanation] = []
    fault: list[Explanation] = []  # the driver's words, which may stand below an output that a later reading tells
    for reading in paste.readings(part):
        explanation = explain(reading, profile=profile)
        if explanation.kind == _DRIVER:
            fault = fault or [explanation]
            continue
        if explanation.kind != "unknown" and _was_read(explanation):
            return [explanation]
        broken += [explanation] if explanation.kind != "unknown" else []
    if fault:
        return fault
    pieces = paste.paragraphs(part.text)
    if broken and 1 < len(pieces) <= _PIECES_MAX:
        each = [explain(piece, profile=profile) for piece in pieces]
        kinds = [explanation.kind for explanation in each]
        several = all(map(_was_read, each)) or (any(map(_was_read, each)) and len(set(kinds)) == len(kinds))
        if several and "unknown" not in kinds:
            return each
    return [_blamed(explanation, part.command) for explanation in broken[:1]]


def _was_read(explanation: Explanation) -> bool:
    """Whether the parser took the text: a fact came of it."""
    return bool(explanation.facts)


def _with_rest(outputs: tuple[Output, ...], left: Iterable[paste.Part]) -> tuple[Output, ...]:
    """What stands beside the outputs and is none is said, at the last of them."""
    said = [
        f"a tool that is known here: {line(part.command or part.text.strip())[:60]!r}"
        for part in left
        if part.command or len(part.text.split("\n")) > _PROSE_LINES
    ]
    last = outputs[-1]
    open_checks = (*last.explanation.not_judged, *(NotJudged(READ, needs) for needs in dict.fromkeys(said)))
    return (*outputs[:-1], replace(last, explanation=replace(last.explanation, not_judged=open_checks)))
