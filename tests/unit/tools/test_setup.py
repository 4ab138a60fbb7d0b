"""The set-up's own parts: long steps that say how they are, and what is refused with a way out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from profiles.errors import ConfigError
from tools import pip_wheel, setup


def test_a_step_that_fails_shows_the_end_of_what_it_printed_and_the_way_out() -> None:
    command = [sys.executable, "-c", "print('one'); print('the cause'); raise SystemExit(3)"]
    with pytest.raises(setup.SetupError) as caught:
        setup.run(command, "doing it", remedy="Do it by hand.")
    assert str(caught.value).startswith("doing it failed: one\n  the cause")
    assert str(caught.value).endswith("-> Do it by hand.")


def test_a_long_step_says_that_it_still_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_TICK_S", 0.2)
    setup.run([sys.executable, "-c", "import time; print('busy', flush=True); time.sleep(1.3)"], "waiting", remedy="")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "setup: waiting ..."
    assert any("busy" in line for line in lines[1:-1])
    assert lines[-1].startswith("setup: waiting: done in ")


def test_a_go_that_does_not_run_is_no_go(tmp_path: Path) -> None:
    assert setup._go_version(tmp_path / "go") == (0,)
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.19.8-fips\n")
    go.chmod(0o755)
    assert setup._go_version(go) == (1, 19)


def apt(folder: Path, monkeypatch: pytest.MonkeyPatch, *, unpacks: str) -> None:
    """Programs named apt-get and dpkg-deb on PATH: the first downloads a package, the second unpacks ``unpacks``."""
    for name, line in (
        ("apt-get", ': >"$2.deb"'),
        ("dpkg-deb", f"mkdir -p $(dirname {unpacks}) && echo pip >{unpacks}"),
    ):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(pip_wheel, "INSTALLED", folder / "none")


def test_pip_s_wheel_is_unpacked_from_debian_s_package_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt(tmp_path, monkeypatch, unpacks="usr/share/python-wheels/pip-23.0.1-py3-none-any.whl")
    wheel = pip_wheel.fetch(tmp_path / "cache")
    assert (wheel.name, wheel.read_text()) == ("pip-23.0.1-py3-none-any.whl", "pip\n")
    monkeypatch.setenv("PATH", "")
    assert pip_wheel.fetch(tmp_path / "cache") == wheel


def test_without_pip_and_without_apt_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt(tmp_path, monkeypatch, unpacks="elsewhere/pip.txt")
    with pytest.raises(ConfigError, match="holds no wheel"):
        pip_wheel.fetch(tmp_path / "cache")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="apt-get install python3-venv"):
        pip_wheel.fetch(tmp_path / "cache")
