"""Whole runs over a real OpenSSH daemon: MaxStartups, a cancel in the middle, hosts that are dead in different ways."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from profiles.expectation import expect
from validation.runner import Options, Target, validate
from validation.verdict import Verdict
from validation.waiting import Budgets

pytestmark = pytest.mark.system

SENTRY_S = 60.0


def target(sshd: Any, name: str, **changes: Any) -> Target:
    fields = {
        "name": name,
        "address": sshd.address,
        "user": "root",
        "private_key": sshd.private_key,
        "host_key": sshd.host_key,
        "expectation": expect("p5.48xlarge"),
        "port": sshd.port,
    }
    return Target(**{**fields, **changes})


def run(*targets: Target, options: Options, cancel: threading.Event | None = None) -> Any:
    said: list[tuple[str, str, str]] = []
    report = validate(targets, options, progress=lambda *what: said.append(what), cancel=cancel or threading.Event())
    return report, said


def test_connections_dropped_by_max_startups_are_tried_again(start_sshd: Callable[..., Any]) -> None:
    sshd = start_sshd("MaxStartups 1:100:1")
    names = [f"n{number}" for number in range(8)]
    report, _ = run(*(target(sshd, name) for name in names), options=Options(deadline_s=SENTRY_S))
    checks = {finding.check for host in report.hosts for finding in host.findings}
    assert "host.reachable" not in checks
    assert "drop connection" in sshd.log.read_text()


def test_hosts_that_are_dead_in_different_ways_delay_no_other(
    start_sshd: Callable[..., Any], closed_port: int, key_pair: Callable[[], Any]
) -> None:
    sshd = start_sshd()
    other, third = start_sshd(), start_sshd()  # newer daemons punish an address for failures, all its connections
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never greets
        silent_port = silent.getsockname()[1]
        budgets = Budgets(reachable_s=6.0, authenticated_s=2.0, host_key_s=1.0)
        report, said = run(
            target(sshd, "refused", port=closed_port),
            target(sshd, "silent", port=silent_port),
            target(other, "impostor", host_key=key_pair().public),
            target(third, "stranger", private_key=key_pair().private),
            target(sshd, "unnamed", address="host.invalid"),
            target(sshd, "alive"),
            options=Options(deadline_s=SENTRY_S, concurrency=1, budgets=budgets),
        )
    hosts = {host.host: host for host in report.hosts}
    assert hosts["alive"].duration_s < hosts["silent"].duration_s
    assert hosts["alive"].findings[0].check == "host.identity"
    assert hosts["alive"].findings[0].verdict is Verdict.PASS
    assert "Connection refused" in hosts["refused"].findings[0].message
    assert "no SSH banner" in hosts["silent"].findings[0].message
    assert hosts["impostor"].findings[0].check == "host.identity"
    assert hosts["impostor"].verdict is Verdict.FAIL
    assert "stage 'authenticated'" in hosts["stranger"].findings[0].message
    assert "stage 'reachable'" in hosts["unnamed"].findings[0].message
    assert ("alive", "probe", "gathering evidence") in said


def test_a_cancel_in_the_middle_of_a_probe_is_answered_within_two_seconds(
    start_sshd: Callable[..., Any], tmp_path: Any
) -> None:
    slow = tmp_path / "slow"
    slow.write_text(
        '#!/bin/sh\ncase "$SSH_ORIGINAL_COMMAND" in *collect*) sleep 30 ;; esac\neval "$SSH_ORIGINAL_COMMAND"\n'
    )
    slow.chmod(0o755)
    sshd = start_sshd(f"ForceCommand {slow}")
    cancel = threading.Event()
    threading.Timer(1.0, cancel.set).start()
    begun = time.monotonic()
    report, _ = run(target(sshd, "a"), options=Options(deadline_s=SENTRY_S), cancel=cancel)
    assert time.monotonic() - begun < 3.0
    assert report.verdict is Verdict.UNKNOWN
    assert "cancelled" in report.hosts[0].findings[0].message or "interrupted" in report.hosts[0].findings[0].message
