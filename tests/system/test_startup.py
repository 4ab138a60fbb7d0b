"""What a command loads before it answers: a library that it has no use for is time that everybody waits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

RUN = "import sys; from kiln.__main__ import main; code = main({words!r}); sys.stderr.write(repr(sorted(sys.modules)))"
LOAD = "import sys; import {module}; sys.stderr.write(repr(sorted(sys.modules)))"
LIST = "GPU 0: NVIDIA A10G (UUID: GPU-5f3c1f0e-2f6b-4f0e-9d0a-0d6b8f1c2a33)\n"


def loaded(code: str, repository: Path, stdin: str = "") -> set[str]:
    """The top modules that a new interpreter has loaded at the end."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=repository, input=stdin, capture_output=True, text=True, timeout=60, check=True)
    modules: list[str] = eval(done.stderr)
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (["--help"], {"pydantic", "rich", "jinja2", "yaml", "paramiko", "pulumi", "sandbox", "validation"}),
        (["explain", "-"], {"rich", "jinja2", "paramiko", "pulumi", "sandbox"}),
        (["validate", "--help"], {"jinja2", "pulumi", "sandbox"}),
        (["report", "--help"], {"jinja2", "paramiko", "pulumi", "sandbox"}),
    ],
    ids=["help", "explain", "validate", "report"],
)
def test_a_command_loads_what_it_needs(repository: Path, words: list[str], without: set[str]) -> None:
    found = loaded(RUN.format(words=words), repository, LIST)
    assert "kiln" in found
    assert found & without == set()


def test_the_provider_of_the_gate_loads_no_ssh_before_it_judges(repository: Path) -> None:
    found = loaded(LOAD.format(module="plugins.kiln.server"), repository)
    assert "plugins" in found
    assert found & {"paramiko", "fabric", "rich", "jinja2"} == set()
