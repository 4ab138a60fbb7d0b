"""The host around the GPUs: rows for pass, trouble, not applicable and what could not be looked at, with exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.host_state import ClockHeld, Dimms, DiskSpace, HostMemory, Nouveau, StuckProcesses
from validation.facts.host_state import Clock, Filesystem, Filesystems, HostState, MemoryController, Mount, Processes
from validation.facts.missing import Missing, Reason
from validation.judge import judge_facts
from validation.verdict import Verdict

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

GONE = ["UNKNOWN host: could not look: tool: not found"]
GIB = 2**20  # in KiB
ROOT = Filesystem("/", 100 * GIB, 60 * GIB)


def disks(*rows: Filesystem) -> Callable[[Host], Host]:
    return lambda h: h.put(Filesystems(rows))


def mounted(target: str, kind: str, *, read_only: bool = False) -> Callable[[Host], Host]:
    return lambda h: h.state(mounts=(Mount("/", "ext4", read_only=False), Mount(target, kind, read_only)))


ROWS: list[tuple[Any, Callable[[Host], Host], list[str]]] = [
    (HostMemory, lambda h: h, ["PASS host: 1986.6 GiB of 2048 GiB"]),
    (HostMemory, lambda h: h.state(memory_kib=1843 * GIB), ["WARN host: 1843.0 GiB of 2048 GiB"]),
    (HostMemory, lambda h: h.state(memory_kib=1024 * GIB), ["FAIL host: 1024.0 GiB of 2048 GiB"]),
    (
        HostMemory,
        lambda h: h.state(memory_kib=64 * GIB, command_line="mem=64G"),
        ["FAIL host: 64.0 GiB of 2048 GiB, and the kernel was started with mem=64G"],
    ),
    (HostMemory, lambda h: h.state(memory_kib=4096 * GIB), ["PASS host: 4096.0 GiB of 2048 GiB"]),
    (HostMemory, lambda h: h.drop(HostState), GONE),
    (Dimms, lambda h: h, ["NOT_APPLICABLE host: the host shows no memory controller, as in a virtual machine"]),
    (
        Dimms,
        lambda h: h.state(controllers=(MemoryController("mc0", 3, 0), MemoryController("mc1", 0, 0))),
        ["PASS host: no uncorrected error on 2 memory controllers, 3 corrected"],
    ),
    (
        Dimms,
        lambda h: h.state(controllers=(MemoryController("mc0", 0, 0), MemoryController("mc1", 9, 2))),
        ["FAIL mc1: 2 uncorrected memory errors since boot"],
    ),
    (
        Dimms,
        lambda h: h.state(
            controllers=(MemoryController("mc0", 0, Missing(Reason.COULD_NOT_LOOK, "<Input/output error>")),)
        ),
        ["UNKNOWN mc0: uncorrected memory errors: could not look (<Input/output error>)"],
    ),
    (DiskSpace, lambda h: h, ["PASS host: 60.0 GiB free on /, no other file system of 1 is full"]),
    (DiskSpace, disks(Filesystem("/", 100 * GIB, 4 * GIB)), ["WARN host: / is 96% full, 4096 MiB are free"]),
    (DiskSpace, disks(Filesystem("/", 100 * GIB, -12)), ["FAIL host: / is 100% full, 0 MiB are free"]),
    (
        DiskSpace,
        disks(ROOT, Filesystem("/var/log", 8 * GIB, 1024)),
        ["FAIL host: /var/log is 100% full, 1 MiB are free"],
    ),
    (
        DiskSpace,
        lambda h: mounted("/data", "xfs")(disks(ROOT, Filesystem("/data", 900 * GIB, 0))(h)),
        ["WARN host: /data is 100% full, 0 MiB are free"],
    ),
    (
        DiskSpace,
        lambda h: mounted("/snap/core", "squashfs", read_only=True)(disks(ROOT, Filesystem("/snap/core", 64000, 0))(h)),
        ["PASS host: 60.0 GiB free on /, no other file system of 1 is full"],
    ),
    (
        DiskSpace,
        lambda h: h.state(mounts=(Mount("/", "ext4", read_only=True),)).put(Filesystems((ROOT,))),
        ["WARN host: mounted read-only: /; by design on images such as Bottlerocket"],
    ),
    (DiskSpace, disks(Filesystem("/data", GIB, GIB)), ["UNKNOWN host: df does not show the root file system"]),
    (StuckProcesses, lambda h: h, ["PASS host: none of 312 processes is stuck, 0 wait to be collected"]),
    (
        StuckProcesses,
        lambda h: h.put(Processes(320, 3, ((4242, "nvidia-smi"), (4300, "ls")))),
        ["WARN host: in uninterruptible sleep: nvidia-smi (4242), ls (4300)"],
    ),
    (StuckProcesses, lambda h: h.put(Processes(1500, 1200)), ["WARN host: 1200 of 1500 processes are zombies"]),
    (StuckProcesses, lambda h: h.drop(Processes), GONE),
    (ClockHeld, lambda h: h, ["PASS host: the clock is synchronised"]),
    (ClockHeld, lambda h: h.put(Clock(synchronised=False)), ["WARN host: the clock is held by no time source"]),
    (ClockHeld, lambda h: h.drop(Clock), GONE),
    (Nouveau, lambda h: h, ["PASS host: nouveau is not loaded"]),
    (Nouveau, lambda h: h.state(modules=frozenset({"nvidia", "nouveau"})), ["WARN host: nouveau is loaded"]),
    (Nouveau, lambda h: h.drop(HostState), GONE),
]


@pytest.mark.parametrize(("check", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host("p5.48xlarge")).says(check()) == said


def test_a_type_whose_memory_no_source_tells_is_not_judged_by_it(host: Callable[..., Host]) -> None:
    unknown = host("p5.48xlarge")
    unknown.expecting(profile=unknown.profile.model_copy(update={"memory_gib": None}))
    assert unknown.says(HostMemory())[0].startswith("NOT_APPLICABLE host: 1986.6 GiB; no source tells")


@pytest.mark.parametrize(("kind", "check"), [(Filesystems, DiskSpace), (Processes, StuckProcesses), (Clock, ClockHeld)])
def test_what_not_every_good_host_tells_closes_no_gate(host: Callable[..., Host], kind: type, check: Any) -> None:
    silent = host("p5.48xlarge").drop(kind)
    findings = judge_facts(silent.facts(), silent.expected, "host", [check()])
    assert [(finding.verdict, finding.required) for finding in findings] == [(Verdict.UNKNOWN, False)]
