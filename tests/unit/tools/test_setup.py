"""The set-up's own parts: long steps that say how they are, and what is refused with a way out."""

from __future__ import annotations

import hashlib
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


def test_a_pip_wheel_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"https://index/simple/pip/": f'<a href="../../files/{pip_wheel.WHEEL}#x">'.encode()}
    monkeypatch.setenv("PIP_INDEX_URL", "https://index/simple/")
    monkeypatch.setattr(pip_wheel, "_get", lambda url: pages.get(url, b"not pip"))
    with pytest.raises(ConfigError, match="another hash"):
        pip_wheel.fetch(tmp_path)
    monkeypatch.setattr(pip_wheel, "SHA256", (hashlib.sha256(b"not pip").hexdigest(),))
    assert pip_wheel.fetch(tmp_path / "new").read_bytes() == b"not pip"
