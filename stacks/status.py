"""Where a stack stands, from what the engine keeps: never healthy from an output alone.

Pure functions over ``pulumi stack export`` and ``pulumi stack history --json``. An output survives everything that goes
around the gate (a killed run, a refresh, an instance replaced with ``--target``), so each of these is looked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from profiles.errors import ParseError
from validation.report import document
from validation.report.model import StackReport
from validation.verdict import Verdict, combine_hosts

GATE = "kiln:index:HealthGate"
INSTANCES = frozenset({"aws:ec2/instance:Instance", "alicloud:ecs/instance:Instance"})
_QUIET = frozenset({"same", "read"})
_OPEN = frozenset(verdict.value for verdict in Verdict if verdict.opens_gate)


@dataclass(frozen=True)
class Leftover:
    """An instance that runs and costs, but is none of the stack's hosts any more."""

    urn: str
    instance_id: str
    instance_type: str


@dataclass(frozen=True)
class Status:
    """``healthy`` only if nothing speaks against it; ``reasons`` is what does, worst first. ``report`` is the last one.

    ``judged_at`` is when the gate last recorded a verdict (UTC ISO time), empty where it never did.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    report: StackReport | None
    judged_at: str
    leftovers: tuple[Leftover, ...]

    @property
    def healthy(self) -> bool:
        return self.verdict.opens_gate and not self.reasons


def assess(export: Mapping[str, Any], history: Sequence[Mapping[str, Any]] = (), *, locked: bool = False) -> Status:
    """The status of a stack.

    ``export``: what ``pulumi stack export`` prints; ``history``: what ``pulumi stack history --json`` prints, newest
    first; ``locked``: see :func:`is_locked`.
    """
    deployment = export.get("deployment") or {}
    resources = [resource for resource in deployment.get("resources") or () if isinstance(resource, dict)]
    root = _outputs(_first(resources, "pulumi:pulumi:Stack"))
    gates = [resource for resource in resources if resource.get("type") == GATE and not resource.get("delete")]
    reports = [_report(gate) for gate in gates]
    report = together(reports)
    reasons = [
        *_interrupted(deployment, locked=locked),
        *_last_run(history),
        *_not_judged(root, resources, gates),
    ]
    verdict = _worst(gates, reports)
    if verdict.opens_gate and reasons:
        verdict = Verdict.UNKNOWN
    return Status(verdict, tuple(reasons), report, _judged_at(gates, reports), tuple(_leftovers(resources, gates)))


def recorded(export: Mapping[str, Any]) -> list[StackReport | None]:
    """What each gate of a stack recorded last; None for one whose report cannot be read."""
    resources = (export.get("deployment") or {}).get("resources") or ()
    gates = [item for item in resources if isinstance(item, dict) and item.get("type") == GATE]
    return [_report(gate) for gate in gates if not gate.get("delete")]


def together(reports: Sequence[StackReport | None]) -> StackReport | None:
    """The reports as one: as bad as the worst, as old as the oldest. None where there is none, or one is missing."""
    known = [report for report in reports if report is not None]
    if not known or len(known) < len(reports):
        return None
    if len(known) == 1:
        return known[0]
    return replace(
        known[0],
        verdict=combine_hosts(report.verdict for report in known),
        hosts=tuple(host for report in known for host in report.hosts),
        findings=tuple(finding for report in known for finding in report.findings),
        started=min(report.started for report in known),
        duration_s=max(report.duration_s for report in known),
    )


def _interrupted(deployment: Mapping[str, Any], *, locked: bool) -> list[str]:
    found = []
    if locked:
        found.append("the stack is locked: an update runs, or one was killed (then: pulumi cancel, and pulumi up)")
    pending = [operation for operation in deployment.get("pending_operations") or () if isinstance(operation, dict)]
    for operation in pending:
        urn = str((operation.get("resource") or {}).get("urn", "?"))
        found.append(f"{operation.get('type', 'changing')} {urn.split('::')[-1]} was interrupted; run pulumi up")
    return found


def _last_run(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the runs since the last update that could judge say against its verdict."""
    for run in history:
        kind, result = str(run.get("kind", "")), str(run.get("result", ""))
        changes = run.get("resourceChanges") or {}
        changed = sorted(str(key) for key, count in changes.items() if count and key not in _QUIET)
        if kind == "update":
            return [] if result == "succeeded" else [f"the last update {result or 'did not end'}"]
        if changed or result != "succeeded":
            what = f"changed something ({', '.join(changed)})" if changed else result or "did not end"
            return [f"a {kind} since the hosts were judged {what}; run pulumi up"]
    return []


