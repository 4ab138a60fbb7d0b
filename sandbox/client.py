"""The sandbox as its users see it: start, stop, hosts, faults, and the environment that points Pulumi at it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from profiles.errors import CloudError, ConfigError
from sandbox.cloud import endpoint as endpoints
from sandbox.cloud.endpoint import ControlClient, Endpoint
from sandbox.cloud.errors import SandboxDownError

REPOSITORY = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
LOG_NAME = "daemon.log"
LOG_TAIL_LINES = 15
REGION = "us-east-1"
_children: dict[int, subprocess.Popen[bytes]] = {}  # daemons that this process started, so that it can collect them


class Sandbox:
    """The sandbox of one home folder. Making the object starts nothing."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = (home or endpoints.default_home()).resolve()

    def start(self, *, idle_hours: float | None = None) -> Endpoint:
        """Where the sandbox answers; one that already runs in this home is used as it is.

        Raises:
            CloudError: it did not come up; the message ends with the last lines of its log.
            ConfigError: its home folder cannot be written.
        """
        running = self._running()
        if running is not None:
            return running
        self._make_home()
        command = [sys.executable, "-m", "sandbox.cloud.daemon", "--home", str(self.home)]
        if idle_hours is not None:
            command += ["--idle-hours", str(idle_hours)]
        environment = {**os.environ, "PYTHONPATH": _python_path(), "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true"}
        with (self.home / LOG_NAME).open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        _children[process.pid] = process
        return self._wait_until_ready(process)

    def _make_home(self) -> None:
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.home / endpoints.FILE_NAME).unlink(missing_ok=True)
            (self.home / LOG_NAME).touch()
        except OSError as error:
            raise ConfigError(
                f"the sandbox's home {self.home} cannot be written: {error.strerror}",
                remedy=f"name another folder with --home or {endpoints.HOME_VARIABLE}",
            ) from error

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> Endpoint:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            running = self._running()
            if running is not None:
                return running
            if process.poll() is not None:
                _children.pop(process.pid)
                raise CloudError(f"the sandbox ended with status {process.returncode} at its start:\n{self._tail()}")
            time.sleep(0.1)
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
        _children.pop(process.pid)
        raise CloudError(f"the sandbox did not answer within {START_TIMEOUT_S:.0f} s:\n{self._tail()}")

    def _tail(self) -> str:
        try:
            text = (self.home / LOG_NAME).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return "(it wrote no log)"
        return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])

    def _running(self) -> Endpoint | None:
        found = endpoints.read(self.home)
        if found is None:
            return None
        try:
            ControlClient(self.home, found, timeout_s=5).get("/status")
        except CloudError:
            return None
        return found

    def stop(self) -> bool:
        """True where a sandbox was running; it is gone afterwards, with every host.

        Raises:
            CloudError: it would not end.
        """
        running = self._running()
        if running is None:
            (self.home / endpoints.FILE_NAME).unlink(missing_ok=True)
            for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
                _collect(pid)
            return False
        _signal(running.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            if not _alive(running.pid):
                _collect(running.pid)
                return True
            time.sleep(0.05)
        raise CloudError(f"the sandbox (pid {running.pid}) did not end within {STOP_TIMEOUT_S:.0f} s")

    def _client(self) -> ControlClient:
        return endpoints.connect(self.home)[1]

    def endpoint(self) -> Endpoint:
        """Where the running sandbox answers.

        Raises:
            SandboxDownError: it does not.
        """
        running = self._running()
        if running is None:
            raise SandboxDownError(str(self.home), "nothing answers")
        return running

    def status(self) -> dict[str, Any]:
        """``running``, and, if so, pid, addresses, and how many instances and hosts there are."""
        running = self._running()
        if running is None:
            return {"running": False, "home": str(self.home)}
        return {
            "running": True,
            "home": str(self.home),
            "pid": running.pid,
            "moto": running.moto,
            "control": running.control,
            "ssh_port": running.ssh_port,
            **self._client().get("/status"),
        }

    def instances(self) -> list[dict[str, Any]]:
        """Every launched instance with what the sandbox keeps of it: interfaces, root volume, placement group."""
        found: list[dict[str, Any]] = self._client().get("/instances")
        return found

    def hosts(self) -> list[dict[str, Any]]:
        """The simulated hosts: name, id, type, address, port, faults."""
        keys = ("name", "id", "instance_type", "address", "public_address", "ssh_port", "faults")
        return [{key: item[key] for key in keys} for item in self.instances() if item["simulated"]]

    def faults(self) -> dict[str, Any]:
        """The names of the faults: ``host`` and ``cloud``."""
        found: dict[str, Any] = self._client().get("/faults")
        return found

    def fault(self, host: str, name: str, *, pending: bool = False) -> bool:
        """Put a fault into a host, by name or instance id. True where it waits for a host of that name.

        Args:
            pending: allow a host that does not exist yet; it gets the fault when it is created.

        Raises:
            ConfigError: unknown host or fault; the message lists the known ones.
        """
        answer = self._client().post(f"/hosts/{quote(host, safe='')}/faults", {"name": name, "pending": pending})
        return bool(answer["pending"])

    def clear(self, host: str) -> None:
        """Take every fault out of a host, or forget those that wait for it."""
        self._client().delete(f"/hosts/{quote(host, safe='')}/faults")

    def reboot(self, host: str) -> None:
        """Boot a host again: same instance, new boot id."""
        self._client().post(f"/hosts/{quote(host, safe='')}/reboot")

    def cloud_fault(self, name: str, host: str = "*", value: float = 0) -> None:
        """Arm a fault of the cloud itself: ``no-capacity``, ``slow-create`` or ``vanish``.

        Raises:
            ConfigError: unknown fault or host.
        """
        self._client().post("/cloud-faults", {"name": name, "host": host, "value": value})

    def clear_cloud_faults(self) -> None:
        """Disarm every fault of the cloud."""
        self._client().delete("/cloud-faults")

    def resources(self) -> dict[str, list[str]]:
        """What exists in the emulated cloud beyond what every new account has, by kind. Empty after a destroy."""
        from sandbox.cloud import inventory  # boto3 takes half a second to import, and most callers do not list

        return inventory.resources(self.home)

    def env(self) -> dict[str, str]:
        """The variables that make Pulumi use this sandbox: on top of ``os.environ``, PATH included."""
        first = [str(REPOSITORY / "sandbox" / "bin"), str(Path(sys.executable).parent)]
        return {
            "PATH": os.pathsep.join([*first, os.environ.get("PATH", os.defpath)]),
            endpoints.HOME_VARIABLE: str(self.home),
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_ENDPOINT_URL": self.endpoint().moto,
            "AWS_EC2_METADATA_DISABLED": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",
        }

    def settings(self) -> dict[str, str]:
        """The stack configuration that a stack in the sandbox needs, without its namespace.

        ``evidenceRoot`` is the folder below which every host's own root lies: what a host says of its root must start
        with it.
        """
        return {
            "sshPort": str(self.endpoint().ssh_port),
            "sshAddress": "private",
            "evidenceRoot": str(self.home / "hosts"),
        }


def _python_path() -> str:
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([str(REPOSITORY), inherited]) if inherited else str(REPOSITORY)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _collect(pid: int) -> None:
    """Take the exit status of a daemon that ended, where it was started here."""
    child = _children.pop(pid, None)
    if child is not None:
        child.wait()


def _alive(pid: int) -> bool:
    """False for a process that ended, also where nobody has collected it yet."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
