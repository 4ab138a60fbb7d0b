"""What is on a simulated host's PATH: shell stubs that print prepared answers, the python3 wrapper, a few coreutils.

A stub refuses a call that it has no answer for, so that a probe with a wrong option fails here as it would elsewhere.
"""

from __future__ import annotations

import functools
import shlex
import shutil
import sys
from pathlib import Path
from string import Template
from typing import Literal

from profiles.errors import KilnError
from sandbox.hosts.state import Host

STUBS = Path(__file__).resolve().parent / "templates" / "bin"
COREUTILS = """
    [ awk base64 bash basename cat chmod cp cut date dd dirname echo env expr false find grep head kill ln ls mkdir
    mktemp mv nproc od paste printf pwd readlink realpath rm rmdir sed seq sh sleep sort stat tail tee test timeout
    touch tr true uniq wc
""".split()  # noqa: SIM905 - one word a tool reads better than a column of quotes
Sudo = Literal["stub", "system"]


@functools.cache
def system_python() -> str:
    """The absolute path of the machine's own Python: every user may run it, and no environment stands behind it."""
    for candidate in ("/usr/bin/python3", "/usr/local/bin/python3", f"{sys.base_prefix}/bin/python3", sys.executable):
        if Path(candidate).exists():
            return candidate
    raise KilnError("no python3 on this machine", remedy="apt-get install python3")


def _stub(name: str, names: dict[str, str]) -> str:
    text = (STUBS / f"{name}.sh").read_text(encoding="utf-8")
    prelude = (STUBS / "prelude.sh").read_text(encoding="utf-8")
    return Template(text.replace("#!/bin/sh\n", "#!/bin/sh\n" + prelude, 1)).substitute(names)


def scripts(folder: Path, host: Host, sudo: Sudo) -> dict[str, str]:
    """The stubs by name, for the host in ``folder``."""
    names = {
        "ANSWERS": shlex.quote(str(folder / "answers")),
        "BIN": shlex.quote(str(folder / "bin")),
        "ROOT": shlex.quote(str(folder / "root")),
        "LIB": shlex.quote(str(folder / "lib")),
        "HOME": shlex.quote(str(folder)),
        "MACHINE": shlex.quote(str(folder / "machine.txt")),
        "PYTHON": shlex.quote(system_python()),
        "ID": shlex.quote(shutil.which("id") or "/usr/bin/id"),
        "SUDO": shlex.quote(shutil.which("sudo") or "/usr/bin/sudo"),
    }
    wanted = {path.stem: path.stem for path in STUBS.glob("*.sh") if path.stem not in ("prelude",)}
    found = {name: _stub(source, names) for name, source in wanted.items() if not name.startswith("sudo-")}
    found["sudo"] = _stub(f"sudo-{sudo if host.has_sudo else 'refuses'}", names)
    if not host.has_python:
        del found["python3"]
    if not host.machine.switches:  # the image installs it only where there is something to manage
        del found["nv-fabricmanager"]
    return found


@functools.cache
def coreutils() -> dict[str, str]:
    """Absolute paths of the coreutils that sessions may use, as far as this machine has them."""
    paths = {name: shutil.which(name, path="/usr/bin:/bin:/usr/local/bin") for name in COREUTILS}
    return {name: path for name, path in paths.items() if path}
