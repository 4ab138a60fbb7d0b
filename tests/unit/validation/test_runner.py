"""Many hosts at once, on scripted hosts: isolation, cancel, deadline, identity, burn-in."""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from profiles.models import Expectation
from validation import host_findings, runner
from validation.evidence import Bundle
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.host import HostInfo
from validation.facts.missing import ABSENT
from validation.facts.store import Facts
from validation.remote import CommandResult, Ending, Failure, HostKeyError
from validation.report.model import BurnInRecord, HostReport
from validation.runner import Options, Target, validate
from validation.verdict import FaultClass, Finding, Verdict
from validation.waiting import Budgets

NOW = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.timezone.utc)

pytestmark = pytest.mark.usefixtures("fast_pauses", "judging")


def judged(facts: Facts, expected: Expectation, host: str) -> tuple[Finding, ...]:
    """A judge that says what the ``verdict`` item says, and of a burn-in what its result says."""
    items = facts.need(Bundle).items
    verdict = items["verdict"].stdout if "verdict" in items else "PASS"
    findings = [Finding("gpu.count", host, Verdict(verdict), "as scripted")]
    if expected.burn_in != "none":
        burn_in = items["burn-in"]
        bad = "bad" in burn_in.stdout or burn_in.error
        findings.append(Finding("burnin.gemm", host, Verdict.FAIL if bad else Verdict.PASS, burn_in.error))
    return tuple(findings)


def assembled(bundle: Bundle) -> Facts:
    """Facts from the scripted items ``boot-id``, ``instance`` and ``uuids``."""

    def text(name: str, default: str) -> str:
        return bundle.items[name].stdout if name in bundle.items else default

    host = HostInfo("node", "ubuntu", "24.04", "6.8", "x86_64", text("boot-id", "boot-1"), ABSENT, bundle.root)
    host = dataclasses.replace(host, instance_id=text("instance", "") or ABSENT)
    names = text("uuids", f"GPU-{bundle.host}-0 GPU-{bundle.host}-1").split()
    gpus = tuple(Gpu(index=number, uuid=uuid) for number, uuid in enumerate(names))
    inventory = GpuInventory("nvml", gpus, driver_version="580.105.08")
    return Facts({HostInfo: host, GpuInventory: inventory, Bundle: bundle})


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.host_run.judge.judge_facts", judged)
    monkeypatch.setattr("validation.host_run.assemble", assembled)


def target(name: str, **changes: Any) -> Target:
    fields: dict[str, Any] = {
        "name": name,
        "address": "192.0.2.1",
        "user": "root",
        "private_key": "very secret",
        "host_key": "ssh-ed25519 AAAA",
        "expectation": Expectation(instance_type="p5.48xlarge"),
    }
    return Target(**{**fields, **changes})


def run(remote: Any, *targets: Target, options: Options | None = None, **how: Any) -> tuple[HostReport, ...]:
    how.setdefault("cancel", threading.Event())
    how.setdefault("progress", lambda *_: None)
    return validate(targets, options or Options(deadline_s=10.0), remote=remote, **how).hosts


def nvml(**items: str) -> dict[str, dict[str, str]]:
    return {"nvml": {"stdout": "{}"}, **{name.replace("_", "-"): {"stdout": text} for name, text in items.items()}}


def test_a_good_host_passes_and_its_identity_is_recorded(scripted_host: Any, scripted_remote: Any) -> None:
    (report,) = run(scripted_remote(a=scripted_host(items=nvml())), target("a", instance_id="i-1"))
    assert report.verdict is Verdict.PASS
    assert report.identity is not None
    assert (report.identity.instance_id, report.identity.boot_id) == ("i-1", "boot-1")
    assert report.identity.gpu_uuids == ("GPU-a-0", "GPU-a-1")
    assert [finding.check for finding in report.findings] == ["host.identity", "gpu.count"]


def test_reports_come_in_the_order_of_the_targets_and_one_bad_host_spoils_no_other(
    scripted_host: Any, scripted_remote: Any
) -> None:
    hosts = {
        "dead": scripted_host(unreachable=True),
        "good": scripted_host(items=nvml()),
        "bad": scripted_host(items=nvml(verdict="FAIL")),
        "broken": scripted_host(items=nvml(verdict="no verdict at all")),
    }
    options = Options(deadline_s=10.0, budgets=Budgets(reachable_s=0.1))
    reports = run(scripted_remote(**hosts), *(target(name) for name in hosts), options=options)
    assert [report.host for report in reports] == list(hosts)
    assert [report.verdict.value for report in reports] == ["UNKNOWN", "PASS", "FAIL", "UNKNOWN"]
    assert "the validation crashed: ValueError" in reports[3].findings[0].message


