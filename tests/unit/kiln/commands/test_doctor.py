from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from kiln.__main__ import main
from kiln.commands import doctor
from profiles import catalog
from profiles.errors import ConfigError, ProfileError


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Pulumi CLI that says its version."""
    path = tmp_path / "pulumi"
    path.write_text("#!/bin/sh\necho v3.1.0\n")
    path.chmod(0o755)
    monkeypatch.setattr(doctor, "find", lambda _: tmp_path)
    return path


def answers(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> dict[str, dict[str, str]]:
    assert main(["doctor", "--json", *words]) == code
    return {answer["name"]: answer for answer in json.loads(capsys.readouterr().out)["answers"]}


def test_a_machine_with_everything_is_0(cli: Path, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answers(capsys, 0, "--cwd", str(repository))
    assert found["pulumi"]["text"] == f"v3.1.0 at {cli}"
    assert found["project"]["state"] == "ok"
    assert found["profiles"]["text"] == f"{len(catalog.types())} instance types"


def test_without_a_cli_it_is_2_and_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(_: object) -> Path:
        raise ConfigError("no CLI", remedy="run make setup")

    monkeypatch.setattr(doctor, "find", none)
    assert main(["doctor"]) == 2
    assert "missing  pulumi: no CLI\n           -> run make setup\n" in capsys.readouterr().out


def test_a_cli_that_does_not_run_is_missing(cli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.write_text("#!/bin/sh\nexit 3\n")
    assert "does not run" in answers(capsys, 2)["pulumi"]["text"]


def test_no_project_is_only_a_note(cli: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(capsys, 0, "--cwd", str(tmp_path))["project"]["state"] == "note"


def test_a_provider_that_cannot_be_run_is_missing(
    cli: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "plugins" / "kiln" / "pulumi-resource-kiln"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("")
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    assert answers(capsys, 2, "--cwd", str(tmp_path))["provider"]["remedy"] == f"chmod +x {plugin}"


def test_a_wrong_profile_is_named(
    cli: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(name: str) -> None:
        raise ProfileError(f"profile {name}.yaml is wrong")

    monkeypatch.setattr(catalog, "load", wrong)
    assert "p5.48xlarge.yaml is wrong" in answers(capsys, 2)["profiles"]["text"]


@pytest.mark.parametrize(("python", "state"), [((3, 9, 1), "missing"), ((3, 12, 0), "ok")])
def test_an_old_python_is_missing(
    cli: Path,
    monkeypatch: pytest.MonkeyPatch,
    python: tuple[int, int, int],
    state: str,
) -> None:
    monkeypatch.setattr(sys, "version_info", python)
    (answer,) = doctor._python(Path())
    assert answer.state == state


@pytest.mark.parametrize(
    ("variables", "states"), [({}, ["note", "note"]), ({"PULUMI_BACKEND_URL": "file://x"}, ["ok", "note"])]
)
def test_the_backend_is_told_as_far_as_it_is_known(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], states: list[str]
) -> None:
    monkeypatch.setattr(os, "environ", variables)
    assert [answer.state for answer in doctor._backend(Path())] == states


def test_no_compiler_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (answer,) = doctor._compiler(Path())
    assert answer.state == "note"
