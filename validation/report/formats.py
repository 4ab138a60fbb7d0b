"""Every format a report can be written in, by the name the command line uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from validation.report import document, junit, markdown, prometheus, table
from validation.report.model import StackReport


def _webpage(report: StackReport) -> str:
    from validation.report import webpage  # its template engine takes as long to load as all the others together

    return webpage.render(report)


FORMATS: Mapping[str, Callable[[StackReport], str]] = {
    "table": table.render,
    "json": document.render,
    "junit": junit.render,
    "markdown": markdown.render,
    "html": _webpage,
    "prometheus": prometheus.render,
}
