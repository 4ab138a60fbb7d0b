from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from kiln.progress import Lines, LiveTable, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_one_line_for_each_change() -> None:
    stream = io.StringIO()
    with progress(stream) as shown:
        shown("gpu-1", "driver", "waiting")
        shown("gpu-1", "driver", "waiting")
        shown("gpu-2", "probe", "")
        shown("gpu-1", "done", "PASS")
    lines = [re.sub(r"^ *\d+\.\ds ", "", line) for line in stream.getvalue().splitlines()]
    assert lines == ["gpu-1  driver: waiting", "gpu-2  probe", "gpu-1  done: PASS"]


def test_what_stays_the_same_is_said_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("kiln.progress.time.monotonic", lambda: now)
    stream = io.StringIO()
    shown = Lines(stream, 0.0)
    for now in (0.0, 30.0, 61.0, 90.0):  # noqa: B007 - what the clock says
        shown("gpu-1", "reachable", "refused")
    assert [row.split()[0] for row in stream.getvalue().splitlines()] == ["0.0s", "61.0s"]


def test_a_host_s_words_cannot_write_escape_codes_or_further_lines() -> None:
    stream = io.StringIO()
    Lines(stream)("gpu-1", "driver", "x\x1b[2J\ny")
    assert stream.getvalue().endswith("driver: x\\x1b[2J y\n")


def test_lines_of_many_threads_do_not_mix() -> None:
    stream = io.StringIO()
    shown = Lines(stream)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: shown(f"gpu-{n}", "stage", "text" * 20), range(200)))
    assert len(stream.getvalue().splitlines()) == 200
    assert all(re.fullmatch(r" *\d+\.\ds gpu-\d+  stage: (text){20}", row) for row in stream.getvalue().splitlines())


def test_a_terminal_gets_a_table_that_is_gone_at_the_end() -> None:
    stream = Terminal()
    with progress(stream) as shown:
        assert isinstance(shown, LiveTable)
        shown("gpu-1", "driver", "waiting [red]not markup[/]")
        shown._live.refresh()
    assert "gpu-1" in stream.getvalue()
    assert "[red]not markup[/]" in stream.getvalue()


def test_many_hosts_are_counted_by_stage() -> None:
    stream = Terminal()
    with progress(stream) as shown:
        assert isinstance(shown, LiveTable)
        for number in range(50):
            shown(f"gpu-{number}", "probe" if number % 2 else "driver", "")
        shown._live.refresh()
    assert "50 hosts: 25 driver, 25 probe" in stream.getvalue()


def test_a_warning_stays_when_the_table_goes() -> None:
    stream = Terminal()
    with progress(stream) as shown:
        shown("stack", "warning", "one [b]x[/b]")
    assert "stack  warning: one [b]x[/b]\n" in stream.getvalue()
