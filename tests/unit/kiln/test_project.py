from __future__ import annotations

from pathlib import Path

import pytest

from kiln import project
from kiln.engine import Engine
from profiles.errors import ConfigError


def test_the_project_s_folder_is_found_from_below(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert project.project_folder(tmp_path / "a" / "b") == tmp_path


def test_no_project_is_told_with_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no Pulumi.yaml in {tmp_path} or above it"):
        project.project_folder(tmp_path)


def test_this_checkout_is_the_own_program_and_another_is_not(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: other\n")
    assert project.is_own(Engine(Path("pulumi"), repository, {}))
    assert not project.is_own(Engine(Path("pulumi"), tmp_path, {}))


def test_the_engine_runs_with_this_python_first_on_path(
    monkeypatch: pytest.MonkeyPatch, repository: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(project, "find", lambda _: tmp_path)
    monkeypatch.setattr(project, "pulumi_environment", lambda base: {**base, "PATH": "first"})
    engine = project.open_engine(repository, {"KILN_GATE_MODE": "record"})
    assert engine.cli == tmp_path / "pulumi"
    assert engine.directory == repository
    assert (engine.environment["PATH"], engine.environment["KILN_GATE_MODE"]) == ("first", "record")