def _not_judged(
    root: Mapping[str, Any], resources: Sequence[Mapping[str, Any]], gates: Sequence[Mapping[str, Any]]
) -> list[str]:
    if not gates:
        return ["the stack has no gate, or it has not run yet"]
    found = []
    if root.get("healthy") is not True:
        # Of a run that did not conclude, the words may be those of the one before, which are no reason.
        words = "" if root.get("verdict") in _OPEN else _first_line(root.get("gate"))
        found.append(words or "the last run did not conclude that the stack is healthy")
    if any(_report(gate) is None for gate in gates):
        found.append("the gate's report cannot be read; run pulumi up")
    judged = {name for gate in gates for name in _outputs(gate).get("judged") or ()}
    strangers = sorted(
        str(resource.get("id"))
        for resource in resources
        if resource.get("type") in INSTANCES and not resource.get("delete") and resource.get("id") not in judged
    )
    if strangers:
        found.append(f"not judged: {', '.join(strangers)}; run pulumi up")
    present = {str(resource.get("id")) for resource in resources if resource.get("type") in INSTANCES}
    missing = sorted(name for name in judged if name.startswith("i-") and name not in present)
    if present and missing:  # a stack without instances judges those of somebody else
        found.append(f"judged, but no longer there: {', '.join(missing)}; run pulumi up")
    return found


def _worst(gates: Sequence[Mapping[str, Any]], reports: Sequence[StackReport | None]) -> Verdict:
    """The worst verdict of the gates and of their reports.

    UNKNOWN for a gate that has none, or no report, and where ``healthy`` does not agree with it.
    """
    seen = {Verdict.UNKNOWN if report is None else report.verdict for report in reports}
    for gate in gates:
        outputs = _outputs(gate)
        try:
            verdict = Verdict(str(outputs.get("verdict")))
        except ValueError:
            verdict = Verdict.UNKNOWN
        seen.add(Verdict.UNKNOWN if verdict.opens_gate and outputs.get("healthy") is not True else verdict)
    return combine_hosts(seen)


def _leftovers(resources: Sequence[Mapping[str, Any]], gates: Sequence[Mapping[str, Any]]) -> list[Leftover]:
    """Instances that wait to be deleted: replaced ones, and those that the gate's last run no longer had as hosts."""
    judged = {name for gate in gates for name in _outputs(gate).get("judged") or ()}
    return [
        Leftover(str(resource.get("urn")), str(resource.get("id")), str(_outputs(resource).get("instanceType", "")))
        for resource in resources
        if resource.get("type") in INSTANCES
        and (resource.get("delete") or (judged and resource.get("id") not in judged))
    ]


def _first(resources: Sequence[Mapping[str, Any]], kind: str) -> Mapping[str, Any]:
    return next((resource for resource in resources if resource.get("type") == kind), {})


def _outputs(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    outputs = resource.get("outputs")
    return outputs if isinstance(outputs, dict) else {}


def _report(gate: Mapping[str, Any]) -> StackReport | None:
    """The report that a gate keeps; None where it cannot be read, or says better than its own findings."""
    text = _outputs(gate).get("report")
    try:
        return document.read(text) if isinstance(text, str) else None
    except ParseError:
        return None


def _judged_at(gates: Sequence[Mapping[str, Any]], reports: Sequence[StackReport | None]) -> str:
    started = [report.started for report in reports if report and report.started]
    return min(started) if len(started) == len(gates) and started else ""


def _first_line(text: object) -> str:
    return str(text).splitlines()[0] if text else ""


def is_locked(environment: Mapping[str, str], project: str, stack: str) -> bool:
    """Whether a stack of a file backend is locked; False where the backend keeps its locks out of sight.

    The engine itself refuses to change a locked stack, wherever its state is; this only helps to say so beforehand.
    """
    url = urlparse(environment.get("PULUMI_BACKEND_URL", ""))
    if url.scheme != "file":
        return False
    folder = Path(os.path.expanduser(unquote(url.netloc + url.path)))  # noqa: PTH111 - file://~ is the engine's form
    locks = folder / ".pulumi" / "locks"
    return any(locks.glob(f"organization/{project}/{stack}/*.json")) if locks.is_dir() else False
