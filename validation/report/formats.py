"""Every format a report can be written in, by the name the command line uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from validation.report import document, junit, markdown, prometheus, table, webpage
from validation.report.model import StackReport

FORMATS: Mapping[str, Callable[[StackReport], str]] = {
    "table": table.render,
    "json": document.render,
    "junit": junit.render,
    "markdown": markdown.render,
    "html": webpage.render,
    "prometheus": prometheus.render,
}
