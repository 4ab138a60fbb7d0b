"""Waiting until a host can be judged, stage by stage: reachable, authenticated, cloud-init finished, driver answering.

SSH up is not driver ready: sshd starts before cloud-init ends, and some images install the driver after boot. Every
stage retries with growing, jittered pauses within its own budget and one deadline for all. A driver that answers
wrongly (mismatch, no devices, a hang) has answered: the probe must then name the fault. One that never answers is
probed too, after its budget, with a note.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from profiles.errors import HostError
from validation.bootstrap import shell
from validation.connection import CommandResult, Connection, Ending, Endpoint, Failure, Remote, RemoteError

ATTEMPT_MIN_S = 1.0
ATTEMPT_S = 15.0  # one TCP connection, one banner, one key exchange
CHECK_S = 10.0  # one run of the readiness script; an nvidia-smi that takes longer is the probe's to judge
FIRST_PAUSE_S = 0.5
PAUSE_GROWTH = 1.6
PAUSE_MAX_S = 15.0

# Shell built-ins besides the tools asked for. The module's version file answers without touching a GPU; nvidia-smi is
# asked only where it is missing.
READY_SCRIPT = """\
LC_ALL=C; export LC_ALL
echo "KILN cloud-init"
if command -v cloud-init >/dev/null 2>&1; then
state=$(cloud-init status --format json 2>/dev/null)
case "$state" in *'"status"'*) ;; *) state=$(cloud-init status --long 2>&1) ;; esac
echo "$state"
else echo "KILN absent"; fi
echo "KILN driver"
if [ -e /proc/driver/nvidia/version ]; then echo "KILN loaded"
elif command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi -L 2>&1; echo "KILN rc $?"
else
for file in /sys/bus/pci/devices/*/vendor; do
read vendor 2>/dev/null < "$file" && [ "$vendor" = 0x10de ] && { echo "KILN none yet"; exit 0; }
done
echo "KILN no device"
fi"""

READY_COMMAND = shell(READY_SCRIPT)

NOT_YET = re.compile(
    r"couldn't communicate with the NVIDIA driver|Driver Not Loaded|command not found|libnvidia-ml\.so|Not Ready",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Budgets:
    """Seconds each stage may take, counted from its own beginning.

    ``host_key_s`` is the grace for a first boot that replaces the image's keys; a wrong key is never accepted.
    """

    reachable_s: float = 600.0
    authenticated_s: float = 180.0
    host_key_s: float = 6.0
    cloud_init_s: float = 900.0
    driver_s: float = 120.0


@dataclass(frozen=True)
class Readiness:
    """What the readiness script saw. ``waiting`` is the stage still to be waited for, "" where there is none."""

    waiting: str
    last_seen: str
    note: str = ""


@dataclass(frozen=True)
class Ready:
    """A host to be probed, and what is worth noting about how it came up."""

    connection: Connection
    notes: tuple[str, ...] = ()


Say = Callable[[str, str], None]


def pauses(jitter: Callable[[], float] = random.random) -> Iterator[float]:
    """Seconds between attempts: 0.5 growing by 1.6 up to 15, each cut by up to half so that hosts do not march in step.

    >>> [round(pause, 2) for pause, _ in zip(pauses(lambda: 0.0), range(4))]
    [0.5, 0.8, 1.28, 2.05]
    """
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s * (1.0 - 0.5 * jitter())
        pause_s = min(pause_s * PAUSE_GROWTH, PAUSE_MAX_S)


def readiness(output: str) -> Readiness:
    """What the output of READY_SCRIPT means. Pure."""
    _, _, rest = output.partition("KILN cloud-init\n")
    cloud, reached_driver, driver = rest.partition("KILN driver\n")
    status, note = cloud_init_status(cloud)
    if not reached_driver or status in ("running", "not started", "not run"):
        return Readiness("cloud-init", f"cloud-init status: {status}")
    if note:
        note = f"cloud-init status: {status} ({note})"
    words = " ".join(line for line in driver.splitlines() if not line.startswith("KILN ")).strip()
    if "KILN none yet" in driver:
        return Readiness("driver", "an NVIDIA device on the PCI bus, no kernel module and no nvidia-smi", note)
    if NOT_YET.search(words):
        return Readiness("driver", words[:200], note)
    return Readiness("", words[:200] or "the kernel module is loaded", note)


def cloud_init_status(text: str) -> tuple[str, str]:
    """The status word (``running``, ``done``, ``absent``, ...) and what is worth noting: errors it finished with."""
    if "KILN absent" in text:
        return "absent", ""
    with contextlib.suppress(ValueError):
        record = json.loads(text[text.index("{") : text.rindex("}") + 1])
        status = str(record.get("status", "unknown"))
        if str(record.get("extended_status")).endswith("running"):  # "error - running": one stage failed, others run on
            return "running", ""
        errors = "; ".join(str(error) for error in record.get("errors") or ())
        extended = str(record.get("extended_status") or status)
        worth = status == "error" or extended.startswith("degraded")
        return status, (errors or extended)[:300] if worth else ""
    found = re.search(r"^status: *(.+?) *$", text, re.MULTILINE)
    status = found[1] if found else "unknown"
    return status, "see /var/log/cloud-init.log" if status.startswith(("error", "degraded")) else ""


class Waiting:
    """One host's way to readiness. ``slot`` bounds how many hosts do key exchanges at once, not how many wait."""

    def __init__(
        self,
        endpoint: Endpoint,
        remote: Remote,
        *,
        deadline: float,
        say: Say,
        cancel: threading.Event,
        budgets: Budgets,
        slot: contextlib.AbstractContextManager[object],
    ) -> None:
        self._endpoint = endpoint
        self._remote = remote
        self._deadline = deadline
        self._say = say
        self._cancel = cancel
        self._budgets = budgets
        self._slot = slot
        self._lost = pauses()  # over all connections: one that breaks each time must not be tried twice a second
        self.stage = "reachable"
        self.last_seen = "nothing yet"

    def until_ready(self) -> Ready:
        """The host, ready to be probed. Raises HostError naming the stage not reached and what was last seen."""
        while True:
            connection = self._connect()
            try:
                ready = self._settle(connection)
            except BaseException:
                connection.close()
                raise
            if ready is not None:
                return ready
            connection.close()  # lost: cloud-init may have rebooted the host

    def _connect(self) -> Connection:
        begun = {"reachable": time.monotonic()}  # each budget's own clock, by its name
        until = begun["reachable"] + self._budgets.reachable_s
        for pause_s in pauses():
            answer = self._attempt(until)
            if not isinstance(answer, RemoteError):
                return answer
            self._see(answer.stage, answer.last_seen)
            clock, limit_s = self._limit(answer.failure)
            until = begun.setdefault(clock, time.monotonic()) + limit_s
            if not self._pause(pause_s, until):
                raise self._interrupted() if self._cancel.is_set() else answer
        raise AssertionError("pauses never end")

    def _limit(self, failure: Failure) -> tuple[str, float]:
        """Whose clock a failure runs on, and how long: an unpinned key never mends itself, a daemon not yet up does."""
        return {
            Failure.UNPINNED: ("never", 0.0),
            Failure.INCOMPATIBLE: ("never", 0.0),
            Failure.HOST_KEY: ("host key", self._budgets.host_key_s),
            Failure.AUTHENTICATION: ("authenticated", self._budgets.authenticated_s),
        }.get(failure, ("reachable", self._budgets.reachable_s))

    def _attempt(self, until: float) -> Connection | RemoteError:
        left_s = max(ATTEMPT_MIN_S, min(ATTEMPT_S, min(until, self._deadline) - time.monotonic()))
        try:
            door = self._remote.knock(self._endpoint, left_s)
            with self._slot:
                return self._remote.login(self._endpoint, door, left_s)
        except RemoteError as error:
            return error

    def _settle(self, connection: Connection) -> Ready | None:
        """Wait for cloud-init and the driver on a connection; None where the connection was lost."""
        begun: dict[str, float] = {}
        for pause_s in pauses():
            left_s = max(1.0, min(CHECK_S, self._deadline - time.monotonic()))
            result = connection.execute(READY_COMMAND, timeout_s=left_s, cancel=self._cancel)
            if result.ending is Ending.LOST:
                self._see("cloud-init", f"the connection was lost: {result.stderr.strip()[-200:]}")
                if self._pause(next(self._lost), self._deadline):
                    return None
                raise self._given_up()
            seen = _seen(result)
            if not seen.waiting:
                return Ready(connection, (seen.note,) if seen.note else ())
            self._see(seen.waiting, seen.last_seen)
            limit_s = self._budgets.cloud_init_s if seen.waiting == "cloud-init" else self._budgets.driver_s
            since = begun.setdefault(seen.waiting, time.monotonic())
            if not self._pause(pause_s, since + limit_s):
                if seen.waiting == "driver" and not self._cancel.is_set():
                    late = f"the driver did not answer within {limit_s:g} s: {seen.last_seen}"
                    return Ready(connection, tuple(note for note in (seen.note, late) if note))
                raise self._given_up()
        raise AssertionError("pauses never end")

    def _see(self, stage: str, last_seen: str) -> None:
        self.stage, self.last_seen = stage, last_seen
        self._say(stage, last_seen)

    def _pause(self, pause_s: float, until: float) -> bool:
        """Sleep; False where time is up or the run was cancelled."""
        left_s = min(until, self._deadline) - time.monotonic()
        return left_s > 0 and not self._cancel.wait(min(pause_s, left_s))

    def _given_up(self) -> HostError:
        if self._cancel.is_set():
            return self._interrupted()
        return HostError(
            self._endpoint.name,
            self.stage,
            self.last_seen,
            remedy="Look at the host's console output; allow more time if it is still coming up.",
        )

    def _interrupted(self) -> HostError:
        return HostError(self._endpoint.name, self.stage, f"interrupted; before that: {self.last_seen}")


def _seen(result: CommandResult) -> Readiness:
    """What a run of the script saw; a driver tool that hangs has answered, and a script that cannot run is not waited
    for: the probe finds out what is wrong."""
    if result.ending in (Ending.TIMED_OUT, Ending.CANCELLED):
        if "KILN driver\n" not in result.stdout:
            return Readiness("cloud-init", "the readiness check did not return")
        seen = readiness(result.stdout)
        return seen if seen.waiting == "cloud-init" else Readiness("", "nvidia-smi has not returned yet", seen.note)
    if "KILN cloud-init\n" not in result.stdout:
        words = (result.stderr.strip() or result.stdout.strip() or f"exit status {result.rc}")[-200:]
        return Readiness("", words, f"the readiness check could not run: {words}")
    return readiness(result.stdout)
