"""Does a verdict still hold? It is bound to the host as it was then, and it does not live for ever. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from validation.burnin_reuse import FUTURE_S
from validation.report.model import HostReport, Identity, StackReport
from validation.verdict import Verdict

LIFETIME_S = 7 * 86400.0  # as long as a burn-in counts
_AGAIN = "run kiln up"


def changes(then: Identity, now: Identity) -> tuple[str, ...]:
    """What of a host is no longer as it was judged, each as old -> new; empty where the verdict still stands."""
    return tuple(_changes(then, now))


def _changes(then: Identity, now: Identity) -> Iterator[str]:
    if then.instance_id != now.instance_id:
        yield f"it is another instance ({then.instance_id or 'none'} -> {now.instance_id or 'none'})"
    if then.boot_id != now.boot_id:
        yield f"it was rebooted (boot id {then.boot_id} -> {now.boot_id})"
    if then.driver != now.driver:
        yield f"its driver was changed ({then.driver} -> {now.driver})"
    gone, new = sorted(set(then.gpu_uuids) - set(now.gpu_uuids)), sorted(set(now.gpu_uuids) - set(then.gpu_uuids))
    if gone or new:
        yield f"its GPUs were changed ({', '.join(gone) or 'none'} -> {', '.join(new) or 'none'})"
    if then.expectation != now.expectation:
        yield f"what it must be was changed (expectation {then.expectation} -> {now.expectation})"
    if then.judge != now.judge:
        yield f"the checks were changed (judge {then.judge} -> {now.judge})"


def expired(judged_at: str, now: dt.datetime, lifetime_s: float = LIFETIME_S) -> str | None:
    """Why a verdict is too old; None where it is not. A time that cannot be read is too old."""
    try:
        age_s = (now - dt.datetime.fromisoformat(judged_at.replace("Z", "+00:00"))).total_seconds()
    except (TypeError, ValueError):
        return f"it cannot be told when the hosts were judged ({judged_at or 'no time'}); {_AGAIN}"
    if age_s > lifetime_s:
        return f"judged {age_s / 86400:.1f} days ago; a verdict holds for {lifetime_s / 86400:g}; {_AGAIN}"
    return f"judged in the future ({judged_at}): look at this machine's clock" if age_s < -FUTURE_S else None


def void(report: StackReport, present: Mapping[str, HostReport]) -> tuple[str, ...]:
    """Why the verdicts of a report are void, by the hosts as they are now; empty where every one still stands.

    ``present``: by name, what a look at each host has just found. A host that could not be looked at, whose identity
    was never recorded or cannot be read now, or that is not good now, voids its verdict.
    """
    return tuple(reason for host in report.hosts for reason in _void(host, present.get(host.host)))


def _void(then: HostReport, now: HostReport | None) -> Iterator[str]:
    name = then.host
    if now is None:
        yield f"{name}: was not looked at; {_AGAIN}"
        return
    if then.identity is not None and now.identity is not None:
        for change in changes(then.identity, now.identity):
            yield f"{name}: {change}: the verdict is void; {_AGAIN}"
    bad = [f for f in now.findings if f.required and not f.verdict.opens_gate]
    bad.sort(key=lambda finding: finding.verdict is not Verdict.FAIL)
    for finding in bad[:3]:
        yield f"{finding.subject}: now {finding.verdict.value} {finding.check}: {finding.message}"
    if (then.identity is None or now.identity is None) and not bad:
        when = "when it was judged" if then.identity is None else "now"
        yield f"{name}: which boot, driver and GPUs it has could not all be read {when}: the verdict is void; {_AGAIN}"
