from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from kiln.__main__ import main
from kiln.commands import status as command
from kiln.engine import Engine
from kiln.look import Look
from profiles.errors import ConfigError
from stacks.status import Leftover, Status
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict

FINDING = Finding("gpu.count", "node-0", Verdict.PASS, "8 GPUs")
REPORT = StackReport(Verdict.PASS, (HostReport("node-0", "", "i-1", "p5.48xlarge", Verdict.PASS, (FINDING,)),))
JUDGED = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
GOOD = Status(Verdict.PASS, (), REPORT, JUDGED, ())
DOUBTFUL = Status(
    Verdict.UNKNOWN,
    ("the stack is locked",),
    REPORT,
    "2026-05-01T10:00:00Z",
    (Leftover("urn", "i-old", "p5.48xlarge"),),
)


class FakeEngine(Engine):
    def call(self, stack: str, *arguments: str) -> str:
        return "[]" if "history" in arguments else "{}"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, repository: Path) -> list[Status]:
    """The status that the command is to find: put it into this list."""
    statuses: list[Status] = []
    monkeypatch.setattr(command, "open_engine", lambda _: FakeEngine(Path("pulumi"), repository, {}))
    monkeypatch.setattr(command, "assess", lambda *_, **__: statuses[0])
    monkeypatch.setattr(command, "look", lambda *_: Look((), Verdict.PASS))
    return statuses


def test_a_healthy_stack_is_0(found: list[Status], capsys: pytest.CaptureFixture[str]) -> None:
    found.append(GOOD)
    assert main(["status", "dev"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"dev: healthy (PASS), judged {JUDGED}")
    assert "gate OPEN: PASS" in text


def test_a_good_report_is_not_shown_as_open_where_something_speaks_against_it(
    found: list[Status], capsys: pytest.CaptureFixture[str]
) -> None:
    found.append(DOUBTFUL)
    assert main(["status", "dev"]) == 3
    text = capsys.readouterr().out
    assert "dev: not healthy (UNKNOWN)" in text
    assert "  - the stack is locked\n" in text
    assert "  - still running and costing: i-old (p5.48xlarge); run kiln up\n" in text
    assert "OPEN" not in text


def test_a_host_that_changed_since_voids_the_verdict(
    found: list[Status], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found.append(GOOD)
    reason = "node-0: it was rebooted (boot id a -> b): the verdict is void; run kiln up"
    monkeypatch.setattr(command, "look", lambda *_: Look((reason,), Verdict.UNKNOWN))
    assert main(["status", "dev"]) == 3
    text = capsys.readouterr().out
    assert text.startswith("dev: not healthy (UNKNOWN)")
    assert f"  - {reason}\n" in text
    assert "OPEN" not in text


def test_a_host_that_fails_now_is_1(found: list[Status], monkeypatch: pytest.MonkeyPatch) -> None:
    found.append(GOOD)
    monkeypatch.setattr(command, "look", lambda *_: Look(("node-0: now FAIL gpu.count: 7 of 8",), Verdict.FAIL))
    assert main(["status", "dev"]) == 1


def test_hosts_that_cannot_be_looked_at_are_not_healthy(
    found: list[Status], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> Look:
        raise ConfigError("no passphrase")

    found.append(GOOD)
    monkeypatch.setattr(command, "look", refuse)
    assert main(["status", "dev"]) == 3
    assert "the hosts could not be looked at: no passphrase" in capsys.readouterr().out


@pytest.mark.parametrize("status", [GOOD, DOUBTFUL])
def test_no_host_is_looked_at_where_it_is_not_asked_for_or_could_change_nothing(
    found: list[Status], status: Status, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found.append(status)
    monkeypatch.delattr(command, "look")
    assert main(["status", "dev", "--json", *(["--no-look"] if status is GOOD else [])]) == (0 if status is GOOD else 3)
    assert json.loads(capsys.readouterr().out)["looked_at"] is False


def test_a_verdict_is_void_after_its_lifetime(found: list[Status], capsys: pytest.CaptureFixture[str]) -> None:
    hour_ago = dt.datetime.now(dt.timezone.utc) - dt.timedelta(hours=1)
    found.append(Status(Verdict.PASS, (), REPORT, hour_ago.isoformat(), ()))
    assert main(["status", "dev", "--lifetime", "0.5"]) == 3
    assert "a verdict holds for" in capsys.readouterr().out
    assert main(["status", "dev", "--lifetime", "2"]) == 0


def test_a_verdict_that_would_open_is_3_where_there_are_reasons(found: list[Status]) -> None:
    found.append(Status(Verdict.PASS, ("not judged: i-2",), None, "", ()))
    assert main(["status", "dev"]) == 3


def test_a_failed_gate_is_1(found: list[Status]) -> None:
    found.append(Status(Verdict.FAIL, ("gate closed",), None, "", ()))
    assert main(["status", "dev"]) == 1


def test_json_is_one_document(found: list[Status], capsys: pytest.CaptureFixture[str]) -> None:
    found.append(DOUBTFUL)
    assert main(["status", "dev", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["healthy"], data["verdict"]) == ("kiln/status/v1", False, "UNKNOWN")
    assert data["leftovers"] == [{"urn": "urn", "instance_id": "i-old", "instance_type": "p5.48xlarge"}]


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        ("2026-05-01T09:58:00Z", ", 2 min ago"),
        ("2026-05-01T05:00:00Z", ", 5 h ago"),
        ("2026-04-21T10:00:00Z", ", 10 days ago"),
        ("soon", ""),
        ("2026-05-01T09:58:00", ""),
    ],
)
def test_the_age_of_a_verdict_is_told_in_words(judged: str, words: str) -> None:
    assert command._age(judged, dt.datetime(2026, 5, 1, 10, tzinfo=dt.timezone.utc)) == words
