from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kiln.output import Outputs, code, report_options, write
from profiles.errors import ConfigError
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, Verdict, combine, combine_hosts


def stack(*verdicts: Verdict) -> StackReport:
    findings = [(Finding("gpu.count", f"h{n}", verdict, "m"),) for n, verdict in enumerate(verdicts)]
    hosts = tuple(HostReport(f"h{n}", "", "", "", combine(f), f) for n, f in enumerate(findings))
    return StackReport(combine_hosts(host.verdict for host in hosts), hosts, title="t")


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (stack(Verdict.PASS), 0),
        (stack(Verdict.WARN, Verdict.PASS), 0),
        (stack(Verdict.FAIL, Verdict.UNKNOWN), 1),
        (stack(Verdict.UNKNOWN, Verdict.PASS), 3),
        (stack(), 3),
        (StackReport(Verdict.PASS, ()), 3),
    ],
)
def test_the_exit_code_is_0_only_for_a_healthy_report(report: StackReport, expected: int) -> None:
    assert code(report) == expected


@click.command()
@report_options
def deliver(**options: object) -> None:
    click.get_current_context().exit(Outputs.of(dict(options)).deliver(stack(Verdict.FAIL)))


def test_json_is_one_document_and_nothing_else() -> None:
    result = CliRunner().invoke(deliver, ["--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["schema"] == "kiln/report/v1"


def test_without_json_stdout_has_the_table() -> None:
    result = CliRunner().invoke(deliver, [])
    assert result.stdout.startswith("t: gate CLOSED: FAIL, 0 of 1 host good\n")


def test_every_file_asked_for_is_written_and_named(tmp_path: Path) -> None:
    names = {"junit": "<testsuites", "html": "<!doctype html>", "markdown": "## t", "prometheus": "kiln_gate_open"}
    words = [word for name in names for word in (f"--{name}", str(tmp_path / name))]
    result = CliRunner().invoke(deliver, words)
    assert result.exit_code == 1
    for name, beginning in names.items():
        assert beginning in (tmp_path / name).read_text()
        assert f"report: {tmp_path / name}" in result.stderr


def test_a_folder_that_does_not_exist_is_told_before_the_work(tmp_path: Path) -> None:
    result = CliRunner().invoke(deliver, ["--junit", str(tmp_path / "no" / "x.xml")])
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
    assert result.stdout == ""


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    write(tmp_path / "x", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "new"


def test_a_file_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no/x: cannot be written: No such file or directory"):
        write(tmp_path / "no" / "x", "text")


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    with pytest.raises(ConfigError, match="/dev/full: cannot be written: No space left on device"):
        write(Path("/dev/full"), "text")
    assert Path("/dev/full").is_char_device()


def test_a_link_keeps_pointing_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize(("verdict", "expected"), [(Verdict.PASS, 2), (Verdict.FAIL, 1), (Verdict.UNKNOWN, 3)])
def test_a_file_that_is_lost_does_not_cost_the_verdict(
    verdict: Verdict, expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"html": Path("/dev/full"), "junit": tmp_path / "report.xml"}
    assert Outputs(json=False, files=files).deliver(stack(verdict)) == expected
    shown = capsys.readouterr()
    assert f"{verdict.value}" in shown.out
    assert "kiln: /dev/full: cannot be written: No space left on device" in shown.err
    assert (tmp_path / "report.xml").exists()
