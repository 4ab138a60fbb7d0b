"""Findings that no check makes: about reaching a host at all, who answers, and a burn-in that did not run."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from validation.connection import HostKeyError
from validation.report.model import HostReport
from validation.target import Target
from validation.verdict import FaultClass, Finding, Verdict, combine

# Checks of what a load may break for good, so that they are made again after it. Not those of clocks, heat and use,
# which are as the load has left them for a moment.
LASTING = (
    "ecc.", "fabric.state", "gpu.count", "gpu.lost", "gpu.readable", "gpu.recovery_action", "kernel.", "memory.",
    "nvlink.links_active", "evidence.complete",
)  # fmt: skip


def wrong_key(host: str, error: HostKeyError) -> Finding:
    return Finding(
        "host.identity",
        host,
        Verdict.FAIL,
        f"somebody else answers: {error.last_seen}",
        measured=error.offered,
        expected=error.expected,
        remedy=error.remedy,
        fault_class=FaultClass.OPERATOR,
    )


def not_reached(host: str, stage: str, last_seen: str, remedy: str) -> Finding:
    message = f"stage '{stage}' not reached; last seen: {last_seen}"
    remedy = remedy or "Validate again; if it repeats, look at the host's console output."
    return Finding("host.reachable", host, Verdict.UNKNOWN, message, measured=last_seen, remedy=remedy)


def crashed(host: str, stage: str, error: Exception) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    trail = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    cause = f"the validation crashed: {type(error).__name__}: {error} [{trail}]"
    return not_reached(host, stage, cause, "This is a defect of Kiln: report it with this line.")


def burn_in_not_run(host: str, why: str) -> Finding:
    return Finding(
        "burnin.run",
        host,
        Verdict.UNKNOWN,
        f"no burn-in: {why}",
        remedy="Mend what the other findings name; the burn-in then runs by itself.",
    )


def changed_under_load(host: str) -> Finding:
    message = "after the burn-in this is not the host that was judged before it: it has rebooted, or a GPU is gone"
    return Finding("host.identity", host, Verdict.UNKNOWN, message, remedy="Validate again.")


def after_load(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of before a burn-in, those about lasting errors replaced by the ones of after it."""
    anew: dict[str, list[Finding]] = {}
    for finding in after:
        if finding.check.startswith(LASTING):
            anew.setdefault(finding.check, []).append(finding)
    whole: list[Finding] = []
    replaced = set(anew)
    for finding in before:
        whole += anew.pop(finding.check, []) if finding.check in replaced else [finding]
    return (*whole, *(finding for rest in anew.values() for finding in rest))


def each_its_own(reports: Sequence[HostReport]) -> list[HostReport]:
    """The same; hosts that showed the same GPUs are one machine under two names, of which one was never looked at."""
    owners: dict[str, set[int]] = {}
    for index, report in enumerate(reports):
        for uuid in report.identity.gpu_uuids if report.identity else ():
            owners.setdefault(uuid, set()).add(index)
    twins: dict[int, set[int]] = {}
    for sharing in owners.values():
        for index in sharing if len(sharing) > 1 else ():
            twins.setdefault(index, set()).update(sharing - {index})
    return [_twin(report, [reports[n] for n in sorted(twins.get(i, ()))]) for i, report in enumerate(reports)]


def _twin(report: HostReport, others: Sequence[HostReport]) -> HostReport:
    if not others:
        return report
    names = ", ".join(f"{other.host} ({other.address})" for other in others[:3])
    names += f" and {len(others) - 3} more" if len(others) > 3 else ""
    finding = Finding(
        "host.identity",
        report.host,
        Verdict.FAIL,
        f"the same GPUs answer as {names}: one machine under several names, so another was not looked at",
        measured=f"the GPUs of {names}",
        expected="a machine of its own",
        remedy="Give each host its own address.",
        fault_class=FaultClass.OPERATOR,
    )
    findings = (*report.findings, finding)
    return replace(report, findings=findings, verdict=combine(findings))


def identity(target: Target, own: str | None, shown: str) -> Finding:
    """host.identity: the right key, or nobody could tell; and the instance is the one the stack means.

    ``own`` is the instance id the host itself tells, ``shown`` the fingerprint of the key it showed.
    """
    finding = Finding("host.identity", target.name, Verdict.PASS, "the host showed the key that was expected of it")
    if target.instance_id.startswith("i-") and own and own != target.instance_id:
        return replace(
            finding,
            verdict=Verdict.FAIL,
            message=f"this is instance {own}, not {target.instance_id}",
            measured=own,
            expected=target.instance_id,
            remedy="Another machine answers at this address: look at the address and the instance.",
            fault_class=FaultClass.OPERATOR,
            evidence="instance",
        )
    if target.host_key is None:
        message = f"not verified, as asked (accept-new): the host showed {shown}"
        return replace(finding, verdict=Verdict.NOT_APPLICABLE, message=message)
    return replace(finding, measured=shown)


def noticed(host: str, notes: Sequence[str]) -> Finding:
    """What was noticed while the host came up or was looked at: a warning that closes nothing."""
    remedy = "Look at /var/log/cloud-init-output.log, the driver's service and the clock on the host."
    return Finding("host.boot", host, Verdict.WARN, "; ".join(notes), remedy=remedy, required=False)


def evidence_not_kept(host: str, place: Path, error: OSError) -> Finding:
    text = f"the evidence could not be kept in {place}: {error.strerror}"
    remedy = "Give a directory that can be written to."
    return Finding("evidence.kept", host, Verdict.WARN, text, remedy=remedy, required=False)
