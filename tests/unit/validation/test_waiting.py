"""Waiting, stage by stage, on a scripted host."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from profiles.errors import HostError
from validation.connection import CommandResult, Ending, Endpoint, Failure, RemoteError
from validation.waiting import Budgets, Ready, Waiting, pauses, readiness

SHORT = Budgets(reachable_s=0.1, authenticated_s=0.1, host_key_s=0.05, cloud_init_s=0.1, driver_s=0.1)
ENDPOINT = Endpoint("node", "192.0.2.1", "ubuntu", "key")

pytestmark = pytest.mark.usefixtures("fast_pauses")


def cloud(status: str, driver: str = "KILN loaded\n") -> str:
    return f'KILN cloud-init\n{{\n "status": "{status}"\n}}\nKILN driver\n{driver}'


def wait(
    remote: Any, *, budgets: Budgets = SHORT, deadline_s: float = 5.0, cancel: threading.Event | None = None
) -> Ready:
    said: list[tuple[str, str]] = []
    return Waiting(
        ENDPOINT,
        remote,
        deadline=time.monotonic() + deadline_s,
        say=lambda stage, text: said.append((stage, text)),
        cancel=cancel or threading.Event(),
        budgets=budgets,
        slot=contextlib.nullcontext(),
    ).until_ready()


def failure(remote: Any, **how: Any) -> HostError:
    with pytest.raises(HostError) as caught:
        wait(remote, **how)
    return caught.value


def test_pauses_grow_up_to_a_maximum_and_jitter_only_shortens_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.waiting.FIRST_PAUSE_S", 0.5)
    monkeypatch.setattr("validation.waiting.PAUSE_MAX_S", 15.0)
    full = list(itertools.islice(pauses(lambda: 0.0), 12))
    half = list(itertools.islice(pauses(lambda: 1.0), 12))
    assert full[:3] == pytest.approx([0.5, 0.8, 1.28])
    assert full == sorted(full)
    assert full[-1] == 15.0
    assert half == pytest.approx([pause / 2 for pause in full])


def test_a_host_that_is_ready_is_asked_once(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host()
    assert wait(scripted_remote(node=host)).notes == ()
    assert host.log == ["knock", "ready?"]


@pytest.mark.parametrize("kind", [Failure.REFUSED, Failure.UNREACHABLE, Failure.TIMED_OUT, Failure.DROPPED])
def test_a_host_that_does_not_answer_yet_is_tried_again(
    kind: Failure, scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(refusals=[kind] * 3)
    wait(scripted_remote(node=host))
    assert host.log.count("knock") == 4


def test_a_host_that_never_answers_names_the_stage_and_what_was_seen(scripted_host: Any, scripted_remote: Any) -> None:
    error = failure(scripted_remote(node=scripted_host(unreachable=True)))
    assert error.stage == "reachable"
    assert error.last_seen == "no route to host"


@pytest.mark.parametrize(
    ("kind", "attempts"), [(Failure.AUTHENTICATION, 3), (Failure.HOST_KEY, 3)], ids=lambda value: str(value)
)
def test_a_key_that_may_yet_be_installed_is_tried_again(
    kind: Failure, attempts: int, scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(refusals=[kind] * (attempts - 1))
    wait(scripted_remote(node=host))
    assert host.log.count("knock") == attempts


def test_a_key_that_stays_wrong_ends_within_its_own_budget(scripted_host: Any, scripted_remote: Any) -> None:
    budgets = Budgets(host_key_s=0.05, reachable_s=60.0)
    error = failure(scripted_remote(node=scripted_host(refusals=[Failure.HOST_KEY] * 1000)), budgets=budgets)
    assert isinstance(error, RemoteError)
    assert error.failure is Failure.HOST_KEY
    assert error.stage == "authenticated"


@dataclass
class SlowRemote:
    """Refuses each attempt after ten seconds of a clock of its own: with ``first`` for a while, with ``then`` after."""

    first: Failure
    then: Failure
    attempts: int  # with ``first``
    now: float = field(default_factory=time.monotonic)
    allowed: list[float] = field(default_factory=list)

    def knock(self, endpoint: Endpoint, timeout_s: float) -> Any:
        self.allowed.append(timeout_s)
        self.now += 10.0
        failure = self.first if len(self.allowed) <= self.attempts else self.then
        raise RemoteError(endpoint.name, failure, failure.value)


@pytest.mark.parametrize(
    ("then", "equal"),
    [
        (Failure.AUTHENTICATION, Budgets(reachable_s=100.0, authenticated_s=100.0)),
        (Failure.HOST_KEY, Budgets(reachable_s=100.0, host_key_s=100.0)),
    ],
)
def test_stages_with_equal_budgets_have_a_clock_each(
    then: Failure, equal: Budgets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine attempts use up 90 s of being reached; what follows has 100 s of its own, and whole attempts."""
    remote = SlowRemote(Failure.REFUSED, then, attempts=9)
    monkeypatch.setattr("validation.waiting.time", SimpleNamespace(monotonic=lambda: remote.now))
    error = failure(remote, budgets=equal, deadline_s=1000.0)
    assert error.stage == "authenticated"
    assert len(remote.allowed) == 9 + 11  # its first attempt starts the clock
    assert remote.allowed[10:19] == [15.0] * 9


