"""The stub libraries, compiled on first use and kept in the user's cache by the digest of their sources.

A simulated host needs ``libnvidia-ml.so.1``, ``libcuda.so.1`` and ``libcublas.so.12``: they answer from the host's
``machine.txt`` (see ``machine.h``). They are compiled here because a wheel cannot carry them for every platform.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from profiles.errors import KilnError

SOURCES = Path(__file__).resolve().parent
READER = "machine.c"  # in every library
LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "libnvidia-ml.so.1": (
        "nvml.c",
        "nvml_fields.c",
        "nvml_health.c",
        "nvml_links.c",
        "nvml_mig.c",
        "nvml_smi.c",
        READER,
    ),
    "libcuda.so.1": ("cuda.c", READER),
    "libcublas.so.12": ("cublas.c", READER),
}
# -Bsymbolic: each library holds its own copy of machine.c, and must use that one when several are loaded together.
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-pthread", "-Wl,-Bsymbolic")
LINK = ("-lm", "-ldl")


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/kiln/native``, by default ``~/.cache/kiln/native``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kiln" / "native"


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise KilnError(
        "no C compiler: cc, gcc and clang are not on PATH, and the sandbox compiles its stub libraries on first use",
        remedy="apt-get install gcc libc6-dev, or set CC",
    )


def _digest(sources: Sequence[Path]) -> str:
    """Of everything that decides the library's content: its sources, all headers, the flags, the machine."""
    digest = hashlib.sha256(" ".join((*FLAGS, *LINK, platform.machine())).encode())
    for path in (*sources, *sorted(SOURCES.glob("*.h"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def compile_library(soname: str, sources: Sequence[Path], target: Path) -> None:
    """Compile ``sources`` into the library ``target``. Raises KilnError with the compiler's words."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        draft = Path(folder) / soname
        command = [_compiler(), *FLAGS, f"-Wl,-soname,{soname}", "-o", str(draft), *map(str, sources), *LINK]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired as error:
            raise KilnError(f"compiling {soname} took more than 120 s", remedy="try again") from error
        if done.returncode:
            raise KilnError(
                f"{soname} does not compile: {done.stderr.strip() or done.stdout.strip()}",
                remedy="apt-get install gcc libc6-dev, or set CC to another compiler",
            )
        draft.replace(target)  # whole or not at all, whoever else builds at the same time


@functools.cache
def libraries() -> Mapping[str, Path]:
    """The path of each stub library by its soname, built if it is not in the cache.

    Raises:
        KilnError: no C compiler, or it refuses a source.
    """
    built: dict[str, Path] = {}
    for soname, names in LIBRARIES.items():
        sources = [SOURCES / name for name in names]
        target = cache_folder() / _digest(sources) / soname
        if not target.exists():
            compile_library(soname, sources, target)
        built[soname] = target
    return built
