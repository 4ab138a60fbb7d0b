"""``kiln:index:HealthGate``: runs the validation and always comes back with a verdict to record.

Whatever happens here (a crash, a cancel, a runner that never returns) ends as outputs with ``healthy`` false.
Raising would leave the last run's outputs in the stack's state, and they may say healthy.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plugins.kiln.inputs import GateInputs, identifier
from plugins.kiln.wire import one_line, scrub
from profiles.errors import KilnError
from validation import unit_memory
from validation.report.model import BurnInRecord, HostReport, StackReport
from validation.target import Options, Target
from validation.verdict import Finding, Verdict, combine, combine_stack

Progress = Callable[[str, str, str], None]
Validate = Callable[..., StackReport]

CANCEL_PATIENCE_S = 1.2  # the engine must have our answer within 2 s of a cancel
DEADLINE_GRACE_S = 30.0  # beyond the hosts' own deadline, for the runner to sum up
INTERRUPTED = "interrupted before a verdict was reached"
_POLL_S = 0.05
_MAX_CAUSES = 8


class Gate:
    """One provider process's gate. ``validate`` is :func:`validation.runner.validate`; tests pass their own."""

    def __init__(self, validate: Validate, cancelled: threading.Event) -> None:
        self._validate = validate
        self._cancelled = cancelled

    def judge(
        self,
        inputs: Mapping[str, Any],
        old_outputs: Mapping[str, Any],
        secrets: frozenset[str],
        progress: Progress,
    ) -> dict[str, Any]:
        """Outputs of the gate: verdict, healthy, summary, report (JSON text), recheck, judged. Never raises."""
        try:
            gate = GateInputs.read(inputs)
            report = self._run(gate, _previous(old_outputs), progress)
            report = complete(report, gate.targets)
            if self._cancelled.is_set() and report.healthy:
                report = _not_judged(_names(gate.targets), INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the verdict is UNKNOWN and must be recorded
            report = _not_judged(_hosts(inputs), _cause(error))
        return outputs(report, inputs, secrets)

    def _run(self, gate: GateInputs, previous: Mapping[str, BurnInRecord], progress: Progress) -> StackReport:
        """The runner's report, or an UNKNOWN one where it did not come back in time."""
        came: list[StackReport] = []
        failed: list[Exception] = []

        def work() -> None:
            try:
                # The memory of bad units too: a file that hangs must not hold up a cancel.
                targets = unit_memory.informed(gate.targets, gate.memory)
                found = self._validate(
                    targets, gate.options, progress=progress, cancel=self._cancelled, previous=previous
                )
                came.append(unit_memory.remembered(complete(found, targets), gate.memory))
            except Exception as error:  # noqa: BLE001 - handed to the waiting thread, which records UNKNOWN
                failed.append(error)

        thread = threading.Thread(target=work, name="validate", daemon=True)
        thread.start()
        self._wait(thread, gate.options)
        if came:
            return came[0]
        if failed:
            raise failed[0]
        if self._cancelled.is_set():
            return _not_judged(_names(gate.targets), INTERRUPTED)
        limit = gate.options.deadline_s + DEADLINE_GRACE_S
        return _not_judged(_names(gate.targets), f"no verdict within {limit:.0f} s")

    def _wait(self, thread: threading.Thread, options: Options) -> None:
        give_up = time.monotonic() + options.deadline_s + DEADLINE_GRACE_S
        while thread.is_alive() and time.monotonic() < give_up:
            thread.join(_POLL_S)
            if self._cancelled.is_set():
                give_up = min(give_up, time.monotonic() + CANCEL_PATIENCE_S)


def complete(report: StackReport, targets: Sequence[Target]) -> StackReport:
    """The report with UNKNOWN for each target it left out, and every verdict worked out again from the findings.

    The gate opens on findings, not on anybody's summary of them.
    """
    hosts = {host.host: replace(host, verdict=combine(host.findings)) for host in report.hosts}
    for name, address, instance_type in _names(targets):
        if name not in hosts:
            hosts[name] = _unknown_host(name, address, instance_type, "the validation left this host out")
    ordered = tuple(hosts[target.name] for target in targets)
    return replace(report, hosts=ordered, verdict=combine_stack((host.verdict for host in ordered), report.findings))


def outputs(report: StackReport, inputs: Mapping[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
    """What the stack keeps: the report as JSON text (numbers and nulls survive), and what it is bound to."""
    return {
        "verdict": report.verdict.value,
        "healthy": report.healthy,
        "summary": scrub(summary(report), secrets),
        "report": scrub(json.dumps(report.to_dict(), separators=(",", ":")), secrets),
        "recheck": str(inputs.get("recheck") or ""),
        "judged": _judged(inputs),
    }


def summary(report: StackReport) -> str:
    """Counts on the first line, then one line for each finding that closed the gate, worst first."""
    good = sum(1 for host in report.hosts if host.verdict.opens_gate)
    lines = [f"{report.verdict.value}: {good} of {len(report.hosts)} hosts judged good"]
    causes = [
        finding
        for verdict in (Verdict.FAIL, Verdict.UNKNOWN)
        for finding in (*report.findings, *(finding for host in report.hosts for finding in host.findings))
        if finding.verdict is verdict and finding.required
    ]
    lines += [_cause_line(finding) for finding in causes[:_MAX_CAUSES]]
    if len(causes) > _MAX_CAUSES:
        lines.append(f"... and {len(causes) - _MAX_CAUSES} more, in the report")
    return "\n".join(lines)


def _cause_line(finding: Finding) -> str:
    text = f"{finding.verdict.value} {finding.check} {finding.subject}: {' '.join(finding.message.split())}"
    details = [
        f"{word} {value}"
        for word, value in (("measured", finding.measured), ("expected", finding.expected))
        if value and value not in finding.message
    ]
    if details:
        text += f" ({', '.join(details)})"
    if finding.remedy and finding.remedy not in finding.message:
        text += f" -> {finding.remedy}"
    return text


def _judged(inputs: Mapping[str, Any]) -> list[str]:
    hosts = inputs.get("hosts")
    return [identifier(host) for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []


def _previous(old_outputs: Mapping[str, Any]) -> dict[str, BurnInRecord]:
    """Burn-in records of the last report by host; none where it cannot be read: the burn-in then runs again."""
    try:
        report = StackReport.from_dict(json.loads(old_outputs["report"]))
    except (KeyError, TypeError, ValueError):
        return {}
    return {host.host: host.burn_in for host in report.hosts if host.burn_in is not None}


def _names(targets: Sequence[Target]) -> list[tuple[str, str, str]]:
    return [(target.name, target.address, target.expectation.instance_type) for target in targets]


def _hosts(inputs: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    hosts = inputs.get("hosts")
    found = [host for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []
    return [(str(host.get("name")), str(host.get("address")), str(host.get("instanceType"))) for host in found]


def _not_judged(hosts: Sequence[tuple[str, str, str]], cause: str) -> StackReport:
    return StackReport(
        verdict=Verdict.UNKNOWN,
        hosts=tuple(_unknown_host(name, address, instance_type, cause) for name, address, instance_type in hosts),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _unknown_host(name: str, address: str, instance_type: str, cause: str) -> HostReport:
    finding = Finding(
        check="host.reachable",
        subject=name,
        verdict=Verdict.UNKNOWN,
        message=f"{name}: not judged: {cause}",
        remedy="Run pulumi up again; it looks at every host anew.",
    )
    return HostReport(name, address, "", instance_type, Verdict.UNKNOWN, (finding,))


def _cause(error: Exception) -> str:
    return " ".join(str(error).split()) if isinstance(error, KilnError) else one_line(error)