def test_one_stage_has_one_clock_whatever_fails_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = SlowRemote(Failure.REFUSED, Failure.TIMED_OUT, attempts=5)
    monkeypatch.setattr("validation.waiting.time", SimpleNamespace(monotonic=lambda: remote.now))
    failure(remote, budgets=Budgets(reachable_s=100.0), deadline_s=1000.0)
    assert len(remote.allowed) == 10


@pytest.mark.parametrize("kind", [Failure.UNPINNED, Failure.INCOMPATIBLE])
def test_what_cannot_mend_itself_is_not_tried_again(kind: Failure, scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(refusals=[kind])
    error = failure(scripted_remote(node=host))
    assert error.last_seen == kind.value
    assert host.log == ["knock"]


@pytest.mark.parametrize("status", ["running", "not started", "not run"])
def test_cloud_init_that_still_runs_is_waited_for(status: str, scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(readiness=[cloud(status), cloud(status), cloud("done")])
    wait(scripted_remote(node=host))
    assert host.log.count("ready?") == 3


def test_cloud_init_that_never_ends_names_its_stage(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(readiness=[cloud("running")])
    error = failure(scripted_remote(node=host))
    assert (error.stage, error.last_seen) == ("cloud-init", "cloud-init status: running")
    assert host.log[-1] == "closed"


def test_cloud_init_that_ended_with_errors_is_a_note(scripted_host: Any, scripted_remote: Any) -> None:
    ready = wait(scripted_remote(node=scripted_host(readiness=[cloud("error")])))
    assert ready.notes == ("cloud-init status: error (error)",)


def test_a_driver_that_comes_late_is_waited_for(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(readiness=[cloud("done", "KILN none yet\n"), cloud("done")])
    assert wait(scripted_remote(node=host)).notes == ()
    assert host.log.count("ready?") == 2


def test_a_host_whose_driver_never_answers_is_probed_all_the_same(scripted_host: Any, scripted_remote: Any) -> None:
    ready = wait(scripted_remote(node=scripted_host(readiness=[cloud("done", "KILN none yet\n")])))
    assert ready.notes[0].startswith("the driver did not answer within 0.1 s: an NVIDIA device on the PCI bus")


def test_one_deadline_ends_every_stage(scripted_host: Any, scripted_remote: Any) -> None:
    begun = time.monotonic()
    error = failure(
        scripted_remote(node=scripted_host(readiness=[cloud("running")])), budgets=Budgets(), deadline_s=0.1
    )
    assert error.stage == "cloud-init"
    assert time.monotonic() - begun < 2.0


@pytest.mark.parametrize("state", [{"unreachable": True}, {"readiness": [cloud("running")]}])
def test_a_cancel_ends_the_waiting_and_keeps_what_was_seen(
    state: dict[str, Any], scripted_host: Any, scripted_remote: Any
) -> None:
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    begun = time.monotonic()
    error = failure(scripted_remote(node=scripted_host(**state)), budgets=Budgets(), deadline_s=60.0, cancel=cancel)
    assert error.last_seen.startswith("interrupted; before that: ")
    assert time.monotonic() - begun < 2.0


@pytest.mark.parametrize(
    ("driver", "waiting"),
    [
        ("KILN loaded\n", ""),
        ("KILN no device\n", ""),
        ("KILN none yet\n", "driver"),
        ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nKILN rc 0\n", ""),
        ("No devices were found\nKILN rc 6\n", ""),
        ("Failed to initialize NVML: Driver/library version mismatch\nKILN rc 18\n", ""),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nKILN rc 9\n", "driver"),
        ("Failed to initialize NVML: Driver Not Loaded\nKILN rc 9\n", "driver"),
    ],
)
def test_only_a_driver_that_is_not_there_yet_is_waited_for(driver: str, waiting: str) -> None:
    assert readiness(cloud("done", driver)).waiting == waiting


@pytest.mark.parametrize(
    ("text", "waiting", "note"),
    [
        ("KILN absent\n", "", ""),
        ("status: done\n", "", ""),
        ("status: running\n", "cloud-init", ""),
        ("status: disabled\n", "", ""),
        ("status: error\n", "", "cloud-init status: error (see /var/log/cloud-init.log)"),
        (
            '{"status": "done", "extended_status": "degraded done", "errors": []}\n',
            "",
            "cloud-init status: done (degraded done)",
        ),
        ('{"status": "error", "extended_status": "error - running", "errors": ["one"]}\n', "cloud-init", ""),
        ('{"status": "error", "errors": ["one", "two"]}\n', "", "cloud-init status: error (one; two)"),
    ],
)
def test_cloud_init_is_read_in_its_old_and_its_new_form(text: str, waiting: str, note: str) -> None:
    seen = readiness(f"Welcome\nKILN cloud-init\n{text}KILN driver\nKILN loaded\n")
    assert (seen.waiting, seen.note) == (waiting, note)


def test_a_driver_tool_that_hangs_has_answered(scripted_remote: Any, scripted_host: Any) -> None:
    late = CommandResult(Ending.TIMED_OUT, None, "KILN cloud-init\nKILN absent\nKILN driver\n", "", 20.0)
    assert wait(answering(scripted_remote, late)(node=scripted_host())).notes == ()


def test_a_driver_tool_that_hangs_does_not_hide_a_cloud_init_that_still_runs(
    scripted_remote: Any, scripted_host: Any
) -> None:
    late = CommandResult(Ending.TIMED_OUT, None, cloud("running", ""), "", 20.0)
    error = failure(answering(scripted_remote, late)(node=scripted_host()))
    assert (error.stage, error.last_seen) == ("cloud-init", "cloud-init status: running")


def test_a_connection_that_breaks_each_time_is_tried_at_growing_intervals(
    scripted_remote: Any, scripted_host: Any
) -> None:
    lost = CommandResult(Ending.LOST, None, "", "Channel closed.", 0.0)
    host = scripted_host()
    error = failure(answering(scripted_remote, lost)(node=host), deadline_s=0.4)
    assert "Channel closed." in error.last_seen
    assert host.log.count("knock") < 40


def answering(scripted_remote: Any, result: CommandResult) -> Any:
    """A remote whose hosts answer every command with the same result."""

    class Answering:
        host_key = ""

        def execute(self, *_: Any, **__: Any) -> CommandResult:
            return result

        def close(self) -> None: ...

    class Remote(scripted_remote):  # type: ignore[misc]
        def login(self, *arguments: Any) -> Answering:
            super().login(*arguments)
            return Answering()

    return Remote
