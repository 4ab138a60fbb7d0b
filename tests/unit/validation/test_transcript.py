"""Reading what a probe wrote: noise, damage, a stream that breaks off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from validation.evidence import Outcome
from validation.transcript import Transcript


@pytest.fixture
def written(recorder: Any) -> bytes:
    """A whole run with two items."""
    wire = recorder("n1")
    wire.start({"root": "/", "started": "2026-11-30T12:00:00Z", "probe": "p1"})
    wire.evidence({"name": "kernel", "source": "uname -srm", "outcome": "ok", "stdout": "Linux 6.8 x86_64\n"})
    wire.evidence({"name": "lspci", "source": "lspci -Dnn", "outcome": "not-found", "stdout": "ünïcode\x1b[0m\x00"})
    wire.end()
    data: bytes = wire.data
    return data


def read(*chunks: bytes) -> Transcript:
    transcript = Transcript("n1")
    for chunk in chunks:
        transcript.feed(chunk)
    return transcript


def test_a_whole_run_is_complete(written: bytes) -> None:
    bundle = read(written).bundle("node")
    assert bundle.complete
    assert (bundle.root, bundle.probe, bundle.notes) == ("/", "p1", ())
    assert bundle.items["lspci"].outcome is Outcome.NOT_FOUND
    assert bundle.items["lspci"].stdout == "ünïcode\x1b[0m\x00"


def test_it_does_not_matter_how_the_stream_is_cut(written: bytes) -> None:
    assert read(*(written[i : i + 1] for i in range(len(written)))).bundle("node").complete
    assert all(read(written[:cut], written[cut:]).ended for cut in range(0, len(written), 7))


@pytest.mark.parametrize(
    "noise",
    [b"Welcome\n", b"no line end", b'{"kiln":"n0","event":"end"}\n', b'{"kiln":"n1"', b"\xff\xfe\x00", b"\n" * 99],
)
def test_noise_before_the_start_marker_is_ignored(noise: bytes, written: bytes) -> None:
    assert read(noise + written).bundle("node").complete


def test_noise_on_lines_of_its_own_is_ignored_after_the_start_too(written: bytes) -> None:
    lines = written.splitlines(keepends=True)
    assert read(*(line + b"broadcast message\n" for line in lines)).bundle("node").complete


@pytest.mark.parametrize(
    "item",
    [
        {"name": "../../etc/cron.d/x"},
        {"name": "/etc/x"},
        {"name": ".."},
        {"name": ""},
        {"name": 3},
        {"stdout": None},
        {"rc": "0"},
        {"rc": False},
        {"truncated": "no"},
        {"outcome": "fine"},
        {"more": 1},
        ["name", "source", "outcome"],
    ],
)
def test_an_item_that_is_not_one_makes_the_evidence_incomplete(item: Any, recorder: Any) -> None:
    """The host chooses the name, and a file may be named after it."""
    wire = recorder("n1")
    wire.start({"root": "/"})
    base = {"name": "kernel", "source": "uname", "outcome": "ok"}
    wire.evidence({**base, **item} if isinstance(item, dict) else item)
    wire.end()
    bundle = read(wire.data).bundle("node")
    assert not bundle.complete
    assert not bundle.items


def test_nothing_after_the_end_marker_is_read(written: bytes) -> None:
    transcript = read(written, written)
    assert transcript.bundle("node").complete


@pytest.mark.parametrize("line", [2, 3])
def test_a_lost_line_makes_the_bundle_incomplete(line: int, written: bytes) -> None:
    lines = written.splitlines(keepends=True)
    del lines[line]
    bundle = read(*lines).bundle("node")
    assert not bundle.complete
    assert "does not match the digest" in bundle.notes[0]


def test_a_changed_byte_makes_the_bundle_incomplete(written: bytes) -> None:
    bundle = read(written.replace(b"Linux 6.8", b"Linux 6.9")).bundle("node")
    assert not bundle.complete


def test_a_line_damaged_by_noise_makes_the_bundle_incomplete(written: bytes) -> None:
    lines = written.splitlines(keepends=True)
    lines[2] = b"wall: going down" + lines[2]
    assert not read(*lines).bundle("node").complete


def test_a_stream_that_breaks_off_keeps_its_items_and_is_incomplete(written: bytes) -> None:
    lines = written.splitlines(keepends=True)
    bundle = read(*lines[:-1]).bundle("node")
    assert not bundle.complete
    assert set(bundle.items) == {"kernel", "lspci"}
    assert bundle.notes == ("the probe stopped after 2 items, without its end marker",)


def test_a_probe_that_never_started_says_so() -> None:
    bundle = read(b"Last login: today\n").bundle("node")
    assert bundle.notes == ("the probe did not start",)
    assert not bundle.complete


def test_an_item_that_comes_twice_makes_the_bundle_incomplete(recorder: Any) -> None:
    wire = recorder("n1")
    wire.start({})
    for _ in range(2):
        wire.evidence({"name": "kernel", "source": "uname", "outcome": "ok"})
    wire.end()
    assert not read(wire.data).bundle("node").complete


@pytest.mark.parametrize("item", [{}, {"name": "kernel"}, {"name": "x", "source": "y", "outcome": "fine"}, {"more": 1}])
def test_an_item_of_another_shape_makes_the_bundle_incomplete(item: dict[str, Any], recorder: Any) -> None:
    wire = recorder("n1")
    wire.start({})
    wire.evidence(item)
    wire.end()
    bundle = read(wire.data).bundle("node")
    assert not bundle.complete
    assert "evidence" in bundle.notes[0]


def test_progress_is_passed_on(written: bytes, recorder: Any) -> None:
    seen: list[Any] = []
    wire = recorder("n1")
    wire.start({})
    wire.progress({"text": "GPU0 done"})
    Transcript("n1", on_progress=seen.append).feed(wire.data)
    assert seen[0]["text"] == "GPU0 done"
    assert json.loads(wire.data.splitlines()[1])["event"] == "start"
