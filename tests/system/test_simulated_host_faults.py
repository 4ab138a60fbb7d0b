"""Every fault, judged: real SSH, the real probe and burn-in, all hosts at once in one sandbox process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import asyncssh
import pytest

from profiles.expectation import expect
from sandbox.hosts.faults import FAULTS, Fault
from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.server import processes_of, serve
from validation.report.model import HostReport
from validation.runner import Options, Target, validate
from validation.verdict import Verdict

pytestmark = pytest.mark.system

TYPE, EFA_COUNT, DRIVER = "p5.48xlarge", 32, "580"
HEALTHY = "healthy"
BURN_IN = ("corrupt-gemm", "slow-gpu", "no-work", "too-fast", "noisy-shell", HEALTHY)
UNREACHED = ("ssh-refused", "ssh-slow", "cloud-init-running", "wrong-host-key", "no-python", "no-sudo")
PASSIVE = tuple(name for name in FAULTS if name not in (*BURN_IN, *UNREACHED))
GROUPS: tuple[tuple[tuple[str, ...], Options], ...] = (
    (PASSIVE, Options(deadline_s=60, collector_limit_s=4)),
    (BURN_IN, Options(burn_in="quick", deadline_s=120)),
    (UNREACHED, Options(deadline_s=8)),
)


async def judge(home: Path, port: int, names: Sequence[str], options: Options) -> dict[str, HostReport]:
    """The report of one host per fault."""
    login, key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    private, public = login.export_private_key().decode(), login.export_public_key().decode()
    hosts, handles, targets = [], [], []
    for number, name in enumerate(names, start=1):
        host = SimulatedHost.create(home, name, name, TYPE, efa_count=EFA_COUNT, instance_id=f"i-{number:017x}")
        if name != HEALTHY:
            host.inject(name)
        address = f"127.64.8.{number}"
        handles.append(await serve(host, address, port, key.export_private_key().decode(), [public]))
        wanted = expect(
            TYPE,
            efa_count=EFA_COUNT,
            driver=DRIVER,
            root=str(host.folder / "root"),
            burn_in="quick" if names is BURN_IN else "none",
        )
        line = key.export_public_key().decode().strip()
        targets.append(
            Target(name, address, "ubuntu", private, line, wanted, port, instance_id=host.identity.instance_id)
        )
        hosts.append(host)
    try:
        report = await asyncio.to_thread(validate, targets, options, progress=_silent, cancel=threading.Event())
    finally:
        for handle in handles:
            await handle.close()
    assert [processes_of(host) for host in hosts] == [[]] * len(hosts)
    return {host.host: host for host in report.hosts}


def _silent(_host: str, _stage: str, _text: str) -> None:
    """Progress is of no interest here."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, HostReport]:
    found: dict[str, HostReport] = {}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for names, options in GROUPS:
        found.update(asyncio.run(judge(tmp_path_factory.mktemp("hosts"), port, names, options)))
    return found


def test_every_fault_is_in_a_group() -> None:
    assert {name for names, _ in GROUPS for name in names} == {*FAULTS, HEALTHY}


def test_a_host_without_a_fault_passes(reports: Mapping[str, HostReport]) -> None:
    report = reports[HEALTHY]
    assert report.verdict is Verdict.PASS, [finding for finding in report.findings if not finding.verdict.opens_gate]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_closes_the_gate_with_its_check_and_fault_class(
    fault: Fault, reports: Mapping[str, HostReport]
) -> None:
    report = reports[fault.name]
    found = [(finding.check, finding.verdict, finding.fault_class) for finding in report.findings]
    assert report.verdict is fault.verdict, found
    if fault.check and fault.verdict is Verdict.FAIL:
        assert (fault.check, fault.verdict, fault.fault_class) in found
    elif fault.check:
        assert (fault.check, fault.verdict) in [(check, verdict) for check, verdict, _ in found]
