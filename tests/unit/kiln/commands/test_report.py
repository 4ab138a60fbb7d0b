from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from kiln.__main__ import main
from validation.report import document
from validation.report.formats import FORMATS
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict, combine


@pytest.fixture
def failing() -> StackReport:
    findings = (Finding("gpu.count", "h", Verdict.FAIL, "7 GPUs", "7", "8"),)
    return StackReport(Verdict.FAIL, (HostReport("h", "", "", "", combine(findings), findings),), title="t")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written_and_the_code_is_the_verdict_s(
    name: str, failing: StackReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(document.render(failing))
    assert main(["report", str(tmp_path / "r.json"), "--format", name]) == 1
    assert main(["report", str(tmp_path / "r.json"), "--format", name, "-o", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out").read_text() == FORMATS[name](failing)
    assert "h" in capsys.readouterr().out


def test_stdin_is_read_for_a_dash(
    failing: StackReport, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = io.TextIOWrapper(io.BytesIO(document.render(failing).encode()))
    monkeypatch.setattr(sys, "stdin", text)
    assert main(["report", "-", "--format", "json"]) == 1
    assert document.read(capsys.readouterr().out) == failing


def test_a_report_edited_to_look_healthy_is_refused(
    failing: StackReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = failing.to_dict()
    data.update(verdict="PASS", healthy=True)
    (tmp_path / "r.json").write_text(json.dumps(data))
    assert main(["report", str(tmp_path / "r.json")]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "kiln: report: the stack says PASS, but the findings come to FAIL\n"
