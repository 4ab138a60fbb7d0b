"""A simulated host behind a real OpenSSH daemon, judged whole: as root, and as an ordinary user through real sudo."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiles.expectation import expect
from sandbox.hosts.host import SimulatedHost
from validation.report.model import HostReport
from validation.runner import Options, Target, validate
from validation.verdict import Verdict

pytestmark = pytest.mark.system

INSTANCE_TYPE = "g5.48xlarge"


@pytest.fixture
def simulated(tmp_path: Path) -> SimulatedHost:
    host = SimulatedHost.create(tmp_path, "node", "node", INSTANCE_TYPE, sudo="system")
    for folder in [host.folder, *host.folder.parents]:
        if "pytest" in str(folder):
            folder.chmod(0o755)  # sessions of an ordinary user have to reach it
    return host


@pytest.fixture
def judge(simulated: SimulatedHost, start_sshd: Callable[..., Any]) -> Callable[..., HostReport]:
    """Judges the host as the user given. Every session begins in the host's own PATH, whatever the login shell adds."""
    session = simulated.folder / "session"
    session.write_text(f'#!/bin/sh\nPATH={simulated.folder}/bin; export PATH\neval "$SSH_ORIGINAL_COMMAND"\n')
    session.chmod(0o755)
    sshd = start_sshd(f"ForceCommand {session}")

    def run(user: str, *, root: str = str(simulated.folder / "root"), **how: Any) -> HostReport:
        target = Target(
            "node",
            sshd.address,
            user,
            sshd.private_key,
            sshd.host_key,
            expect(INSTANCE_TYPE, root=root),
            port=sshd.port,
            instance_id=simulated.identity.instance_id,
        )
        options = Options(deadline_s=120.0, burn_in="quick")
        report = validate([target], options, progress=lambda *_: None, cancel=threading.Event(), **how)
        return report.hosts[0]

    return run


def test_root_and_a_user_with_sudo_come_to_the_same_good_verdict(
    simulated: SimulatedHost, judge: Callable[..., HostReport], make_user: Callable[..., str]
) -> None:
    user = make_user(sudo=True, secure_path=f"{simulated.folder}/bin")
    as_root, as_user = judge("root"), judge(user)
    assert as_root.verdict is Verdict.PASS, as_root.findings
    assert as_user.verdict is Verdict.PASS, as_user.findings
    assert as_root.identity == as_user.identity
    assert as_root.identity is not None
    assert as_root.identity.boot_id == simulated.identity.boot_id


def test_a_burn_in_is_reused_until_the_host_boots_again(
    simulated: SimulatedHost, judge: Callable[..., HostReport]
) -> None:
    first = judge("root")
    assert first.burn_in is not None
    assert not first.burn_in_reused
    again = judge("root", previous={"node": first.burn_in})
    assert again.burn_in_reused
    assert again.burn_in == first.burn_in
    simulated.reboot()
    rebooted = judge("root", previous={"node": first.burn_in})
    assert not rebooted.burn_in_reused
    assert rebooted.verdict is Verdict.PASS


def test_a_host_read_below_a_root_that_was_not_expected_is_refused(judge: Callable[..., HostReport]) -> None:
    verdicts = {finding.check: finding.verdict for finding in judge("root", root="/").findings}
    assert verdicts["host.evidence_root"] is Verdict.FAIL
