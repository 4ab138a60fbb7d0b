"""The report as JSON, and back. One document, schema ``kiln/report/v1``, ASCII only, so that any pipe can carry it."""

from __future__ import annotations

import json

from profiles.errors import ParseError
from validation.report.model import SCHEMA, StackReport
from validation.report.summary import SEVERITY
from validation.verdict import Verdict, combine, combine_stack


def render(report: StackReport) -> str:
    """The report as JSON text with a newline at its end."""
    return json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n"


def read(text: str) -> StackReport:
    """The report of a JSON text, which a line with the schema's name may precede, as in the stack's output ``report``.

    Raises:
        ParseError: not JSON, not this schema, a field missing or wrong, or a verdict better than its own findings:
            such a report was edited or cut, and must not read as healthy.
    """
    try:
        data = json.loads(text.removeprefix(f"{SCHEMA}\n"))
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise ParseError("report", line, f"not JSON: {getattr(error, 'msg', error)}") from error
    if not isinstance(data, dict):
        raise ParseError("report", 0, f"expected one JSON object, found {type(data).__name__}")
    try:
        report = StackReport.from_dict(data)
    except KeyError as error:
        raise ParseError("report", 0, f"field {error} is missing") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ParseError("report", 0, str(error)) from error
    _refuse_flattery(report, data.get("healthy"))
    return report


def _refuse_flattery(report: StackReport, healthy: object) -> None:
    for host in report.hosts:
        _refuse_better(f"host {host.host}", host.verdict, combine(host.findings))
    found = combine_stack((host.verdict for host in report.hosts), report.findings)
    _refuse_better("the stack", report.verdict, found)
    if healthy is not report.healthy:
        raise ParseError("report", 0, f"says healthy {healthy!r}, but its verdict is {report.verdict.value}")


def _refuse_better(what: str, said: Verdict, found: Verdict) -> None:
    if SEVERITY.index(said) > SEVERITY.index(found):
        raise ParseError("report", 0, f"{what} says {said.value}, but the findings come to {found.value}")
