"""Where the Pulumi CLI is, and the environment to run it in. Finds only; ``tools/setup.py`` builds or installs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from profiles.errors import ConfigError

LANGUAGE_HOST = "pulumi-language-python"


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where ``tools/setup.py`` keeps CLIs: ``$XDG_CACHE_HOME/kiln``, else ``~/.cache/kiln``."""
    root = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "kiln"


def find(environment: Mapping[str, str]) -> Path:
    """The folder of a ``pulumi`` that has a Python language host: on PATH, else in the project's cache.

    Raises ConfigError with the way out where there is none.
    """
    path = environment.get("PATH", "")
    on_path = shutil.which("pulumi", path=path)
    if on_path and (_has_host(Path(on_path).resolve().parent) or shutil.which(LANGUAGE_HOST, path=path)):
        return Path(on_path).parent
    for name in ("pulumi-go", "pulumi"):
        folder = cache_folder(environment) / name / "bin"
        if os.access(folder / "pulumi", os.X_OK) and _has_host(folder):
            return folder
    raise ConfigError(
        "no Pulumi CLI with a Python language host on PATH or in the cache",
        remedy="Run 'make setup', which installs or builds one; or install it as pulumi.com describes.",
    )


def _has_host(folder: Path) -> bool:
    return os.access(folder / LANGUAGE_HOST, os.X_OK)


def pulumi_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for the Pulumi CLI: this interpreter's ``bin`` first on PATH, then the CLI's folder.

    The first matters: the language host and the gate's provider run the first ``python3`` on PATH.
    """
    given = dict(os.environ if environment is None else environment)
    python = str(Path(sys.executable).parent)
    folders = [python, str(find(given)), *given.get("PATH", "").split(os.pathsep)]
    given["PATH"] = os.pathsep.join(dict.fromkeys(folder for folder in folders if folder))
    given.setdefault("PULUMI_SKIP_UPDATE_CHECK", "true")
    return given
