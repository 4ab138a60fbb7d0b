"""Reports to render: a good stack, one with a dead link, one whose host was never reached, and a hostile one."""

from __future__ import annotations

import pytest

from validation.report.model import BurnInRecord, HostReport, Identity, StackReport
from validation.verdict import FaultClass, Finding, Verdict, combine, combine_stack

GOOD = (
    Finding("gpu.count", "gpu-1", Verdict.PASS, "8 GPUs", "8", "8", "profile p5.48xlarge (golden, 2026-03-20)"),
    Finding("nvlink.links_active", "gpu-1/GPU0", Verdict.PASS, "18 of 18 NVLinks active", "18", "18"),
    Finding("efa.count", "gpu-1", Verdict.NOT_APPLICABLE, "the stack asks for no EFA"),
)
LINK_DOWN = Finding(
    check="nvlink.links_active",
    subject="gpu-2/GPU3/link7",
    verdict=Verdict.FAIL,
    message="17 of 18 NVLinks active, link 7 is down",
    measured="17",
    expected="18",
    source="profile p5.48xlarge (golden, 2026-03-20)",
    remedy="Reboot once; if it repeats, replace the host.",
    fault_class=FaultClass.REBOOT_ONCE,
    evidence="nvml",
)
ADVISORY = Finding("gpu.throttle", "gpu-2/GPU1", Verdict.FAIL, "power brake", remedy="Look at it.", required=False)
UNREACHED = Finding(
    "host.reachable", "gpu-3", Verdict.UNKNOWN, "stage 'reachable' not reached; last seen: refused", remedy="Wait."
)


def make_host(name: str, findings: tuple[Finding, ...], *, reached: bool = True) -> HostReport:
    identity = Identity(f"i-{name}", "boot-1", ("GPU-a", "GPU-b"), "580.65.06", "e1", "j1") if reached else None
    burn_in = BurnInRecord(identity, "quick", "2026-05-01T10:00:00Z", "{}") if identity else None
    return HostReport(
        host=name,
        address="127.64.0.1",
        instance_id=f"i-{name}",
        instance_type="p5.48xlarge",
        verdict=combine(findings),
        findings=findings,
        identity=identity,
        burn_in=burn_in,
        duration_s=1.25,
    )


def make_stack(*hosts: HostReport, title: str = "demo", together: tuple[Finding, ...] = ()) -> StackReport:
    verdict = combine_stack((host.verdict for host in hosts), together)
    return StackReport(verdict, hosts, started="2026-05-01T10:00:00Z", duration_s=2.5, title=title, findings=together)


@pytest.fixture
def good() -> StackReport:
    return make_stack(make_host("gpu-1", GOOD))


@pytest.fixture
def faulty() -> StackReport:
    return make_stack(make_host("gpu-1", GOOD), make_host("gpu-2", (GOOD[0], LINK_DOWN, ADVISORY)))


@pytest.fixture
def unreached() -> StackReport:
    return make_stack(make_host("gpu-3", (UNREACHED,), reached=False))


@pytest.fixture
def unlike() -> StackReport:
    """Two good hosts that have two drivers."""
    text = "the hosts have 2 versions of driver: 580.65.06 on gpu-1; 535.104.05 on gpu-2"
    two = Finding("stack.driver", "stack", Verdict.FAIL, text, fault_class=FaultClass.SOFTWARE, remedy="One image.")
    return make_stack(make_host("gpu-1", GOOD), make_host("gpu-2", GOOD), together=(two,))


@pytest.fixture
def empty() -> StackReport:
    return make_stack()


@pytest.fixture
def hostile() -> StackReport:
    """Texts that try to break out of every format at once."""
    evil = '\x1b[31m</td><script>alert(1)</script> "q" | `x` [a](b) \u202e\ud800\x00\n## {{ 7*7 }} &amp; \\ ]]>'
    finding = Finding("gpu.count", f"gpu-1/{evil}", Verdict.FAIL, evil, evil, evil, evil, evil, FaultClass.OPERATOR)
    return make_stack(make_host(f"h{evil}", (finding,)), title=evil)
