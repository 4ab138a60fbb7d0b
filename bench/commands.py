"""How long the command line takes to answer, as whole processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from bench.clock import Taken, taken
from profiles.errors import KilnError

COMMANDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "kiln --help": (("--help",), ""),
    "kiln explain": (("explain", "-"), "GPU 0: NVIDIA A10G (UUID: GPU-5f3c1f0e-2f6b-4f0e-9d0a-0d6b8f1c2a33)\n"),
    "kiln validate --help": (("validate", "--help"), ""),
}


def run(name: str) -> Taken:
    """One run. Raises KilnError where it does not end with 0."""
    words, stdin = COMMANDS[name]
    with taken() as took:
        command = [sys.executable, "-m", "kiln", *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KilnError(f"{name} ended with {done.returncode}: {done.stderr}")
    return took
