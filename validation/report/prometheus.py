"""The report as Prometheus text (exposition format 0.0.4), for a textfile collector or a push gateway.

``kiln_gate_open`` is what to alert on; ``kiln_finding`` names the reasons. A report of no hosts says 0, never nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from validation.report.model import StackReport
from validation.report.summary import SEVERITY, closing, counts, effective, warnings
from validation.report.text import line

Sample = tuple[Mapping[str, str], float]


def render(report: StackReport) -> str:
    """The report as metrics, each with HELP and TYPE."""
    stack = {"stack": report.title}
    hosts = [({**stack, "host": h.host, "instance_id": h.instance_id}, h) for h in report.hosts]
    trouble = [*closing(report), *warnings(report)]
    blocks = [
        _metric("kiln_gate_open", "1 if every host was judged good, else 0.", [(stack, float(report.healthy))]),
        _metric("kiln_hosts", "Hosts judged.", [(stack, float(len(report.hosts)))]),
        _metric("kiln_duration_seconds", "How long the validation took.", [(stack, report.duration_s)]),
        _metric("kiln_started_timestamp_seconds", "When the validation started.", _started(report, stack)),
        _metric(
            "kiln_host_verdict",
            "1 for the verdict a host has, 0 for the others.",
            [
                ({**labels, "verdict": verdict.value}, float(host.verdict is verdict))
                for labels, host in hosts
                for verdict in SEVERITY
            ],
        ),
        _metric(
            "kiln_host_findings",
            "Findings of a host by verdict.",
            [
                ({**labels, "verdict": verdict.value}, float(counts(host)[verdict]))
                for labels, host in hosts
                for verdict in SEVERITY
            ],
        ),
        _metric(
            "kiln_finding",
            "A finding that closes the gate or warns.",
            [
                (
                    {
                        **stack,
                        "host": entry.host.host if entry.host else "",
                        "check": entry.finding.check,
                        "subject": entry.finding.subject,
                        "verdict": effective(entry.finding).value,
                        "fault_class": entry.finding.fault_class.value if entry.finding.fault_class else "",
                    },
                    1.0,
                )
                for entry in trouble
            ],
        ),
    ]
    return "".join(blocks)


def _started(report: StackReport, stack: Mapping[str, str]) -> list[Sample]:
    try:
        started = dt.datetime.fromisoformat(report.started.replace("Z", "+00:00"))
    except ValueError:
        return []
    if started.tzinfo is None:
        started = started.replace(tzinfo=dt.timezone.utc)
    return [(stack, started.timestamp())]


def _metric(name: str, text: str, samples: Iterable[Sample]) -> str:
    unique: dict[str, float] = {}
    for labels, value in samples:  # a scrape with one series twice is refused whole
        inner = ",".join(f'{key}="{_escape(label)}"' for key, label in labels.items())
        unique[f"{name}{{{inner}}}"] = value
    if not unique:
        return ""
    lines = [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
    lines += [f"{series} {value:.10g}" for series, value in unique.items()]
    return "\n".join(lines) + "\n"


def _escape(label: str) -> str:
    return line(label).replace("\\", r"\\").replace('"', r"\"")
