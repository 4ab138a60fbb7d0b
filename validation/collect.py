"""Runs the probe on a connected host and brings its evidence home. One exec; ends at the end marker, not at EOF."""

from __future__ import annotations

import datetime as dt
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from profiles.errors import HostError
from validation import bootstrap
from validation.connection import CommandResult, Connection, Ending, Endpoint
from validation.evidence import Bundle
from validation.transcript import Transcript

COLLECT_S = 90.0  # the slowest collector (45 s), started again by its second way, and the transfer
BURN_IN_S = 300.0
CLOCK_S = 300.0  # AWS refuses a signed request whose time is further off (IAM user guide, Signature Version 4)
SUDO_REFUSALS = ("password is required", "a terminal is required", "must have a tty", "sudoers", "not allowed to")
NO_PYTHON_WORDS = ("python3: command not found", "python3: not found", "platform-python: command not found")

OnProgress = Callable[[Mapping[str, Any]], None]


def collect(
    connection: Connection,
    endpoint: Endpoint,
    *,
    timeout_s: float = COLLECT_S,
    limit_s: float | None = None,
    cancel: threading.Event | None = None,
    on_progress: OnProgress | None = None,
) -> Bundle:
    """All passive evidence of a host. ``limit_s`` caps every collector's own timeout.

    Raises HostError (stage ``probe``) where the probe did not start; a bundle that is not complete says so itself.
    """
    arguments = [] if limit_s is None else [f"{limit_s:g}"]
    return _run(connection, endpoint, "collect", arguments, timeout_s, cancel, on_progress)


def burn_in(
    connection: Connection,
    endpoint: Endpoint,
    level: str,
    *,
    timeout_s: float | None = None,
    cancel: threading.Event | None = None,
    on_progress: OnProgress | None = None,
) -> Bundle:
    """A bundle with the one item ``burn-in``. Raises HostError where it did not start."""
    limit_s = BURN_IN_S if timeout_s is None else timeout_s
    return _run(connection, endpoint, "burn-in", [level], limit_s, cancel, on_progress)


def _run(
    connection: Connection,
    endpoint: Endpoint,
    mode: str,
    arguments: Sequence[str],
    timeout_s: float,
    cancel: threading.Event | None,
    on_progress: OnProgress | None,
) -> Bundle:
    nonce = secrets.token_hex(8)
    transcript = Transcript(nonce, on_progress=on_progress)
    begun = dt.datetime.now(dt.timezone.utc)
    result = connection.execute(
        bootstrap.command(endpoint.user, [mode, nonce, *arguments]),
        stdin=bootstrap.archive(),
        timeout_s=timeout_s,
        on_stdout=transcript.feed,
        cancel=cancel,
    )
    if not transcript.started and result.ending is not Ending.LOST:
        raise not_started(endpoint, result)
    bundle = transcript.bundle(endpoint.name)
    if bundle.probe != bootstrap.digest():
        bundle = replace(bundle, complete=False, notes=(*bundle.notes, "another probe answered than the one sent"))
    if bundle.complete:
        bundle = replace(bundle, notes=(*bundle.notes, *_clock(bundle.started, begun)))
    else:
        how = f"the probe's run: {_how(result)}"
        bundle = replace(bundle, notes=(*bundle.notes, how))
    return bundle


def _clock(started: str, begun: dt.datetime) -> tuple[str, ...]:
    """What is wrong with the host's clock, by this machine's; nothing where it lies within the run, give or take."""
    try:
        theirs = dt.datetime.strptime(started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.timezone.utc)
    except ValueError:
        return (f"the host's clock cannot be read: {started[:40]!r}",)
    now = dt.datetime.now(dt.timezone.utc)
    off_s = max((begun - theirs).total_seconds(), (theirs - now).total_seconds())
    if off_s <= CLOCK_S:
        return ()
    word = "behind" if theirs < begun else "ahead of"
    return (f"the host's clock is {off_s:.0f} s {word} this machine's: set the one that is wrong",)


def not_started(endpoint: Endpoint, result: CommandResult) -> HostError:
    """Why there was no start marker, and the way out: no python3, no sudo, or the host's last words."""
    said = f"{result.stderr}\n{result.stdout}"
    if bootstrap.NO_PYTHON in said or any(words in said for words in NO_PYTHON_WORDS):
        return HostError(
            endpoint.name,
            "probe",
            "no python3 on the host's PATH, and no /usr/libexec/platform-python",
            remedy="Install python3 (3.6 or newer) on the image: the probe needs nothing else.",
        )
    if bootstrap.NO_SUDO in said or any(words in said for words in SUDO_REFUSALS):
        return HostError(
            endpoint.name,
            "probe",
            f"sudo refused user {endpoint.user}: {_last_line(result)}",
            remedy=f"Give {endpoint.user} sudo without a password (NOPASSWD), or log in as root: "
            "the kernel log and the DMI data are root's.",
        )
    return HostError(
        endpoint.name,
        "probe",
        f"the probe did not start: {_how(result)}",
        remedy="Log in as this user and run python3 by hand; a login shell that prints or exits must let it through.",
    )


def _how(result: CommandResult) -> str:
    ending = f"exit status {result.rc}" if result.ending is Ending.EXITED else result.ending.value
    last = _last_line(result)
    return f"{ending} after {result.duration_s:.1f} s" + (f"; last words: {last}" if last else "")


def _last_line(result: CommandResult) -> str:
    """The last line on stderr, else on stdout where that is no line of the probe."""
    for stream in (result.stderr, result.stdout):
        lines = [line.strip() for line in stream.splitlines() if line.strip() and '"kiln":' not in line]
        if lines:
            return lines[-1][:300]
    return ""
