"""What a run knows of bad units before it judges, and what it remembers after. Never raises, never keeps one waiting.

A memory that cannot be read makes ``gpu.known_bad`` UNKNOWN on every host: whether a rejected unit came back could not
be looked at. One that cannot be written is a warning: the verdict of this run stands without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from profiles.errors import LookError, ParseError
from profiles.models import Expectation, KnownBad
from validation import units
from validation.report.model import HostReport, StackReport
from validation.target import Target
from validation.unit_file import UnitFile
from validation.verdict import Finding, Verdict, combine, combine_stack

KEPT_WITH_EVIDENCE = "known-bad.json"


def informed(targets: Sequence[Target], memory: UnitFile | None) -> tuple[Target, ...]:
    """The targets, each told which units must not come back."""
    if memory is None:
        return tuple(targets)
    try:
        known, gap = units.known_bad(memory.read()), ""
    except LookError as error:
        known, gap = (), error.message
    return tuple(
        _told(target, units.told_to(known, host=target.name, instance_id=target.instance_id), gap) for target in targets
    )


def _told(target: Target, known: tuple[KnownBad, ...], gap: str) -> Target:
    told = target.expectation.model_copy(update={"known_bad": known, "known_bad_gap": gap})
    return replace(target, expectation=told)


def remembered(report: StackReport, memory: UnitFile | None) -> StackReport:
    """The report; with a warning on every host whose rejected units could not be written down."""
    if memory is None:
        return report
    try:
        before = memory.read()
        if units.updated(before, report) != before:
            memory.change(lambda now: units.updated(now, report))
    except LookError as error:
        hosts = tuple(_warned(host, report.started, error) for host in report.hosts)
        return replace(report, hosts=hosts, verdict=combine_stack((host.verdict for host in hosts), report.findings))
    return report


def _warned(host: HostReport, date: str, error: LookError) -> HostReport:
    lost = sorted({unit.uuid for unit in units.rejected(host, date)})
    if not lost:
        return host
    text = f"{', '.join(lost)} could not be written down as bad: {error.message}"
    warning = Finding("units.kept", host.host, Verdict.WARN, text, remedy=error.remedy, required=False)
    findings = (*host.findings, warning)
    return replace(host, findings=findings, verdict=combine(findings))


def write_beside_evidence(expected: Expectation, folder: Path) -> None:
    """Keep what was known of bad units with the evidence, so that judging it offline comes to the same."""
    if not expected.known_bad and not expected.known_bad_gap:
        (folder / KEPT_WITH_EVIDENCE).unlink(missing_ok=True)  # of an earlier run into the same folder
    else:
        known = [unit.model_dump() for unit in expected.known_bad]
        text = json.dumps({"gap": expected.known_bad_gap, "known_bad": known}, indent=2)
        (folder / KEPT_WITH_EVIDENCE).write_text(text + "\n", encoding="utf-8")


def read_beside_evidence(expected: Expectation, folder: Path) -> Expectation:
    """The expectation with what :func:`write_beside_evidence` kept. Raises ParseError where that cannot be read."""
    path = folder / KEPT_WITH_EVIDENCE
    if not path.exists():
        return expected
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        known = tuple(KnownBad.model_validate(unit) for unit in data["known_bad"])
        return expected.model_copy(update={"known_bad": known, "known_bad_gap": str(data["gap"])})
    except (OSError, KeyError, TypeError, ValueError, ValidationError) as error:
        raise ParseError("evidence", 0, f"{path}: {error}") from error
