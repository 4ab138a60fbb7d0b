"""Status lines of a gate: none of a host's stages is lost behind another host's chatter."""

from __future__ import annotations

from plugins.kiln.progress import EngineLog, StatusLine


class Recorder(EngineLog):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, urn: str, message: str, *, ephemeral: bool, warning: bool = False) -> None:
        self.lines.append(message)


def test_each_host_shows_the_first_line_of_each_stage_however_many_report_at_once() -> None:
    log = Recorder()
    progress = StatusLine(log, "urn", frozenset())
    for stage in ("reachable", "probe"):
        for host in ("a", "b", "c"):
            progress(host, stage, "")
    assert log.lines == ["a: reachable", "b: reachable", "c: reachable", "a: probe", "b: probe", "c: probe"]


def test_chatter_within_a_stage_is_thinned_out() -> None:
    log = Recorder()
    progress = StatusLine(log, "urn", frozenset())
    for step in range(50):
        progress("a", "burn-in", str(step))
    assert 1 <= len(log.lines) < 50


def test_a_secret_never_shows() -> None:
    log = Recorder()
    StatusLine(log, "urn", frozenset({"hunter2-hunter2"}))("a", "probe", "key hunter2-hunter2")
    assert "hunter2" not in log.lines[0]
