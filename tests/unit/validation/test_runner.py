"""Many hosts at once, on scripted hosts: isolation, cancel, deadline, identity, burn-in."""

from __future__ import annotations

import datetime as dt
import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from validation import runner
from validation.connection import CommandResult, Ending, Failure, HostKeyError
from validation.evidence import Bundle
from validation.runner import Options, validate
from validation.verdict import FaultClass, Verdict
from validation.waiting import Budgets

NOW = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.timezone.utc)

pytestmark = pytest.mark.usefixtures("fast_pauses", "judging")


def test_a_good_host_passes_and_its_identity_is_recorded(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    (report,) = run(scripted_remote(a=scripted_host(items=nvml())), target("a", instance_id="i-1"))
    assert report.verdict is Verdict.PASS
    assert report.identity is not None
    assert (report.identity.instance_id, report.identity.boot_id) == ("i-1", "boot-1")
    assert report.identity.gpu_uuids == ("GPU-a-0", "GPU-a-1")
    assert [finding.check for finding in report.findings] == ["host.identity", "gpu.count"]


def test_reports_come_in_the_order_of_the_targets_and_one_bad_host_spoils_no_other(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
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


def test_the_collector_is_left_as_it_was(
    scripted_host: Any, scripted_remote: Any, target: Any, nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "COLLECT_AT", 98_765)
    before, meanwhile = gc.get_threshold(), set()
    validate(
        [target("a")],
        Options(deadline_s=10.0),
        progress=lambda *_: meanwhile.add(gc.get_threshold()[0]),
        cancel=threading.Event(),
        remote=scripted_remote(a=scripted_host(items=nvml())),
    )
    assert meanwhile == {98_765}
    assert gc.get_threshold() == before


def test_a_dead_host_delays_no_other_even_with_one_slot(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
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
    scripted_host: Any, scripted_remote: Any, monkeypatch: pytest.MonkeyPatch, run: Any, target: Any, nvml: Any
) -> None:
    monkeypatch.setattr("validation.runner.THREADS_MAX", 3)
    hosts = {f"n{number}": scripted_host(items=nvml()) for number in range(20)}
    reports = run(scripted_remote(**hosts), *(target(name) for name in hosts))
    assert {report.verdict for report in reports} == {Verdict.PASS}


def test_no_targets_are_not_healthy() -> None:
    report = validate([], Options(), progress=lambda *_: None, cancel=threading.Event())
    assert report.verdict is Verdict.UNKNOWN
    assert not report.healthy


def test_a_host_not_reached_says_which_stage_and_what_was_seen(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any
) -> None:
    options = Options(deadline_s=10.0, budgets=Budgets(cloud_init_s=0.05))
    state = 'KILN cloud-init\n{"status": "running"}\nKILN driver\n'
    (report,) = run(scripted_remote(a=scripted_host(readiness=[state])), target("a"), options=options)
    (finding,) = report.findings
    assert (finding.check, finding.verdict, finding.subject) == ("host.reachable", Verdict.UNKNOWN, "a")
    assert finding.message == "stage 'cloud-init' not reached; last seen: cloud-init status: running"
    assert finding.remedy


def test_a_wrong_host_key_is_a_failure_of_identity(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any
) -> None:
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


def test_another_instance_than_the_stacks_is_a_failure_of_identity(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml(instance="i-2"))
    (report,) = run(scripted_remote(a=host), target("a", instance_id="i-1"))
    assert report.findings[0].check == "host.identity"
    assert report.findings[0].message == "this is instance i-2, not i-1"
    assert report.verdict is Verdict.FAIL


def test_an_unverified_key_is_not_called_good(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml())
    (report,) = run(scripted_remote(a=host), target("a", host_key=None, accept_new=True))
    assert report.findings[0].verdict is Verdict.NOT_APPLICABLE
    assert "SHA256:shown" in report.findings[0].message


def test_incomplete_evidence_is_not_judged(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    host = scripted_host(items=nvml(), probe_digest="other")
    (report,) = run(scripted_remote(a=host), target("a"))
    assert report.verdict is Verdict.UNKNOWN
    assert "another probe answered" in report.findings[-1].message
    assert host.log == ["knock", "ready?", "collect", "closed"] * 2


def test_a_connection_that_breaks_once_while_evidence_is_gathered_costs_a_second_try_only(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
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
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    state = 'KILN cloud-init\n{"status": "error"}\nKILN driver\nKILN loaded\n'
    (report,) = run(scripted_remote(a=scripted_host(items=nvml(), readiness=[state])), target("a"))
    assert report.verdict is Verdict.WARN
    assert report.findings[1].check == "host.boot"


@pytest.mark.parametrize(
    "state", [{"hang": True}, {"unreachable": True}, {"refusals": [Failure.AUTHENTICATION] * 10000}]
)
def test_a_cancel_is_answered_within_two_seconds_whatever_the_hosts_do(
    state: dict[str, Any], scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
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


def test_a_thread_that_ignores_the_cancel_is_left_behind(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
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
    scripted_remote: Any, monkeypatch: pytest.MonkeyPatch, run: Any, target: Any
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


def test_evidence_is_kept_word_for_word(
    scripted_host: Any, scripted_remote: Any, tmp_path: Path, run: Any, target: Any, nvml: Any
) -> None:
    options = Options(deadline_s=10.0, keep_evidence=tmp_path)
    run(scripted_remote(a=scripted_host(items=nvml(kernel="Linux\r\n"))), target("a"), options=options)
    assert Bundle.read(tmp_path / "a").items["kernel"].stdout == "Linux\r\n"


def test_a_host_name_is_no_path(
    scripted_host: Any, scripted_remote: Any, tmp_path: Path, run: Any, target: Any, nvml: Any
) -> None:
    options = Options(deadline_s=10.0, keep_evidence=tmp_path / "kept")
    run(scripted_remote(**{"../a": scripted_host(items=nvml())}), target("../a"), options=options)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_evidence_that_cannot_be_kept_is_a_warning(
    scripted_host: Any, scripted_remote: Any, tmp_path: Path, run: Any, target: Any, nvml: Any
) -> None:
    (tmp_path / "file").write_text("")
    options = Options(deadline_s=10.0, keep_evidence=tmp_path / "file")
    (report,) = run(scripted_remote(a=scripted_host(items=nvml())), target("a"), options=options)
    assert (report.verdict, report.findings[-1].check) == (Verdict.WARN, "evidence.kept")


def test_a_target_does_not_show_its_private_key(target: Any) -> None:
    assert "very secret" not in repr(target("a"))
    assert "very secret" not in repr(target("a").endpoint)


def test_one_machine_under_two_names_is_not_two_good_hosts(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
    hosts = {name: scripted_host(items=nvml(uuids=f"GPU-{uuid}")) for name, uuid in (("a", 1), ("b", 2), ("c", 1))}
    reports = run(scripted_remote(**hosts), target("a"), target("b"), target("c", address="192.0.2.9"))
    assert [report.verdict.value for report in reports] == ["FAIL", "PASS", "FAIL"]
    finding = reports[0].findings[-1]
    assert (finding.check, finding.fault_class) == ("host.identity", FaultClass.OPERATOR)
    assert "c (192.0.2.9)" in finding.message


def test_probes_that_wait_for_cold_gpus_leave_room_for_others(
    scripted_host: Any, scripted_remote: Any, run: Any, target: Any, nvml: Any
) -> None:
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
    scripted_host: Any, scripted_remote: Any, monkeypatch: pytest.MonkeyPatch, run: Any, target: Any, nvml: Any
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
