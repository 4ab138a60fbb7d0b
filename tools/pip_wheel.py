"""pip itself, for a Python that comes without it: Debian keeps the wheel in a package of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from profiles.errors import ConfigError

INSTALLED = Path("/usr/share/python-wheels")
PACKAGE = "python3-pip-whl"
_TIMEOUT_S = 120
_REMEDY = "Install it by hand, as root: apt-get update && apt-get install python3-venv"


def fetch(folder: Path) -> Path:
    """The wheel: installed, else one that was fetched into ``folder`` before, else fetched by apt, which checks it.

    Needs no root: apt downloads for any user, and the package is only unpacked.

    Raises:
        ConfigError: apt is not there or does not have it; with the way out.
    """
    for place in (INSTALLED, folder):
        found = sorted(place.glob("pip-*.whl"))
        if found:
            return found[-1]
    with tempfile.TemporaryDirectory(prefix="kiln-pip-") as name:
        temporary = Path(name)
        _run(["apt-get", "download", PACKAGE], temporary)
        for package in temporary.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(temporary)], temporary)
        wheels = sorted(temporary.glob("usr/share/python-wheels/pip-*.whl"))
        if not wheels:
            raise ConfigError(f"{PACKAGE} holds no wheel of pip", remedy=_REMEDY)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheels[-1], folder))


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(
            f"this Python comes without pip, and {command[0]} cannot fetch it: {error}", remedy=_REMEDY
        ) from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ConfigError(f"this Python comes without pip, and {' '.join(command[:2])} failed: {said}", remedy=_REMEDY)
