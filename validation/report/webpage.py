"""The report as one HTML file that needs nothing else: no script, no font, no image; readable on paper too."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from validation.report import summary
from validation.report.model import StackReport
from validation.report.text import line, plain


def render(report: StackReport) -> str:
    """The report as HTML: the verdict, the findings that close the gate, warnings, then everything, host by host."""
    environment = Environment(
        loader=PackageLoader("validation.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    page = environment.get_template("report.html.j2")
    return page.render(
        report=report,
        headline=summary.headline(report),
        closing=summary.closing(report),
        warnings=summary.warnings(report),
        everything=summary.everything,
        together=summary.together(report),
        counts=summary.counts,
        effective=summary.effective,
        severity=summary.SEVERITY,
        within=_within,
        line=line,
    )


def _within(entry: summary.Entry) -> str:
    """The subject as it reads below its host's name: ``GPU3/link7``, or ``host`` for the host itself."""
    subject = line(entry.finding.subject)
    host = line(entry.host.host) if entry.host else ""
    if host and subject == host:
        return "host"
    return subject[len(host) + 1 :] if host and subject.startswith(f"{host}/") else subject


def _shown(value: object) -> object:
    return plain(value) if type(value) is str else value
