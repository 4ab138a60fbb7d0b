"""The lines of the probe on a pipe."""

from __future__ import annotations

import json
import os
import threading

import pytest

from validation.probe.wire import Wire
from validation.transcript import Transcript


def test_a_reader_that_is_slow_loses_nothing_even_where_the_pipe_does_not_block() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    transcript = Transcript("n1")

    def listen() -> None:
        while not transcript.feed(os.read(read, 1000)):
            pass

    reader = threading.Thread(target=listen)
    reader.start()
    wire = Wire(write, "n1")
    wire.start({"root": "/"})
    wire.evidence({"name": "big", "source": "tool", "outcome": "ok", "stdout": "x" * 300_000})
    wire.end()
    reader.join(timeout=10)
    os.close(read)
    os.close(write)
    bundle = transcript.bundle("node")
    assert bundle.complete
    assert len(bundle.items["big"].stdout) == 300_000


def test_a_reader_that_is_gone_is_a_broken_pipe() -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        Wire(write, "n1").start({})
    os.close(write)


def test_a_reader_that_takes_nothing_for_long_is_gone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.probe.wire.STALLED_S", 0.1)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BrokenPipeError, match="nothing was read"):
        Wire(write, "n1").evidence({"name": "big", "stdout": "x" * 3_000_000})
    os.close(read)
    os.close(write)


def test_every_line_is_plain_ascii_on_one_line() -> None:
    read, write = os.pipe()
    Wire(write, "n1").evidence({"name": "x", "stdout": "ü\n\u2028\x00\ud800"})
    os.close(write)
    with os.fdopen(read, "rb") as file:
        line = file.read()
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert json.loads(line)["item"]["stdout"] == "ü\n\u2028\x00\ud800"
