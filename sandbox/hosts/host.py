"""One simulated host as a directory: ``bin`` is its PATH, ``root`` its files, ``lib`` its stub libraries.

The directory serves the embedded SSH server and a real ``sshd`` alike: ``python3`` on its PATH sets ``KILN_ROOT``,
``LD_LIBRARY_PATH`` and ``KILN_STUB_MACHINE`` and becomes the machine's own Python, under ``sudo`` too (secure_path).
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from profiles.errors import ConfigError
from sandbox.hosts.faults import FAULTS, fault
from sandbox.hosts.render import render
from sandbox.hosts.state import Host, Identity, healthy
from sandbox.hosts.tools import Sudo, coreutils, scripts
from sandbox.native.build import libraries

Listener = Callable[[], None]
EXECUTABLE, PLAIN = 0o755, 0o644


class SimulatedHost:
    """A host that can be made faulty by name, and whole again. Safe to call from several threads."""

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        faults: tuple[str, ...] = (),
        scars: tuple[str, ...] = (),
        *,
        sudo: Sudo = "stub",
    ) -> None:
        self.folder = folder
        self.identity = identity
        self.faults = faults
        self.scars = scars  # faults that a reboot has cured, but for what they leave
        self.sudo: Sudo = sudo
        self.state = _state(identity, faults, scars)
        self._lock = threading.RLock()
        self._listeners: dict[object, Listener] = {}
        self._written: dict[str, tuple[bytes, int]] = {}

    @classmethod
    def create(
        cls,
        home: Path,
        host_id: str,
        name: str,
        instance_type: str,
        *,
        efa_count: int = 0,
        instance_id: str = "",
        boot_id: str | None = None,
        sudo: Sudo = "stub",
    ) -> SimulatedHost:
        """Build ``home/hosts/<host_id>``, replacing what was there.

        Args:
            efa_count: EFA interfaces the stack asked for; the host shows at most what its type has.
            sudo: "stub" answers as sudo would; "system" becomes the machine's own, for a real sshd.

        Raises:
            ConfigError: the sandbox has no such type.
            KilnError: the stub libraries cannot be compiled.
        """
        folder = home.resolve() / "hosts" / host_id
        identity = Identity(
            host_id, name, instance_type, instance_id or f"i-{host_id}", boot_id or str(uuid.uuid4()), efa_count
        )
        host = cls(folder, identity, sudo=sudo)
        if folder.exists():
            shutil.rmtree(folder)
        host._write()
        return host

    @classmethod
    def open(cls, home: Path, host_id: str) -> SimulatedHost:
        """The host that another process built. Raises ConfigError where there is none."""
        folder = home.resolve() / "hosts" / host_id
        try:
            saved = json.loads((folder / "host.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"no simulated host {host_id!r} below {home}: {error}") from error
        identity = Identity(**saved["identity"])
        host = cls(folder, identity, tuple(saved["faults"]), tuple(saved["scars"]), sudo=saved["sudo"])
        host._written = host._files()
        return host

    def inject(self, name: str) -> None:
        """Make the host faulty. Raises ConfigError for an unknown fault, or one that does not fit this machine."""
        fault(name)
        with self._lock:
            if name not in self.faults:
                self._become(self.identity, (*self.faults, name), self.scars)

    def clear(self) -> None:
        """Make the host whole: every injected fault ends, and nothing is left of it."""
        with self._lock:
            self._become(self.identity, (), ())

    def reboot(self) -> None:
        """Boot again: a new boot id, an empty kernel log, and the faults that a reboot cures are gone."""
        with self._lock:
            cured = [name for name in self.faults if FAULTS[name].cured_by_reboot]
            left = tuple(name for name in self.faults if name not in cured)
            scars = (*self.scars, *(name for name in cured if FAULTS[name].leaves))
            self._become(replace(self.identity, boot_id=str(uuid.uuid4())), left, scars)

    def remove(self) -> None:
        """Delete the host's directory."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` after every change, from the thread that made it. Returns how to stop that."""
        token = object()
        self._listeners[token] = listener

        def stop() -> None:
            self._listeners.pop(token, None)

        return stop

    def environment(self, user: str) -> dict[str, str]:
        """The environment of a session: its own PATH and nothing of this process."""
        return {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder),
            "USER": user,
            "LOGNAME": user,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "KILN_STUB_UID": "0" if user == "root" else "1000",
        }

    def _become(self, identity: Identity, faults: tuple[str, ...], scars: tuple[str, ...]) -> None:
        state = _state(identity, faults, scars)  # raises before anything has changed
        self.identity, self.faults, self.scars, self.state = identity, faults, scars, state
        self._write()
        for listener in list(self._listeners.values()):
            listener()

    def _write(self) -> None:
        """Bring the directory up to date, file by file; a session that runs meanwhile sees old or new, never half."""
        wanted = self._files()
        for path in self._written.keys() - wanted.keys():
            (self.folder / path).unlink(missing_ok=True)
        for path, (content, mode) in wanted.items():
            if self._written.get(path) != (content, mode):
                _replace(self.folder / path, content, mode)
        if not self._written:
            self._link()
        self._written = wanted

    def _files(self) -> dict[str, tuple[bytes, int]]:
        rendered = render(self.state)
        files: dict[str, tuple[bytes, int]] = {"machine.txt": (rendered.machine.encode(), PLAIN)}
        for name, answer in rendered.answers.items():
            files[f"answers/{name}"] = (answer.stdout.encode(), PLAIN)
            if answer.stderr:
                files[f"answers/{name}.stderr"] = (answer.stderr.encode(), PLAIN)
            if answer.rc:
                files[f"answers/{name}.rc"] = (f"{answer.rc}\n".encode(), PLAIN)
        if self.state.smi_hangs:
            files["answers/nvidia-smi/.hangs"] = (b"", PLAIN)
        for name, content in rendered.root.items():
            files[f"root/{name}"] = (content.encode() if isinstance(content, str) else content, PLAIN)
        for name, text in scripts(self.folder, self.state, self.sudo).items():
            files[f"bin/{name}"] = (text.encode(), EXECUTABLE)
        saved = {
            "identity": asdict(self.identity),
            "faults": list(self.faults),
            "scars": list(self.scars),
            "sudo": self.sudo,
        }
        files["host.json"] = (json.dumps(saved, indent=1).encode(), PLAIN)
        return files

    def _link(self) -> None:
        """The parts that no fault changes: coreutils as links, stub libraries as copies that every user can read."""
        for name, target in coreutils().items():
            link = self.folder / "bin" / name
            if not link.exists():
                link.symlink_to(target)
        library = self.folder / "lib"
        library.mkdir(exist_ok=True)
        for soname, source in libraries().items():
            shutil.copyfile(source, library / soname)


def _state(identity: Identity, faults: tuple[str, ...], scars: tuple[str, ...]) -> Host:
    state = healthy(identity)
    for name in scars:
        leaves = fault(name).leaves
        if leaves:
            leaves(state)
    for name in faults:
        fault(name).apply(state)
    return state


def _replace(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    draft.write_bytes(content)
    os.chmod(draft, mode)  # noqa: PTH101 - one call fewer than through Path
    draft.replace(path)
