from __future__ import annotations

from pathlib import Path

import pytest

from kiln.__main__ import main
from validation.evidence import Bundle, Item, Outcome


def write(folder: Path, host: str = "gpu-1") -> Path:
    Bundle(host, {"nvml": Item("nvml", "NVML", Outcome.NOT_FOUND)}, root="/").write(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name either --hosts with --host, or --evidence"),
        (["--host", "gpu-1"], "name either --hosts with --host, or --evidence"),
        (["--hosts", "x.yaml", "--host", "gpu-1", "--evidence", "."], "name either --hosts with --host, or --evidence"),
        (["--evidence", "."], "no evidence"),
    ],
)
def test_it_must_be_clear_which_host(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["baseline", "record", "--type", "my.box", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"), [("p5.48xlarge", "has this type already"), ("../x", "no good name"), ("My Box", "no good name")]
)
def test_the_type_needs_a_new_name_that_a_file_can_have(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["baseline", "record", "--type", name, "--evidence", str(write(tmp_path))]) == 2
    assert said in capsys.readouterr().err


def test_evidence_of_several_hosts_is_no_one_s_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a", "a")
    write(tmp_path / "b", "b")
    assert main(["baseline", "record", "--type", "my.box", "--evidence", str(tmp_path)]) == 2
    assert "the evidence of 2 hosts" in capsys.readouterr().err


def test_evidence_without_gpus_is_no_baseline_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "my.box.yaml"
    words = ["--evidence", str(write(tmp_path / "e")), "-o", str(out)]
    assert main(["baseline", "record", "--type", "my.box", *words]) == 3
    assert "no baseline without it" in capsys.readouterr().err
    assert not out.exists()


def test_profiles_of_one_s_own_are_refused_where_the_folder_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from profiles.catalog import default

    monkeypatch.setenv("KILN_PROFILES", str(tmp_path / "nowhere"))
    default.cache_clear()
    try:
        assert main(["check", str(write(tmp_path)), "--profile", "my.box"]) == 2
        assert "KILN_PROFILES" in capsys.readouterr().err
    finally:
        monkeypatch.delenv("KILN_PROFILES")
        default.cache_clear()
