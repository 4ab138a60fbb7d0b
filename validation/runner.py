"""Judges many hosts at once. A host that is dead, slow or wrong delays and spoils no other.

One thread a host, which mostly sleeps; ``Options.concurrency`` bounds key exchanges and probes. ``validate`` comes
back within a second of a cancel, and at its deadline, whatever the threads do.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import queue
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from validation import host_findings, uniform
from validation.connection import Remote
from validation.host_run import HostRun
from validation.remote import FabricRemote
from validation.report.model import BurnInRecord, HostReport, StackReport
from validation.target import Options, Progress, Surroundings, Target
from validation.verdict import combine_hosts

__all__ = ["Options", "Progress", "Target", "validate"]

PROBES_A_SLOT = 4
FILES_A_HOST = 4
FILES_SPARE = 128  # for everything else this process has open
THREADS_MAX = 1024  # a waiting thread costs some 100 KiB
CANCEL_GRACE_S = 0.8  # the engine wants its answer within 2 s of a cancel
DEADLINE_GRACE_S = 5.0  # for hosts that are summing up
POLL_S = 0.05
COLLECT_AT = 10_000  # new objects; evidence and facts make next to none that only the collector can free


def validate(
    targets: Sequence[Target],
    options: Options,
    *,
    progress: Progress,
    cancel: threading.Event,
    previous: Mapping[str, BurnInRecord] | None = None,
    remote: Remote | None = None,
) -> StackReport:
    """The report of all targets, in their order.

    Never raises for a host: one that could not be looked at is an UNKNOWN ``host.reachable`` that says which stage was
    not reached and what was seen last; one that shows a wrong key is a FAIL ``host.identity``. ``previous`` holds
    burn-in records by host name. ``progress`` is called from the hosts' threads.
    """
    begun = time.monotonic()
    started = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    around = Surroundings(
        options=options,
        remote=remote or FabricRemote(),
        progress=progress,
        stop=threading.Event(),
        slot=threading.BoundedSemaphore(max(1, options.concurrency)),
        probes=threading.BoundedSemaphore(PROBES_A_SLOT * max(1, options.concurrency)),
        deadline=begun + options.deadline_s,
    )
    runs = [HostRun(target, around, (previous or {}).get(target.name)) for target in targets]
    try:
        with _little_garbage():
            reports = host_findings.each_its_own(_all(runs, around, cancel))
    finally:
        around.stop.set()  # whoever still runs ends soon, and says nothing more
    report = StackReport(
        verdict=combine_hosts(report.verdict for report in reports),
        hosts=tuple(reports),
        started=started,
        duration_s=time.monotonic() - begun,
    )
    return uniform.compared(report)


@contextlib.contextmanager
def _little_garbage() -> Iterator[None]:
    """Look for garbage less often: at 700 new objects, as Python does, it takes a tenth of the time of many hosts."""
    first, *others = gc.get_threshold()
    gc.set_threshold(max(first, COLLECT_AT) if first else 0, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def _all(runs: Sequence[HostRun], around: Surroundings, cancel: threading.Event) -> list[HostReport]:
    """Every run's report; for those that have none when time is up or the run is cancelled, one that says so."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, HostReport]] = queue.SimpleQueue()
    for index in range(len(runs)):
        todo.put(index)
    _start(_at_once(len(runs)), lambda: _work(runs, todo, done, around.stop))
    reports: dict[int, HostReport] = {}
    end = around.deadline + DEADLINE_GRACE_S
    while len(reports) < len(runs) and time.monotonic() < end:
        if cancel.is_set() and not around.stop.is_set():
            around.stop.set()
            end = min(end, time.monotonic() + CANCEL_GRACE_S)
        with contextlib.suppress(queue.Empty):
            index, report = done.get(timeout=POLL_S)
            reports[index] = report
    why = "interrupted" if cancel.is_set() else "the deadline has passed"
    return [reports.get(index) or run.unfinished(why) for index, run in enumerate(runs)]


def _at_once(count: int) -> int:
    """How many hosts may be under way at once. Each takes a socket and a pipe; the limit is raised where it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_SPARE + FILES_A_HOST * min(count, THREADS_MAX)
    if soft not in (resource.RLIM_INFINITY, wanted) and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    room = count if soft == resource.RLIM_INFINITY else (soft - FILES_SPARE) // FILES_A_HOST
    return max(1, min(count, THREADS_MAX, room))


def _start(number: int, work: Callable[[], None]) -> None:
    """Up to so many threads: where the system gives fewer, those do the work of all. Raises RuntimeError for none."""
    started = 0
    try:
        while started < number:
            threading.Thread(target=work, daemon=True).start()
            started += 1
    except RuntimeError:
        if not started:
            raise


def _work(
    runs: Sequence[HostRun],
    todo: queue.SimpleQueue[int],
    done: queue.SimpleQueue[tuple[int, HostReport]],
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        try:
            index = todo.get_nowait()
        except queue.Empty:
            return
        done.put((index, runs[index].report()))
