"""Finding the Pulumi CLI: PATH first, then the cache, and one clear message where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from profiles.errors import ConfigError
from stacks import cli


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_cli_on_path_with_its_language_host_is_taken(tmp_path: Path) -> None:
    folder = put(tmp_path / "bin", "pulumi", cli.LANGUAGE_HOST)
    assert cli.find({"PATH": str(folder), "XDG_CACHE_HOME": str(tmp_path)}) == folder


def test_a_language_host_elsewhere_on_path_will_do(tmp_path: Path) -> None:
    first, second = put(tmp_path / "a", "pulumi"), put(tmp_path / "b", cli.LANGUAGE_HOST)
    assert cli.find({"PATH": f"{first}:{second}", "XDG_CACHE_HOME": str(tmp_path)}) == first


def test_a_cli_without_language_host_is_passed_over_for_the_cache(tmp_path: Path) -> None:
    lonely = put(tmp_path / "a", "pulumi")
    cached = put(tmp_path / "cache" / "kiln" / "pulumi-go" / "bin", "pulumi", cli.LANGUAGE_HOST)
    assert cli.find({"PATH": str(lonely), "XDG_CACHE_HOME": str(tmp_path / "cache")}) == cached


def test_no_cli_is_one_message_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        cli.find({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    assert "no Pulumi CLI" in str(caught.value)
    assert "make setup" in str(caught.value)


def test_the_environment_runs_this_python_first(tmp_path: Path) -> None:
    folder = put(tmp_path / "bin", "pulumi", cli.LANGUAGE_HOST)
    found = cli.pulumi_environment({"PATH": str(folder)})
    assert found["PATH"].split(os.pathsep)[:2] == [str(Path(sys.executable).parent), str(folder)]
    assert found["PULUMI_SKIP_UPDATE_CHECK"] == "true"
