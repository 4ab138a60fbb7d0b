"""The probe runs on Python 3.6 (Alibaba Cloud Linux 3 ships it), with the standard library and pynvml alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from validation import bootstrap, probe

SOURCES = sorted(Path(probe.__file__).parent.glob("*.py"))


def vermin(*paths: str) -> subprocess.CompletedProcess[str]:
    code = "import vermin, sys; sys.exit(vermin.main())"
    command = [sys.executable, "-c", code, "--no-tips", "--violations", "--target=3.6-", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_that_is_sent_to_a_host_keeps_to_python_3_6(tmp_path: Path) -> None:
    sent = bootstrap.sources()
    assert {f"validation/probe/{path.name}" for path in SOURCES} < set(sent)
    for name, text in sent.items():
        (tmp_path / name.replace("/", "-")).write_text(text)
    result = vermin(str(tmp_path))
    assert result.returncode == 0, result.stdout


def test_the_check_would_see_newer_syntax(tmp_path: Path) -> None:
    newer = tmp_path / "newer.py"
    newer.write_text("if (n := 1):\n    print(n)\n")
    result = vermin(str(newer))
    assert result.returncode == 1
    assert "3.8" in result.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_the_probe_imports_only_itself_the_standard_library_and_pynvml(path: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(str(node.module).split(".")[0])
            if str(node.module).startswith("validation"):
                assert str(node.module).startswith("validation.probe")
    assert names <= {*sys.stdlib_module_names, "pynvml", "validation"}
    assert "__future__" not in names  # annotations from there need 3.7
