"""Healthy hosts of every simulated type pass over real SSH with their pins; hosts that differ are no good stack."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import asyncssh
import pytest

from profiles.expectation import expect
from profiles.models import SoftwareProfile
from sandbox.hosts.description import machine, types
from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.server import serve
from validation.report.model import StackReport
from validation.runner import Options, Target, validate
from validation.verdict import Verdict

pytestmark = pytest.mark.system

# name, instance type, fault
Wanted = tuple[str, str, str]


def pins(instance_type: str) -> SoftwareProfile:
    """Every version that the machine's image carries, pinned."""
    software = machine(instance_type).software
    names = ("driver", "kernel_module", "efa_installer", "aws_ofi_nccl", "nccl", "dcgm", "container_toolkit", "kernel")
    return SoftwareProfile(name="all", cuda=software.toolkit[:4], **{name: getattr(software, name) for name in names})


def judged(home: Path, wanted: Sequence[Wanted], *, pinned: bool) -> StackReport:
    return asyncio.run(_judged(home, wanted, pinned=pinned))


async def _judged(home: Path, wanted: Sequence[Wanted], *, pinned: bool) -> StackReport:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    login, key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    handles, targets = [], []
    for number, (name, kind, fault) in enumerate(wanted, start=1):
        efa = machine(kind).efa
        count = len(efa.addresses) if efa else 0
        host = SimulatedHost.create(home, name, name, kind, efa_count=count, instance_id=f"i-{number:017x}")
        if fault:
            host.inject(fault)
        address = f"127.64.9.{number}"
        public = login.export_public_key().decode()
        handles.append(await serve(host, address, port, key.export_private_key().decode(), [public]))
        software = pins(kind) if pinned else SoftwareProfile(name="unpinned")
        expected = expect(kind, efa_count=count, software=software, root=str(host.folder / "root"))
        line, private = key.export_public_key().decode().strip(), login.export_private_key().decode()
        identity = host.identity.instance_id
        targets.append(Target(name, address, "ubuntu", private, line, expected, port, instance_id=identity))
    try:
        return await asyncio.to_thread(
            validate, targets, Options(deadline_s=90), progress=lambda *_: None, cancel=threading.Event()
        )
    finally:
        for handle in handles:
            await handle.close()


def test_a_healthy_host_of_every_type_passes_with_every_version_pinned(tmp_path: Path) -> None:
    report = judged(tmp_path, [(name.replace(".", "-"), name, "") for name in types()], pinned=True)
    trouble = [
        (host.host, finding.check, finding.verdict.value, finding.message)
        for host in report.hosts
        for finding in host.findings
        if finding.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)
    ]
    assert trouble == []
    assert report.verdict is Verdict.PASS
    assert report.findings == ()  # one host of each type: nothing to compare
    by_check = {finding.check: finding.verdict for finding in report.hosts[-1].findings}
    for check in ("fabric.manager_version", "efa.installer", "efa.nccl_plugin", "efa.stack", "nvlink.errors"):
        assert by_check[check] is Verdict.PASS, check


def test_good_hosts_with_two_drivers_are_no_good_stack(tmp_path: Path) -> None:
    # A V100 host's toolkit runs with the older driver too, so that each host is good by itself.
    kind = "p3.16xlarge"
    wanted = [("gpu-a", kind, ""), ("gpu-b", kind, ""), ("gpu-c", kind, "wrong-driver")]
    report = judged(tmp_path, wanted, pinned=False)
    assert [host.verdict.opens_gate for host in report.hosts] == [True, True, True]
    assert report.verdict is Verdict.FAIL
    found = {finding.check: finding.message for finding in report.findings}
    assert (
        found["stack.driver"] == "the hosts have 2 versions of driver: 580.105.08 on gpu-a, gpu-b; 535.104.05 on gpu-c"
    )


def test_hosts_that_are_alike_are_a_good_stack(tmp_path: Path) -> None:
    report = judged(tmp_path, [("gpu-a", "g6.xlarge", ""), ("gpu-b", "g6.xlarge", "")], pinned=False)
    assert report.verdict is Verdict.PASS
    assert [finding.check for finding in report.findings] == ["stack.uniform"]
