"""A verdict is void as soon as one thing that it is bound to has changed, and it says which, old and new."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields, replace

import pytest

from validation import staleness
from validation.report.model import HostReport, Identity, StackReport
from validation.verdict import FaultClass, Finding, Verdict, combine

THEN = Identity("i-1", "boot-a", ("GPU-1", "GPU-2"), "580.1", "expect-a", "judge-a")
NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.timezone.utc)
GOOD = Finding("gpu.count", "node-0", Verdict.PASS, "2 of 2 GPUs found")


def host(identity: Identity | None, *findings: Finding) -> HostReport:
    found = findings or (GOOD,)
    return HostReport("node-0", "", "i-1", "t", combine(found), found, identity)


def void(then: Identity | None, now: HostReport | None) -> list[str]:
    report = StackReport(Verdict.PASS, (host(then),))
    return list(staleness.void(report, {"node-0": now} if now else {}))


def test_a_host_as_it_was_keeps_its_verdict() -> None:
    assert void(THEN, host(THEN)) == []


CHANGES = [
    ("instance_id", "i-2", "it is another instance (i-1 -> i-2)"),
    ("boot_id", "boot-b", "it was rebooted (boot id boot-a -> boot-b)"),
    ("gpu_uuids", ("GPU-1", "GPU-3"), "its GPUs were changed (GPU-2 -> GPU-3)"),
    ("driver", "590.2", "its driver was changed (580.1 -> 590.2)"),
    ("expectation", "expect-b", "what it must be was changed (expectation expect-a -> expect-b)"),
    ("judge", "judge-b", "the checks were changed (judge judge-a -> judge-b)"),
]


@pytest.mark.parametrize(("part", "value", "words"), CHANGES)
def test_every_part_that_a_verdict_is_bound_to_voids_it(part: str, value: object, words: str) -> None:
    now = replace(THEN, **{part: value})  # type: ignore[arg-type]
    assert void(THEN, host(now)) == [f"node-0: {words}: the verdict is void; run kiln up"]


def test_no_part_of_the_identity_is_forgotten() -> None:
    assert {part for part, _, _ in CHANGES} == {field.name for field in fields(Identity)}


def test_an_upgrade_with_its_reboot_names_both() -> None:
    assert len(staleness.changes(THEN, replace(THEN, boot_id="boot-b", driver="590.2"))) == 2


def test_a_missing_gpu_is_named() -> None:
    assert staleness.changes(THEN, replace(THEN, gpu_uuids=("GPU-1",))) == ("its GPUs were changed (GPU-2 -> none)",)


def test_a_host_that_is_bad_now_is_named_with_its_fault_worst_first() -> None:
    unknown = Finding("kernel.xid", "node-0", Verdict.UNKNOWN, "could not look")
    lost = Finding("gpu.lost", "node-0/GPU1", Verdict.FAIL, "lost", fault_class=FaultClass.REPLACE_NOW)
    assert void(THEN, host(THEN, unknown, lost)) == [
        "node-0/GPU1: now FAIL gpu.lost: lost",
        "node-0: now UNKNOWN kernel.xid: could not look",
    ]


def test_a_host_that_does_not_answer_now_voids_its_verdict() -> None:
    silent = Finding("host.reachable", "node-0", Verdict.UNKNOWN, "stage 'reachable' not reached")
    assert void(THEN, host(None, silent)) == ["node-0: now UNKNOWN host.reachable: stage 'reachable' not reached"]


@pytest.mark.parametrize(("then", "now", "when"), [(None, THEN, "when it was judged"), (THEN, None, "now")])
def test_an_identity_that_nobody_could_read_proves_nothing(
    then: Identity | None, now: Identity | None, when: str
) -> None:
    (reason,) = void(then, host(now))
    assert f"could not all be read {when}: the verdict is void" in reason


def test_a_host_that_nobody_looked_at_voids_its_verdict() -> None:
    assert void(THEN, None) == ["node-0: was not looked at; run kiln up"]


def test_what_only_warns_now_voids_nothing() -> None:
    advisory = Finding("gpu.idle", "node-0", Verdict.FAIL, "busy", required=False)
    assert void(THEN, host(THEN, GOOD, advisory)) == []


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        ("2026-11-30T11:00:00Z", None),
        ("2026-11-23T12:00:00Z", None),
        ("2026-11-23T11:00:00Z", "judged 7.0 days ago; a verdict holds for 7"),
        ("2026-11-30T12:00:30Z", None),
        ("2026-11-30T13:00:00Z", "judged in the future"),
        ("", "it cannot be told when"),
        ("soon", "it cannot be told when"),
        ("2026-11-30T11:00:00", "it cannot be told when"),  # no zone
    ],
)
def test_a_verdict_lives_seven_days(judged: str, words: str | None) -> None:
    found = staleness.expired(judged, NOW)
    assert found is None if words is None else words in (found or "")
