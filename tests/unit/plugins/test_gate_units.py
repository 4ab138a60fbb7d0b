"""The gate's memory of bad units: told to the runner, written after it, and never in the way of a verdict."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from plugins.kiln.gate import Gate
from plugins.kiln.inputs import check
from validation.report.model import GpuUnit, HostReport, StackReport
from validation.runner import Target
from validation.unit_file import UnitFile
from validation.verdict import FaultClass, Finding, Verdict, combine

UUID = "GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d1"
LOST = Finding("gpu.lost", "node-0/GPU0", Verdict.FAIL, "lost", fault_class=FaultClass.REPLACE_NOW)
GOOD = Finding("gpu.lost", "node-0", Verdict.PASS, "none is lost")
HOST = {
    "name": "node-0",
    "address": "192.0.2.1",
    "instanceType": "g5.xlarge",
    "user": "ubuntu",
    "privateKey": "key",
    "hostKey": "ssh-ed25519 AAAA",
    "instanceId": "i-1",
}


class Runner:
    """Finds what it is told to; keeps what it was told of each host."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.known: list[tuple[tuple[str, bool], ...]] = []
        self.gaps: list[str] = []

    def __call__(self, targets: tuple[Target, ...], *_: Any, **__: Any) -> StackReport:
        (target,) = targets
        self.known.append(tuple((unit.uuid, unit.here) for unit in target.expectation.known_bad))
        self.gaps.append(target.expectation.known_bad_gap)
        units = (GpuUnit(0, UUID, "1650", "NVIDIA A10G"),)
        verdict = combine([self.finding])
        host = HostReport("node-0", "", "i-1", "g5.xlarge", verdict, (self.finding,), units=units)
        return StackReport(verdict, (host,), started="2026-11-30T10:00:00Z")


def judge(runner: Runner, memory: str, **changes: str) -> dict[str, Any]:
    inputs = {"hosts": [{**HOST, **changes}], "badUnits": memory, "deadlineSeconds": 5}
    return Gate(runner, threading.Event()).judge(inputs, {}, frozenset(), lambda *_: None)


def test_a_rejected_unit_is_told_to_the_next_run(tmp_path: Path) -> None:
    memory = str(tmp_path / "deep" / "units.json")
    runner = Runner(LOST)
    assert judge(runner, memory)["verdict"] == "FAIL"
    judge(runner, memory)
    judge(runner, memory, instanceId="i-2")
    assert runner.known == [(), ((UUID, True),), ((UUID, False),)]


def test_a_memory_that_cannot_be_read_is_told_as_a_gap_and_left_as_it_is(tmp_path: Path) -> None:
    memory = tmp_path / "units.json"
    memory.write_text("{")
    runner = Runner(LOST)
    found = judge(runner, str(memory))
    assert str(memory) in runner.gaps[0]
    assert memory.read_text() == "{"
    kept = [f for f in json.loads(found["report"])["hosts"][0]["findings"] if f["check"] == "units.kept"]
    assert [(f["verdict"], f["required"]) for f in kept] == [("WARN", False)]


def test_a_memory_that_cannot_be_written_changes_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = judge(Runner(GOOD), str(tmp_path / "file" / "units.json"))
    assert found["healthy"] is True


def test_none_is_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    runner = Runner(LOST)
    judge(runner, "none")
    judge(runner, "none")
    assert runner.known == [(), ()]
    assert list(tmp_path.iterdir()) == []


def test_left_out_it_lies_beside_a_state_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    judge(Runner(LOST), "")
    assert [unit.uuid for unit in UnitFile(tmp_path / ".kiln" / "bad-units.json").read()] == [UUID]


@pytest.mark.parametrize(("path", "wrong"), [("/a/b.json", 0), ("~/b.json", 0), ("none", 0), ("", 0), ("b.json", 1)])
def test_a_relative_path_is_refused_by_its_property(path: str, wrong: int) -> None:
    assert [where for where, _ in check({"hosts": [HOST], "badUnits": path})] == ["badUnits"] * wrong
