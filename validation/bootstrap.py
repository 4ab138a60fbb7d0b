"""The probe as one zip, and the command line that runs it on a host from the connection's own input.

Nothing is written to the host: the zip arrives on standard input and runs from memory. It holds validation/probe and
what that uses of the installed, locked ``pynvml``; it is built once per process, always to the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import re
import shlex
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

from profiles.errors import ConfigError
from validation.excerpt import excerpt, words

EPOCH = (2020, 1, 1, 0, 0, 0)  # a fixed date in the archive, so that equal content is an equal digest

# Runs with -I (nothing of the caller's environment or directory is imported as root) and -S (no site: faster).
# No quotes of the shell's and no "!" in it.
BOOTSTRAP = """\
import os, sys
n = int(sys.argv[1])
b = bytearray()
while len(b) < n:
    c = os.read(0, n - len(b))
    if not c:
        sys.exit("kiln: the probe did not arrive whole")
    b += c
try:
    f = os.memfd_create("kiln")
except (AttributeError, OSError):
    import tempfile
    t = tempfile.TemporaryFile()
    f = t.fileno()
with open(f, "wb", closefd=False) as h:
    h.write(b)
sys.path.insert(0, "/proc/self/fd/%d" % f)
from validation.probe.main import main
main(bytes(b), sys.argv[2:])
"""

NO_PYTHON = "kiln: no python3"
NO_SUDO = "kiln: no sudo"
PYTHONS = ("python3", "/usr/libexec/platform-python")

# $1 is the bootstrap on one line, then its arguments. Shell built-ins only: the session's PATH may hold very little.
SCRIPT = """\
LC_ALL=C; export LC_ALL
bootstrap=$(printf %b "$1"); shift
{check}for p in {pythons}; do
if command -v "$p" >/dev/null 2>&1; then exec {sudo}"$p" -I -S -c "$bootstrap" "$@"; fi
done
echo "{no_python}" >&2
exit 127"""
ONE_LINE = str.maketrans({"\n": "\\0012", "!": "\\0041", "\\": "\\0134"})  # for printf %b
SUDO_CHECK = f'if ! command -v sudo >/dev/null 2>&1; then echo "{NO_SUDO}" >&2; exit 127; fi\n'
_BUILDING = threading.Lock()


def archive() -> bytes:
    """The zip. Raises ConfigError where nvidia-ml-py is not installed."""
    with _BUILDING:  # many hosts ask at the same moment
        return build()


@functools.cache
def build() -> bytes:
    """The zip, for one caller at a time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name, source in sorted(sources().items()):
            target.writestr(zipfile.ZipInfo(name, EPOCH), source, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def sources() -> dict[str, str]:
    """The modules of the zip by their path in it. Raises ConfigError as :func:`archive` does."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise ConfigError("nvidia-ml-py is not installed", remedy="install Kiln's locked requirements: make setup")
    paths = (Path(__file__).parent / "probe").glob("*.py")
    probe = {f"validation/probe/{path.name}": path.read_text(encoding="utf-8") for path in paths}
    library = Path(spec.origin).read_text(encoding="utf-8")
    # pynvml finds its errors by the beginning of their names.
    used = words("\n".join(probe.values())).union(re.findall(r"NVML_ERROR_\w+", library))
    return {**probe, "validation/__init__.py": "", "pynvml.py": excerpt(library, used)}


@functools.cache
def digest() -> str:
    """What the probe that ran must report as its own digest."""
    return hashlib.sha256(archive()).hexdigest()


def command(user: str, arguments: Sequence[str]) -> str:
    """The command line for a host: ``python3 -c BOOTSTRAP``, under ``sudo -n`` unless the user is root."""
    root = user == "root"
    script = SCRIPT.format(
        check="" if root else SUDO_CHECK,
        pythons=" ".join(PYTHONS),
        sudo="" if root else "sudo -n ",
        no_python=NO_PYTHON,
    )
    return shell(script, BOOTSTRAP.translate(ONE_LINE), str(len(archive())), *arguments)


def shell(script: str, *arguments: str) -> str:
    """A command line that runs a script in /bin/sh, whatever the login shell: a csh too, where no quotes hold a line
    break and "!" means an earlier command, and a fish, where a backslash in quotes may be one more quote.
    """
    return shlex.join(["exec", "/bin/sh", "-c", 'eval "$(printf %b "$0")"', script.translate(ONE_LINE), *arguments])