def test_a_dead_host_delays_no_other_even_with_one_slot(scripted_host: Any, scripted_remote: Any) -> None:
    hosts = {f"dead{n}": scripted_host(unreachable=True) for n in range(20)} | {"good": scripted_host(items=nvml())}
    done: dict[str, float] = {}
    begun = time.monotonic()

    def progress(host: str, stage: str, _: str) -> None:
        if stage == "judge":
            done[host] = time.monotonic() - begun

    options = Options(deadline_s=10.0, concurrency=1, budgets=Budgets(reachable_s=1.0))
    run(scripted_remote(**hosts), *(target(name) for name in hosts), options=options, progress=progress)
    assert done["good"] < 0.5


def test_more_hosts_than_threads_are_all_judged(
    scripted_host: Any, scripted_remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("validation.runner.THREADS_MAX", 3)
    hosts = {f"n{number}": scripted_host(items=nvml()) for number in range(20)}
    reports = run(scripted_remote(**hosts), *(target(name) for name in hosts))
    assert {report.verdict for report in reports} == {Verdict.PASS}


def test_no_targets_are_not_healthy() -> None:
    report = validate([], Options(), progress=lambda *_: None, cancel=threading.Event())
    assert report.verdict is Verdict.UNKNOWN
    assert not report.healthy


def test_a_host_not_reached_says_which_stage_and_what_was_seen(scripted_host: Any, scripted_remote: Any) -> None:
    options = Options(deadline_s=10.0, budgets=Budgets(cloud_init_s=0.05))
    state = 'KILN cloud-init\n{"status": "running"}\nKILN driver\n'
    (report,) = run(scripted_remote(a=scripted_host(readiness=[state])), target("a"), options=options)
    (finding,) = report.findings
    assert (finding.check, finding.verdict, finding.subject) == ("host.reachable", Verdict.UNKNOWN, "a")
    assert finding.message == "stage 'cloud-init' not reached; last seen: cloud-init status: running"
    assert finding.remedy


def test_a_wrong_host_key_is_a_failure_of_identity(scripted_host: Any, scripted_remote: Any) -> None:
    class Impostor(scripted_remote):  # type: ignore[misc]
        def knock(self, *_: Any) -> None:
            raise HostKeyError("a", "ssh-ed25519 SHA256:right", "ssh-ed25519 SHA256:wrong")

    options = Options(deadline_s=10.0, budgets=Budgets(host_key_s=0.05))
    (report,) = run(Impostor(), target("a"), options=options)
    (finding,) = report.findings
    assert (finding.check, finding.verdict, finding.fault_class) == (
        "host.identity",
        Verdict.FAIL,
        FaultClass.OPERATOR,
    )
    assert finding.expected == "ssh-ed25519 SHA256:right"
    assert finding.measured == "ssh-ed25519 SHA256:wrong"
    assert finding.measured in finding.message


def test_another_instance_than_the_stacks_is_a_failure_of_identity(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(items=nvml(instance="i-2"))
    (report,) = run(scripted_remote(a=host), target("a", instance_id="i-1"))
    assert report.findings[0].check == "host.identity"
    assert report.findings[0].message == "this is instance i-2, not i-1"
    assert report.verdict is Verdict.FAIL


def test_an_unverified_key_is_not_called_good(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(items=nvml())
    (report,) = run(scripted_remote(a=host), target("a", host_key=None, accept_new=True))
    assert report.findings[0].verdict is Verdict.NOT_APPLICABLE
    assert "SHA256:shown" in report.findings[0].message


def test_incomplete_evidence_is_not_judged(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(items=nvml(), probe_digest="other")
    (report,) = run(scripted_remote(a=host), target("a"))
    assert report.verdict is Verdict.UNKNOWN
    assert "another probe answered" in report.findings[-1].message
    assert host.log == ["knock", "ready?", "collect", "closed"] * 2


def test_a_connection_that_breaks_once_while_evidence_is_gathered_costs_a_second_try_only(
    scripted_host: Any, scripted_remote: Any
) -> None:
    """As on a host that reboots for an update just after cloud-init has ended."""

    class Once(scripted_remote):  # type: ignore[misc]
        def login(self, *arguments: Any) -> Any:
            connection = super().login(*arguments)
            if len(host.log) < 2:
                lost = CommandResult(Ending.LOST, None, "", "reset by peer", 0.1)
                plain = connection.execute
                connection.execute = lambda command, **how: lost if how.get("on_stdout") else plain(command, **how)
            return connection

    host = scripted_host(items=nvml())
    (report,) = run(Once(a=host), target("a"))
    assert report.verdict is Verdict.PASS
    assert host.log == ["knock", "ready?", "closed", "knock", "ready?", "collect", "closed"]


def test_what_was_noted_while_waiting_is_a_warning_that_closes_nothing(
    scripted_host: Any, scripted_remote: Any
) -> None:
    state = 'KILN cloud-init\n{"status": "error"}\nKILN driver\nKILN loaded\n'
    (report,) = run(scripted_remote(a=scripted_host(items=nvml(), readiness=[state])), target("a"))
    assert report.verdict is Verdict.WARN
    assert report.findings[1].check == "host.boot"


@pytest.mark.parametrize(
    "state", [{"hang": True}, {"unreachable": True}, {"refusals": [Failure.AUTHENTICATION] * 10000}]
)
def test_a_cancel_is_answered_within_two_seconds_whatever_the_hosts_do(
    state: dict[str, Any], scripted_host: Any, scripted_remote: Any
) -> None:
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    begun = time.monotonic()
    reports = run(
        scripted_remote(a=scripted_host(**state), b=scripted_host(items=nvml())),
        target("a"),
        target("b"),
        cancel=cancel,
    )
    assert time.monotonic() - begun < 2.0
    assert reports[0].verdict is Verdict.UNKNOWN
    assert "interrupted" in reports[0].findings[0].message
    assert reports[1].verdict is Verdict.PASS


def test_a_thread_that_ignores_the_cancel_is_left_behind(scripted_host: Any, scripted_remote: Any) -> None:
    release, cancel, said = threading.Event(), threading.Event(), []

    class Deaf(scripted_remote):  # type: ignore[misc]
        def knock(self, *arguments: Any) -> Any:
            release.wait(30.0)
            return super().knock(*arguments)

    threading.Timer(0.1, cancel.set).start()
    begun = time.monotonic()
    reports = run(
        Deaf(a=scripted_host(items=nvml())), target("a"), cancel=cancel, progress=lambda *what: said.append(what)
    )
    assert time.monotonic() - begun < 2.0
    assert "interrupted; before that: nothing yet" in reports[0].findings[0].message
    release.set()
    time.sleep(0.1)
    assert said == []  # nothing is said once the report is made


def test_the_deadline_ends_the_run_even_where_a_thread_does_not_return(
    scripted_remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("validation.runner.DEADLINE_GRACE_S", 0.1)
    release = threading.Event()

    class Deaf(scripted_remote):  # type: ignore[misc]
        def knock(self, *_: Any) -> Any:
            release.wait(30.0)
            raise OSError

    (report,) = run(Deaf(), target("a"), options=Options(deadline_s=0.2))
    release.set()
    assert "the deadline has passed" in report.findings[0].message


def test_evidence_is_kept_word_for_word(scripted_host: Any, scripted_remote: Any, tmp_path: Path) -> None:
    options = Options(deadline_s=10.0, keep_evidence=tmp_path)
    run(scripted_remote(a=scripted_host(items=nvml(kernel="Linux\r\n"))), target("a"), options=options)
    assert Bundle.read(tmp_path / "a").items["kernel"].stdout == "Linux\r\n"


def test_a_host_name_is_no_path(scripted_host: Any, scripted_remote: Any, tmp_path: Path) -> None:
    options = Options(deadline_s=10.0, keep_evidence=tmp_path / "kept")
    run(scripted_remote(**{"../a": scripted_host(items=nvml())}), target("../a"), options=options)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_evidence_that_cannot_be_kept_is_a_warning(scripted_host: Any, scripted_remote: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = Options(deadline_s=10.0, keep_evidence=tmp_path / "file")
    (report,) = run(scripted_remote(a=scripted_host(items=nvml())), target("a"), options=options)
    assert (report.verdict, report.findings[-1].check) == (Verdict.WARN, "evidence.kept")


def test_a_target_does_not_show_its_private_key() -> None:
    assert "very secret" not in repr(target("a"))
    assert "very secret" not in repr(target("a").endpoint)


QUICK = Options(deadline_s=10.0, burn_in="quick")


def test_a_burn_in_runs_after_the_rest_was_judged_good_and_is_recorded(
    scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(items=nvml())
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK)
    assert host.log == ["knock", "ready?", "collect", "burn-in", "collect", "closed"]
    assert report.verdict is Verdict.PASS
    assert report.burn_in is not None
    assert report.burn_in.identity == report.identity
    assert (report.burn_in.level, report.burn_in.result) == ("quick", '{"level": "quick"}')
    assert not report.burn_in_reused


@pytest.mark.parametrize(("items", "why"), [(nvml(verdict="FAIL"), "already fail"), ({}, "does not answer")])
def test_a_host_that_fails_or_does_not_answer_is_not_loaded(
    items: Any, why: str, scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(items=items)
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK)
    assert "burn-in" not in host.log
    assert report.findings[-1].check == "burnin.run"
    assert why in report.findings[-1].message
    assert not report.verdict.opens_gate


@pytest.mark.parametrize("result", [None, '{"bad": 1}'])
def test_a_burn_in_without_a_good_result_closes_the_gate(result: Any, scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(items=nvml(), burn_in=result)
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK)
    assert report.verdict is Verdict.FAIL


@pytest.fixture
def earlier(scripted_host: Any, scripted_remote: Any) -> BurnInRecord:
    """The record of a first run."""
    (report,) = run(scripted_remote(a=scripted_host(items=nvml())), target("a"), options=QUICK)
    assert report.burn_in is not None
    return report.burn_in


def test_an_earlier_burn_in_of_the_same_host_is_reused_and_judged_again(
    earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(items=nvml())
    (report,) = run(scripted_remote(a=host), target("a"), options=QUICK, previous={"a": earlier})
    assert "burn-in" not in host.log
    assert report.burn_in_reused
    assert report.burn_in == earlier
    assert report.findings[-1].check == "burnin.gemm"


@pytest.mark.parametrize(
    ("items", "changes", "options", "record"),
    [
        pytest.param({"boot_id": "boot-2"}, {}, {}, {}, id="rebooted"),
        pytest.param({}, {"instance_id": "i-9"}, {}, {}, id="another instance"),
        pytest.param({}, {"expectation": Expectation(instance_type="p4d.24xlarge")}, {}, {}, id="expectation"),
        pytest.param({}, {}, {"burn_in": "standard"}, {}, id="level"),
        pytest.param({}, {}, {"burn_in_lifetime_s": -1.0}, {}, id="too old"),
        pytest.param({}, {}, {}, {"ran_at": "2999-01-01T00:00:00Z"}, id="from the future"),
        pytest.param({}, {}, {}, {"ran_at": "yesterday"}, id="unreadable time"),
        pytest.param({}, {}, {}, {"ran_at": "2026-11-30T12:00:00"}, id="a time without zone"),
        pytest.param({}, {}, {}, {"result": '{"bad": 1}'}, id="no longer judged good"),
    ],
)
def test_an_earlier_burn_in_is_not_reused_where_anything_changed(
    items: Any, changes: Any, options: Any, record: Any, earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(items=nvml(**items))
    (report,) = run(
        scripted_remote(a=host),
        target("a", **changes),
        options=dataclasses.replace(QUICK, **options),
        previous={"a": dataclasses.replace(earlier, **record)},
    )
    assert "burn-in" in host.log
    assert not report.burn_in_reused


def test_another_judge_does_not_reuse_a_burn_in(
    earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("validation.host_run.judge.JUDGE_DIGEST", "another")
    host = scripted_host(items=nvml())
    run(scripted_remote(a=host), target("a"), options=QUICK, previous={"a": earlier})
    assert "burn-in" in host.log


def test_a_record_of_one_host_is_not_used_for_another(
    earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(items=nvml())
    run(scripted_remote(b=host), target("b"), options=QUICK, previous={"a": earlier})
    assert "burn-in" in host.log


@pytest.mark.parametrize(
    ("after", "said"),
    [
        pytest.param(nvml(verdict="FAIL"), "FAIL gpu.count: as scripted", id="a fault that shows under load only"),
        pytest.param(nvml(boot_id="boot-2"), "UNKNOWN host.identity: after the burn-in", id="rebooted"),
        pytest.param(nvml(uuids="GPU-a-0"), "UNKNOWN host.identity: after the burn-in", id="a GPU is gone"),
    ],
)
def test_what_a_burn_in_leaves_behind_is_looked_at(
    after: Any, said: str, scripted_host: Any, scripted_remote: Any
) -> None:
    (report,) = run(scripted_remote(a=scripted_host(items=nvml(), after=after)), target("a"), options=QUICK)
    closing = [finding for finding in report.findings if not finding.verdict.opens_gate]
    assert [f"{f.verdict.value} {f.check}: {f.message}"[: len(said)] for f in closing] == [said]
    assert [finding.check for finding in report.findings].count("gpu.count") == 1
    assert not report.verdict.opens_gate


def test_findings_made_anew_after_a_load_replace_their_own_and_no_others() -> None:
    def finding(check: str, verdict: Verdict, subject: str = "host") -> Finding:
        return Finding(check, subject, verdict, "")

    before = [finding("kernel.xid", Verdict.WARN, "a"), finding("kernel.xid", Verdict.WARN, "b")]
    before += [finding("gpu.throttle", Verdict.PASS), finding("ecc.mode", Verdict.PASS)]
    after = [finding("gpu.throttle", Verdict.FAIL), finding("kernel.xid", Verdict.FAIL)]
    after += [finding("evidence.complete", Verdict.UNKNOWN)]
    whole = [(f.check, f.verdict.value) for f in host_findings.after_load(before, after)]
    assert whole == [
        ("kernel.xid", "FAIL"),
        ("gpu.throttle", "PASS"),
        ("ecc.mode", "PASS"),
        ("evidence.complete", "UNKNOWN"),
    ]


def test_another_probe_does_not_reuse_a_burn_in(
    earlier: BurnInRecord, scripted_host: Any, scripted_remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = "0" * 64
    monkeypatch.setattr("validation.host_run.bootstrap.digest", lambda: digest)
    host = scripted_host(items=nvml(), probe_digest=digest)
    run(scripted_remote(a=host), target("a"), options=QUICK, previous={"a": earlier})
    assert "burn-in" in host.log


def test_one_machine_under_two_names_is_not_two_good_hosts(scripted_host: Any, scripted_remote: Any) -> None:
    hosts = {name: scripted_host(items=nvml(uuids=f"GPU-{uuid}")) for name, uuid in (("a", 1), ("b", 2), ("c", 1))}
    reports = run(scripted_remote(**hosts), target("a"), target("b"), target("c", address="192.0.2.9"))
    assert [report.verdict.value for report in reports] == ["FAIL", "PASS", "FAIL"]
    finding = reports[0].findings[-1]
    assert (finding.check, finding.fault_class) == ("host.identity", FaultClass.OPERATOR)
    assert "c (192.0.2.9)" in finding.message


def test_probes_that_wait_for_cold_gpus_leave_room_for_others(scripted_host: Any, scripted_remote: Any) -> None:
    """Three hosts hang in their probe; with one login at a time the fourth is judged all the same."""
    hosts = {f"slow{n}": scripted_host(items=nvml()) for n in range(3)} | {"good": scripted_host(items=nvml())}
    release, begun, done = threading.Event(), threading.Barrier(4, timeout=5.0), []

    class Cold(scripted_remote):  # type: ignore[misc]
        def login(self, endpoint: Any, *arguments: Any) -> Any:
            connection = super().login(endpoint, *arguments)
            plain = connection.execute

            def execute(command: str, **how: Any) -> Any:
                if how.get("on_stdout"):
                    begun.wait()
                    if endpoint.name != "good":
                        release.wait(5.0)
                return plain(command, **how)

            connection.execute = execute
            return connection

    def progress(host: str, stage: str, _: str) -> None:
        if stage == "judge":
            done.append(host)
            release.set()

    run(
        Cold(**hosts),
        *(target(name) for name in hosts),
        options=Options(deadline_s=10.0, concurrency=1),
        progress=progress,
    )
    assert done[0] == "good"


@pytest.mark.parametrize(
    ("limits", "hosts", "threads", "raised"),
    [
        ((1024, 1048576), 1000, 1000, (4128, 1048576)),
        ((1024, 1024), 1000, 224, None),
        ((64, 64), 8, 1, None),
        ((65536, 65536), 5000, 1024, None),
        ((-1, -1), 1000, 1000, None),
        ((1024, -1), 1000, 1000, (4128, -1)),
    ],
)
def test_more_hosts_than_open_files_are_allowed_raise_the_limit_or_take_turns(
    limits: tuple[int, int], hosts: int, threads: int, raised: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr("validation.runner.resource.getrlimit", lambda _: limits)
    monkeypatch.setattr("validation.runner.resource.setrlimit", lambda _, new: asked.append(new))
    assert runner._at_once(hosts) == threads
    assert [new for new in asked if new != limits] == ([raised] if raised else [])


def test_a_system_that_gives_few_threads_slows_the_run_and_ends_it_not(
    scripted_host: Any, scripted_remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, plain = [], threading.Thread.start

    def start(thread: threading.Thread) -> None:
        given.append(thread)
        if len(given) > 2:
            raise RuntimeError("can't start new thread")
        plain(thread)

    monkeypatch.setattr("threading.Thread.start", start)
    hosts = {f"n{number}": scripted_host(items=nvml()) for number in range(8)}
    reports = run(scripted_remote(**hosts), *(target(name) for name in hosts))
    assert {report.verdict for report in reports} == {Verdict.PASS}
