"""The machine around the GPUs: rows for every verdict, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.machine import Architecture, Cpus, EfaDevices, InstanceStore, KernelRelease
from validation.facts.host import BlockDevice, BlockDevices, HostInfo, NumaMap, RdmaDevice, RdmaDevices
from validation.facts.missing import ABSENT

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


GONE = ["UNKNOWN host: could not look: tool: not found"]


def info(architecture: str = "x86_64", kernel: str = "6.8.0-1044-aws") -> HostInfo:
    return HostInfo("h", "ubuntu", "22.04", kernel, architecture, "b", "i-1", "/")


def cpus(count: int) -> NumaMap:
    return NumaMap({0: frozenset(range(count))}, {(0, 0): 10}, {})


def pinned(h: Host, kernel: str) -> Host:
    return h.expecting(software=h.expected.software.model_copy(update={"name": "mine", "kernel": kernel}))


def disks(*gigabytes: int) -> BlockDevices:
    model = "Amazon EC2 NVMe Instance Storage"
    return BlockDevices(tuple(BlockDevice(f"nvme{n}n1", "disk", gb * 10**9, model) for n, gb in enumerate(gigabytes)))


def efas(count: int, *down: int) -> RdmaDevices:
    states = ["PORT_DOWN" if n in down else "PORT_ACTIVE (4)" for n in range(count)]
    return RdmaDevices(tuple(RdmaDevice(f"rdmap{n}s0", "0x1d0f", state) for n, state in enumerate(states)))


MELLANOX = RdmaDevices((RdmaDevice("mlx5_0", "0x02c9", "PORT_ACTIVE"),))
ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (Architecture, "p5.48xlarge", lambda h: h, ["PASS host: the processor is x86_64"]),
    (Architecture, "g5g.xlarge", lambda h: h.put(info("aarch64")), ["PASS host: the processor is aarch64"]),
    (Architecture, "g5g.xlarge", lambda h: h.put(info()), ["FAIL host: the processor is x86_64"]),
    (Architecture, "g5.xlarge", lambda h: h.put(info("riscv64")), ["UNKNOWN host: the processor is riscv64"]),
    (Architecture, "g5.xlarge", lambda h: h.drop(HostInfo), GONE),
    (Cpus, "p5.48xlarge", lambda h: h, ["PASS host: 192 CPUs"]),
    (Cpus, "p5.48xlarge", lambda h: h.put(cpus(96)), ["WARN host: 96 CPUs"]),
    (Cpus, "p5.48xlarge", lambda h: h.put(cpus(0)), ["UNKNOWN host: 0 CPUs"]),
    (Cpus, "p5.48xlarge", lambda h: h.drop(NumaMap), GONE),
    (KernelRelease, "p5.48xlarge", lambda h: h, ["PASS host: kernel 6.8.0-1044-aws; no release is pinned"]),
    (
        KernelRelease,
        "p5.48xlarge",
        lambda h: pinned(h, "6.8.0-1044-aws"),
        ["PASS host: kernel 6.8.0-1044-aws, as pinned"],
    ),
    (
        KernelRelease,
        "p5.48xlarge",
        lambda h: pinned(h, "6.8.0-1050-aws"),
        ["WARN host: kernel 6.8.0-1044-aws runs, 6.8.0-1050-aws is pinned"],
    ),
    (KernelRelease, "p5.48xlarge", lambda h: h.drop(HostInfo), GONE),
    (InstanceStore, "p5.48xlarge", lambda h: h, ["PASS host: 8 local disks of 3800 GB"]),
    (
        InstanceStore,
        "p3.16xlarge",
        lambda h: h.drop(BlockDevices),
        ["NOT_APPLICABLE host: this type has no local disk"],
    ),
    (InstanceStore, "g5.48xlarge", lambda h: h.put(disks(3800)), ["FAIL host: 1 of 2 local disks"]),
    (InstanceStore, "g5.48xlarge", lambda h: h.put(disks(3800, 1900)), ["FAIL host: smaller than 3800 GB: nvme1n1"]),
    (InstanceStore, "g5.48xlarge", lambda h: h.put(disks(3800, 3800, 3800)), ["WARN host: 3 of 2 local disks"]),
    (InstanceStore, "g5.48xlarge", lambda h: h.drop(BlockDevices), GONE),
    (
        InstanceStore,
        "g5.xlarge",
        lambda h: h.put(
            BlockDevices((BlockDevice("nvme1n1", "disk", ABSENT, "Amazon EC2 NVMe Instance Storage", "AWS1"),))
        ),
        ["UNKNOWN host: size not told: nvme1n1"],
    ),
    (
        EfaDevices,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=1).put(RdmaDevices((RdmaDevice("rdmap1s0", "0x1d0f"),))),
        ["UNKNOWN host: port state not told: rdmap1s0"],
    ),
    (EfaDevices, "p5.48xlarge", lambda h: h.drop(RdmaDevices), ["NOT_APPLICABLE host: the stack asked for no EFA"]),
    (
        EfaDevices,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=4).put(efas(4)),
        ["PASS host: 4 EFA RDMA devices, ports active"],
    ),
    (
        EfaDevices,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=4).put(efas(3)),
        ["FAIL host: 3 of 4 EFA RDMA devices"],
    ),
    (
        EfaDevices,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=1).put(MELLANOX),
        ["FAIL host: 0 of 1 EFA RDMA device"],
    ),
    (
        EfaDevices,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=4).put(efas(4, 2)),
        ["FAIL host: port not active: rdmap2s0"],
    ),
    (EfaDevices, "p4d.24xlarge", lambda h: h.expecting(efa_count=4).drop(RdmaDevices), GONE),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_machine(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
