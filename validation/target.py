"""What a run is given: the hosts to judge, how to judge them, and what all hosts of one run share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from profiles.models import Expectation
from validation.connection import Endpoint, Remote
from validation.waiting import Budgets

Progress = Callable[[str, str, str], None]


@dataclass(frozen=True)
class Target:
    """A host to judge: where it answers, by which keys, what it must be. ``host_key`` is ``ssh-ed25519 AAAA...``."""

    name: str
    address: str
    user: str
    private_key: str = field(repr=False)
    host_key: str | None
    expectation: Expectation
    port: int = 22
    accept_new: bool = False
    instance_id: str = ""

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.name, self.address, self.user, self.private_key, self.host_key, self.port, self.accept_new)


@dataclass(frozen=True)
class Options:
    """How to judge. Times in seconds; ``deadline_s`` covers everything, waiting and burn-in too.

    ``concurrency`` bounds the hosts that are logged in to at once; four times as many are probed at once, since a probe
    mostly waits for its host, some 30 s where the GPUs start cold. Waiting and burning in is not counted.
    ``collector_limit_s`` caps every collector's own timeout.
    """

    burn_in: str = "none"
    deadline_s: float = 900.0
    concurrency: int = 32
    burn_in_lifetime_s: float = 604800.0
    keep_evidence: Path | None = None
    collector_limit_s: float | None = None
    budgets: Budgets = field(default_factory=Budgets)


@dataclass(frozen=True)
class Surroundings:
    """What all hosts of one run share."""

    options: Options
    remote: Remote
    progress: Progress
    stop: threading.Event  # set on a cancel, and once the report is made: nothing is said any more
    slot: contextlib.AbstractContextManager[object]  # for a login
    probes: contextlib.AbstractContextManager[object]  # for evidence on its way, until it is judged
    deadline: float  # on the monotonic clock
