"""What every format says first: is the gate open, which findings close it, and how each host came out by area."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from validation.report.model import HostReport, StackReport
from validation.report.text import line
from validation.verdict import Finding, Verdict

SEVERITY = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS, Verdict.NOT_APPLICABLE)  # worst first


@dataclass(frozen=True)
class Entry:
    """A finding and the host it belongs to; none for one about the hosts together."""

    host: HostReport | None
    finding: Finding

    @property
    def label(self) -> str:
        """The verdict as shown: an advisory finding says so, since it closes nothing."""
        if not self.finding.required and self.finding.verdict in (Verdict.FAIL, Verdict.UNKNOWN):
            return f"WARN (advisory {self.finding.verdict.value})"
        return self.finding.verdict.value


def effective(finding: Finding) -> Verdict:
    """The verdict as it counts for the gate: an advisory FAIL or UNKNOWN is a warning."""
    if not finding.required and not finding.verdict.opens_gate:
        return Verdict.WARN
    return finding.verdict


def closing(report: StackReport) -> tuple[Entry, ...]:
    """The findings that keep the gate shut: FAIL before UNKNOWN, each in the order of hosts and checks."""
    return tuple(
        entry
        for verdict in (Verdict.FAIL, Verdict.UNKNOWN)
        for entry in _entries(report)
        if effective(entry.finding) is verdict
    )


def warnings(report: StackReport) -> tuple[Entry, ...]:
    """The findings that warn, advisory failures among them."""
    return tuple(entry for entry in _entries(report) if effective(entry.finding) is Verdict.WARN)


def everything(host: HostReport) -> tuple[Entry, ...]:
    """All findings of a host, the worst first, otherwise in the order of the checks."""
    entries = [Entry(host, finding) for finding in host.findings]
    return tuple(sorted(entries, key=lambda entry: SEVERITY.index(effective(entry.finding))))


def counts(host: HostReport) -> Counter[Verdict]:
    """How many findings of each verdict, as they count for the gate."""
    return Counter(effective(finding) for finding in host.findings)


def areas(host: HostReport) -> Mapping[Verdict, tuple[str, ...]]:
    """The areas judged (``gpu``, ``nvlink``, ...: what stands before the dot of a check id), by their worst verdict."""
    worst: dict[str, Verdict] = {}
    for finding in host.findings:
        area = finding.check.partition(".")[0]
        verdict = effective(finding)
        if area not in worst or SEVERITY.index(verdict) < SEVERITY.index(worst[area]):
            worst[area] = verdict
    return {verdict: tuple(area for area in worst if worst[area] is verdict) for verdict in SEVERITY}


def headline(report: StackReport) -> str:
    """One line: ``gate CLOSED: FAIL, 1 of 2 hosts good``."""
    good = sum(host.verdict.opens_gate for host in report.hosts)
    total = len(report.hosts)
    state = "OPEN" if report.healthy else "CLOSED"
    hosts = "no host was judged" if total == 0 else f"{good} of {total} host{'' if total == 1 else 's'} good"
    title = f"{line(report.title)}: " if report.title else ""
    return f"{title}gate {state}: {report.verdict.value}, {hosts}"


def comparison(finding: Finding) -> str:
    """``measured 17, expected 18 (profile p5.48xlarge ...)``, as far as the finding says it."""
    parts = []
    if finding.measured:
        parts.append(f"measured {line(finding.measured)}")
    if finding.expected:
        parts.append(f"expected {line(finding.expected)}")
    text = ", ".join(parts)
    return f"{text} ({line(finding.source)})" if text and finding.source else text


def together(report: StackReport) -> tuple[Entry, ...]:
    """All findings about the hosts together."""
    return tuple(Entry(None, finding) for finding in report.findings)


def _entries(report: StackReport) -> Iterator[Entry]:
    yield from together(report)
    for host in report.hosts:
        for finding in host.findings:
            yield Entry(host, finding)
