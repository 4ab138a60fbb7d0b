"""The file in which bad units are remembered. Written whole or not at all, by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from profiles.errors import LookError, ParseError
from validation import units
from validation.units import BadUnit

LOCK_S = 5.0  # a change takes milliseconds; whoever holds the lock longer is stuck
NEW_MODE = 0o644
OFF = "none"
REPAIR = "Mend or remove the file; without it nothing is known to be bad."


@dataclass(frozen=True)
class UnitFile:
    """The memory at ``path``. A file that is not there is an empty memory; one that cannot be read is a LookError."""

    path: Path

    def read(self) -> tuple[BadUnit, ...]:
        """Raises LookError naming the file where it is there and cannot be read whole."""
        try:
            return units.parse(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise LookError(f"{self.path}: cannot be read: {error}", remedy=REPAIR) from error
        except ParseError as error:
            raise LookError(f"{self.path}: {error.reason}", remedy=REPAIR) from error

    def change(self, how: Callable[[Sequence[BadUnit]], tuple[BadUnit, ...]]) -> tuple[BadUnit, ...]:
        """Read, change and write under a lock; what is there now. Raises LookError where any of it cannot be done."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked():
                before = self.read()
                after = how(before)
                if after != before:
                    self._write(units.dump(after))
                return after
        except OSError as error:
            raise LookError(f"{self.path}: cannot be written: {error}", remedy="Give a folder to write to.") from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """A lock file of its own: the memory itself is replaced, and a lock on it would be on the old one."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with lock.open("a", encoding="utf-8") as handle:
            end = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise LookError(f"{lock}: held by another process for {LOCK_S:.0f} s") from None
                    time.sleep(0.05)
            yield

    def _write(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            # A memory that several users share stays readable for them; mkstemp's own mode would lock them out.
            temporary.chmod(self.path.stat().st_mode & 0o777 if self.path.exists() else NEW_MODE)
            temporary.replace(self.path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def default_path(environment: Mapping[str, str]) -> Path:
    """``${XDG_STATE_HOME:-~/.local/state}/kiln/bad-units.json``."""
    home = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "kiln" / "bad-units.json"


def of_setting(setting: str, environment: Mapping[str, str]) -> UnitFile | None:
    """The memory of a stack: ``none`` is no memory, a path is that file.

    Empty: beside the state where the backend is a folder that ``PULUMI_BACKEND_URL`` names (``file://``), else the
    user's own file. Backends in the cloud (s3, gs, azblob, Pulumi's service) hold no memory: there, name a shared path.
    """
    if setting == OFF:
        return None
    if setting:
        return UnitFile(Path(setting).expanduser())
    url = urlparse(environment.get("PULUMI_BACKEND_URL", ""))
    if url.scheme == "file":
        folder = Path(unquote(url.netloc + url.path)).expanduser()
        return UnitFile(folder / ".kiln" / "bad-units.json")
    return UnitFile(default_path(environment))
