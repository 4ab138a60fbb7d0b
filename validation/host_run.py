"""One host from first knock to its report: wait, probe, judge, burn in, judge again."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from profiles.errors import HostError, KilnError
from profiles.models import Expectation
from validation import bootstrap, burnin_reuse, host_findings, judge, uniform, unit_memory, units
from validation.collect import BURN_IN_S, COLLECT_S, burn_in, collect
from validation.connection import Connection, Endpoint, HostKeyError
from validation.evidence import AFTER_BURN_IN, Bundle, Item, Outcome
from validation.facts.assemble import assemble
from validation.facts.host import HostInfo
from validation.facts.store import Facts
from validation.report.model import BurnInRecord, GpuUnit, HostReport, Identity, digest
from validation.target import Surroundings, Target
from validation.verdict import Finding, Verdict, combine
from validation.waiting import Waiting

BURN_IN = "burn-in"


class HostRun:
    """The run of one host."""

    def __init__(self, target: Target, around: Surroundings, previous: BurnInRecord | None) -> None:
        self._target = target
        self._around = around
        self._previous = previous
        self._level = around.options.burn_in
        self._expected = target.expectation.model_copy(update={"burn_in": self._level})
        self._begun = time.monotonic()
        self.stage = "reachable"
        self.last_seen = "nothing yet"
        self._tried = False
        self._after: Bundle | None = None
        self._units: tuple[GpuUnit, ...] = ()
        self._inventory: Mapping[str, str] = {}

    def report(self) -> HostReport:
        """The host's report, whatever happens."""
        try:
            return self._judged()
        except HostKeyError as error:
            return self._closed(host_findings.wrong_key(self._target.name, error))
        except HostError as error:
            return self._closed(
                host_findings.not_reached(self._target.name, error.stage, error.last_seen, error.remedy)
            )
        except KilnError as error:
            return self._closed(host_findings.not_reached(self._target.name, self.stage, error.message, error.remedy))
        except Exception as error:  # noqa: BLE001 - a crash is this host's UNKNOWN, with its cause, not the others'
            return self._closed(host_findings.crashed(self._target.name, self.stage, error))

    def unfinished(self, why: str) -> HostReport:
        """The report of a host whose run did not come to an end: ``why`` is "interrupted" or the deadline."""
        return self._closed(
            host_findings.not_reached(self._target.name, self.stage, f"{why}; before that: {self.last_seen}", "")
        )

    def _judged(self) -> HostReport:
        around, endpoint = self._around, self._target.endpoint
        ready = Waiting(
            endpoint,
            around.remote,
            deadline=around.deadline,
            say=self._say,
            cancel=around.stop,
            budgets=around.options.budgets,
            slot=around.slot,
        ).until_ready()
        with contextlib.closing(ready.connection):
            self._say("probe", "gathering evidence")
            with around.probes:
                bundle = self._collect(ready.connection, endpoint)
                bundle = replace(bundle, notes=(*bundle.notes, *ready.notes))
                again = self._once_more(bundle)
                if not again:
                    self._say("judge", f"{len(bundle.items)} items of evidence")
                    facts, passive = self._read(bundle)
            if not again:
                return self._verdict(bundle, facts, passive, ready.connection)
        return self._judged()

    def _once_more(self, bundle: Bundle) -> bool:
        """Whether to start again: evidence did not arrive whole, for the first time. A host may reboot for an update
        just after its first boot, and a connection may break."""
        if bundle.complete or self._tried or self._around.stop.is_set():
            return False
        self._tried = True
        self._say("probe", f"once more: {'; '.join(bundle.notes)}")
        return True

    def _collect(self, connection: Connection, endpoint: Endpoint) -> Bundle:
        return collect(
            connection,
            endpoint,
            timeout_s=self._left(COLLECT_S),
            limit_s=self._around.options.collector_limit_s,
            cancel=self._around.stop,
        )

    def _read(self, bundle: Bundle) -> tuple[Facts, tuple[Finding, ...]]:
        """Facts, and what they say without a burn-in."""
        facts = assemble(bundle)
        return facts, self._judge(bundle, facts, self._expected.model_copy(update={"burn_in": "none"}))

    def _verdict(
        self, bundle: Bundle, facts: Facts, passive: tuple[Finding, ...], connection: Connection
    ) -> HostReport:
        name = self._target.name
        identity = self._identity(facts)
        self._units, self._inventory = units.units_of(facts), uniform.inventory_of(facts)
        findings = [self._who(facts, connection)]
        if bundle.complete and bundle.notes:
            findings.append(host_findings.noticed(name, bundle.notes))
        record, reused = None, False
        if self._level == "none":
            findings += passive
        elif (why := self._no_burn_in(passive, bundle)) is not None:
            findings += [finding for finding in passive if not finding.check.startswith("burnin.")]
            findings.append(host_findings.burn_in_not_run(name, why))
        else:
            bundle, record, reused = self._burnt_in(bundle, identity, connection)
            judged = self._judge(bundle, assemble(bundle), self._expected)
            findings += judged if reused else self._afterwards(judged, identity, connection)
        findings += self._kept(bundle)
        return self._report(tuple(findings), identity, record, reused)

    def _judge(self, bundle: Bundle, facts: Facts, expected: Expectation) -> tuple[Finding, ...]:
        """The judge's findings; ``facts`` are the bundle's, which take longer to read than to judge."""
        if not bundle.complete:
            return judge.judge(bundle, expected, host=self._target.name)
        return judge.judge_facts(facts, expected, self._target.name)

    def _no_burn_in(self, passive: tuple[Finding, ...], bundle: Bundle) -> str | None:
        """Why a burn-in would be pointless or unsafe; None where it may run."""
        if any(finding.verdict is Verdict.FAIL and finding.required for finding in passive):
            return "other checks already fail"
        nvml = bundle.items.get("nvml")
        if not bundle.complete or nvml is None or nvml.outcome is Outcome.TIMEOUT:
            return "the driver does not answer"
        return None

    def _burnt_in(
        self, bundle: Bundle, identity: Identity | None, connection: Connection
    ) -> tuple[Bundle, BurnInRecord | None, bool]:
        """The bundle with a burn-in's result: an earlier one that still counts and still passes, else a new one."""
        earlier = self._earlier(bundle, identity)
        if earlier is not None:
            self._say(BURN_IN, f"the {self._level} burn-in of {earlier.ran_at} still counts")
            return _with(bundle, _item(earlier)), earlier, True
        self._say(BURN_IN, f"{self._level} begins")
        item = self._burn_in(connection)
        record = None
        if identity is not None and item.outcome is Outcome.OK:
            record = BurnInRecord(identity, self._level, _utc(), item.stdout)
        return _with(bundle, item), record, False

    def _afterwards(
        self, judged: tuple[Finding, ...], identity: Identity | None, connection: Connection
    ) -> tuple[Finding, ...]:
        """The findings with those about lasting errors made anew: many a fault shows under load only."""
        name = self._target.name
        self._say(BURN_IN, "looking for errors it left behind")
        try:
            with self._around.probes:
                after = self._collect(connection, self._target.endpoint)
        except HostError as error:
            return (*judged, host_findings.not_reached(name, "probe", error.last_seen, error.remedy))
        self._after = after
        facts, again = self._read(after)
        if after.complete and self._identity(facts) != identity:
            return (*judged, host_findings.changed_under_load(name))
        return host_findings.after_load(judged, again)

    def _earlier(self, bundle: Bundle, identity: Identity | None) -> BurnInRecord | None:
        record, now = self._previous, dt.datetime.now(dt.timezone.utc)
        lifetime_s = self._around.options.burn_in_lifetime_s
        if record is None or identity is None:
            return None
        if not burnin_reuse.reusable(record, identity, self._level, lifetime_s, now):
            return None
        whole = _with(bundle, _item(record))
        again = self._judge(whole, assemble(whole), self._expected)
        spoilt = [f for f in again if f.check.startswith("burnin.") and not f.verdict.opens_gate and f.required]
        return None if spoilt else record

    def _burn_in(self, connection: Connection) -> Item:
        limit_s = self._left(BURN_IN_S)
        try:
            bundle = burn_in(
                connection,
                self._target.endpoint,
                self._level,
                timeout_s=limit_s,
                cancel=self._around.stop,
                on_progress=self._burning,
            )
        except HostError as error:
            return _no_item(self._level, Outcome.ERROR, error.last_seen)
        item = bundle.items.get(BURN_IN)
        if item is None or not bundle.complete:
            return _no_item(self._level, Outcome.ERROR, "; ".join(bundle.notes) or "the burn-in gave no result")
        return item

    def _burning(self, record: Mapping[str, Any]) -> None:
        if record["event"] == "progress":
            self._say(BURN_IN, str(record.get("text") or ""))

    def _identity(self, facts: Facts) -> Identity | None:
        # The probe measures as the judge judges: a burn-in by another probe is another measurement.
        judged_by = f"{judge.JUDGE_DIGEST}-{bootstrap.digest()[:16]}"
        return burnin_reuse.identity_of(
            facts, instance_id=self._target.instance_id, expectation=digest(self._expected), judge=judged_by
        )

    def _who(self, facts: Facts, connection: Connection) -> Finding:
        own = facts.need(HostInfo).instance_id if HostInfo in facts else None
        return host_findings.identity(self._target, own if isinstance(own, str) else None, connection.host_key)

    def _kept(self, bundle: Bundle) -> list[Finding]:
        folder = self._around.options.keep_evidence
        if folder is None:
            return []
        place = folder / (re.sub(r"[^\w.-]", "_", self._target.name).lstrip(".") or "host")
        try:
            shutil.rmtree(place / AFTER_BURN_IN, ignore_errors=True)  # an earlier run's would be judged with ours
            bundle.write(place)
            if self._after is not None:
                self._after.write(place / AFTER_BURN_IN)
            unit_memory.write_beside_evidence(self._expected, place)
        except OSError as error:
            return [host_findings.evidence_not_kept(self._target.name, place, error)]
        return []

    def _say(self, stage: str, text: str) -> None:
        if (stage, text) != (self.stage, self.last_seen) and not self._around.stop.is_set():
            self.stage, self.last_seen = stage, text
            self._around.progress(self._target.name, stage, text)

    def _left(self, limit_s: float) -> float:
        return max(1.0, min(limit_s, self._around.deadline - time.monotonic()))

    def _closed(self, finding: Finding) -> HostReport:
        return self._report((finding,), None, None, False)

    def _report(
        self, findings: tuple[Finding, ...], identity: Identity | None, record: BurnInRecord | None, reused: bool
    ) -> HostReport:
        target = self._target
        return HostReport(
            host=target.name,
            address=target.address,
            instance_id=target.instance_id,
            instance_type=target.expectation.instance_type,
            verdict=combine(findings),
            findings=findings,
            identity=identity,
            burn_in=record,
            burn_in_reused=reused,
            duration_s=time.monotonic() - self._begun,
            units=self._units,
            inventory=self._inventory,
        )


def _with(bundle: Bundle, item: Item) -> Bundle:
    return replace(bundle, items={**bundle.items, item.name: item})


def _item(record: BurnInRecord) -> Item:
    return Item(BURN_IN, f"burn-in {record.level} of {record.ran_at}", Outcome.OK, stdout=record.result)


def _no_item(level: str, outcome: Outcome, error: str) -> Item:
    return Item(BURN_IN, f"burn-in {level}", outcome, error=error)


def _utc() -> str:
    return dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
