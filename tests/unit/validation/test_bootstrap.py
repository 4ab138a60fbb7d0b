"""The zip and the command line."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from validation import bootstrap
from validation.transcript import Transcript
from validation.waiting import READY_COMMAND


def test_the_archive_holds_the_whole_probe_and_pynvml_and_is_always_the_same() -> None:
    names = zipfile.ZipFile(io.BytesIO(bootstrap.archive())).namelist()
    probe = Path(bootstrap.__file__).parent / "probe"
    assert {f"validation/probe/{path.name}" for path in probe.glob("*.py")} < set(names)
    assert "pynvml.py" in names
    first = bootstrap.archive()
    bootstrap.build.cache_clear()
    assert bootstrap.archive() == first


def test_the_archive_is_built_once_for_hosts_that_ask_at_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def slow() -> dict[str, str]:
        built.append(1)
        time.sleep(0.05)
        return {"a.py": ""}

    bootstrap.build.cache_clear()
    monkeypatch.setattr(bootstrap, "sources", slow)
    try:
        with ThreadPoolExecutor(4) as pool:
            archives = list(pool.map(lambda _: bootstrap.archive(), range(4)))
    finally:
        bootstrap.build.cache_clear()
    assert len(set(archives)) == len(built) == 1


def test_root_needs_no_sudo_and_others_use_it_without_a_prompt() -> None:
    assert "sudo" not in bootstrap.command("root", ["collect", "n0"])
    assert "exec sudo -n" in bootstrap.command("ubuntu", ["collect", "n0"])


@pytest.mark.parametrize("name", ["probe", "ready"])
def test_the_command_line_survives_any_login_shell(name: str) -> None:
    """csh: no line break in quotes, no "!"; fish: no backslash before a quote or another backslash in quotes."""
    command = bootstrap.command("ubuntu", ["collect", "n0"]) if name == "probe" else READY_COMMAND
    assert shlex.split(command)[:3] == ["exec", "/bin/sh", "-c"]
    assert "\n" not in command
    assert "!" not in command
    assert not set(re.findall(r"\\(.)", command)) & {"'", "\\"}


def test_a_script_comes_out_of_its_command_line_as_it_went_in() -> None:
    script = 'echo \'!a\' "b\\\\" "$1"\nprintf \'%s\\n\' "it\'s" 100%'
    plain = subprocess.run(["sh", "-c", script, "0", "c d"], capture_output=True, check=True)
    packed = subprocess.run(["sh", "-c", bootstrap.shell(script, "c d")], capture_output=True, check=True)
    assert packed.stdout == plain.stdout
    assert packed.stdout.count(b"\n") == 3


def test_the_command_line_brings_the_probe_to_life() -> None:
    command = ["sh", "-c", bootstrap.command("root", ["collect", "n0", "5"])]
    result = subprocess.run(command, input=bootstrap.archive(), capture_output=True, timeout=30, check=False)
    assert Transcript("n0").feed(result.stdout), result.stderr


def run(stdin: bytes, *arguments: str, before: str = "") -> subprocess.CompletedProcess[bytes]:
    code = before + bootstrap.BOOTSTRAP
    command = [sys.executable, "-I", "-S", "-c", code, str(len(bootstrap.archive())), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=30, check=False)


def test_a_probe_that_did_not_arrive_whole_does_not_run() -> None:
    result = run(bootstrap.archive()[:-1], "collect", "n0")
    assert result.returncode == 1
    assert result.stdout == b""
    assert b"did not arrive whole" in result.stderr


def test_the_probe_runs_from_memory_and_reports_its_own_digest() -> None:
    transcript = Transcript("n0")
    assert transcript.feed(run(bootstrap.archive(), "collect", "n0", "5").stdout)
    bundle = transcript.bundle("node")
    assert bundle.complete
    assert bundle.probe == bootstrap.digest()


@pytest.mark.parametrize("before", ["del os.memfd_create\n", "def no(_): raise OSError\nos.memfd_create = no\n"])
def test_an_older_python_or_kernel_without_memfd_uses_a_file_without_a_name(before: str) -> None:
    result = run(bootstrap.archive(), "collect", "n0", "5", before="import os\n" + before)
    assert Transcript("n0").feed(result.stdout), result.stderr


@pytest.mark.parametrize("arguments", [(), ("collect",), ("dance", "n0"), ("collect", "n0", "soon")])
def test_wrong_arguments_are_one_line_and_never_an_end_marker(arguments: tuple[str, ...]) -> None:
    result = run(bootstrap.archive(), *arguments)
    assert result.returncode == 2
    assert result.stderr.count(b"\n") == 1
    assert b'"event":"end"' not in result.stdout
