"""The probe runs on Python 3.6 (Alibaba Cloud Linux 3 ships it), with the standard library and pynvml alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from validation import probe

SOURCES = sorted(Path(probe.__file__).parent.glob("*.py"))


def vermin(*paths: str) -> subprocess.CompletedProcess[str]:
    code = "import vermin, sys; sys.exit(vermin.main())"
    command = [sys.executable, "-c", code, "--no-tips", "--violations", "--target=3.6-", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_probe_and_pynvml_keep_to_python_3_6() -> None:
    paths = [str(path) for path in (*SOURCES, Path(pynvml.__file__))]
    result = vermin(*paths)
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
