"""Presence: rows for pass, fail and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from validation.checks.presence import GpuCount, GpuLost, GpuMemory, GpuName, GpuPciBus, GpuReadable
from validation.facts.gpu import DriverFault, Ecc, GpuInventory
from validation.facts.host import PciBus, PciDevice
from validation.facts.missing import Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

LOST = Missing(Reason.FAULT, "GPU is lost")


def bus(host: Host, *more: PciDevice, drop: int | None = None) -> Host:
    there = [device for index, device in enumerate(host.facts().need(PciBus).devices) if index != drop]
    return host.put(PciBus((*there, *more)))


def device(where: str, class_id: str = "0302", *, dead: bool = False) -> PciDevice:
    return PciDevice(where, class_id, "10de", "2330", "NVIDIA", dead)


ROWS = [
    (GpuCount, "p5.48xlarge", lambda h: h, ["PASS host: 8 of 8 GPUs found"]),
    (GpuCount, "g5.xlarge", lambda h: h, ["PASS host: 1 of 1 GPU found"]),
    (GpuCount, "p5.48xlarge", lambda h: h.without(7), ["FAIL host: 7 of 8 GPUs found"]),
    (GpuCount, "g6.xlarge", lambda h: h.without(0), ["FAIL host: 0 of 1 GPU found"]),
    (
        GpuCount,
        "g5.xlarge",
        lambda h: h.put(GpuInventory("nvml", (h.gpus[0], h.gpus[0]))),
        ["FAIL host: 2 GPUs found, more than g5.xlarge has"],
    ),
    (
        GpuCount,
        "p5.48xlarge",
        lambda h: h.drop(GpuInventory, "nvidia-smi: no answer within 20 s", "nvml"),
        ["UNKNOWN host: could not look: nvidia-smi: no answer within 20 s"],
    ),
    (GpuName, "g6.xlarge", lambda h: h, ["PASS host: all 1 are NVIDIA L4"]),
    (GpuName, "g6.xlarge", lambda h: h.gpu(0, name="NVIDIA L4-3Q"), ["FAIL GPU0: is a NVIDIA L4-3Q, not a NVIDIA L4"]),
    (GpuName, "g6.xlarge", lambda h: h.gpu(0, name="NVIDIA L40S"), ["FAIL GPU0: is a NVIDIA L40S, not a NVIDIA L4"]),
    (GpuName, "p4d.24xlarge", lambda h: h.every(name="A100-SXM4-40GB"), ["PASS host: all 8 are A100-SXM4-40GB"]),
    (GpuName, "p5.48xlarge", lambda h: h.gpu(2, name=LOST), ["FAIL GPU2: product name: fault (GPU is lost)"]),
    (
        GpuName,
        "p5.48xlarge",
        lambda h: h.gpu(2, name=Missing(Reason.COULD_NOT_LOOK, "[Insufficient Permissions]")),
        ["UNKNOWN GPU2: product name: could not look ([Insufficient Permissions])"],
    ),
    (GpuName, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (GpuLost, "p5.48xlarge", lambda h: h, ["PASS host: none of 8 GPUs is lost"]),
    (
        GpuLost,
        "p5.48xlarge",
        lambda h: h.driver(lost=("3",)),
        ["FAIL GPU3: lost: the driver lists it and cannot reach it"],
    ),
    (
        GpuLost,
        "p5.48xlarge",
        lambda h: h.drop(GpuInventory).put(DriverFault("nvml", "gpu-lost", "GPU is lost", "0000:34:00.0")),
        ["FAIL 0000:34:00.0: lost: GPU is lost"],
    ),
    (GpuLost, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (GpuReadable, "p5.48xlarge", lambda h: h, ["PASS host: no error in any value of 8 GPUs"]),
    (
        GpuReadable,
        "p5.48xlarge",
        lambda h: h.gpu(1, memory_used_mib=LOST, ecc=Ecc(LOST)),
        ["FAIL GPU1: the driver returns an error for memory_used_mib (GPU is lost), ecc.enabled (GPU is lost)"],
    ),
    (
        GpuReadable,
        "g5.xlarge",
        lambda h: h.driver(silent=("nvidia-smi -q -x: no answer within 45 s",)),
        [
            (
                "UNKNOWN host: nvidia-smi -q -x: no answer within 45 s; another tool answered, but what breaks one may "
                "break the next"
            )
        ],
    ),
    (
        GpuReadable,
        "p5.48xlarge",
        lambda h: h.gpu(2, ecc=Ecc(True, 0, -1), temperature_c=511.0, power_draw_w=-3.0),
        ["UNKNOWN GPU2: values that cannot be: ecc.volatile_uncorrected -1, temperature_c 511, power_draw_w -3"],
    ),
    (
        GpuReadable,
        "p5.48xlarge",
        lambda h: h.gpu(2, tlimit_margin_c=-1.0),
        ["PASS host: no error in any value of 8 GPUs"],
    ),
    (GpuReadable, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (GpuPciBus, "p5.48xlarge", lambda h: h, ["PASS host: the driver holds all 8 GPUs of the PCI bus"]),
    (
        GpuPciBus,
        "p5.48xlarge",
        lambda h: bus(h, device("0000:53:00.1", "0403"), device("0000:cb:00.0", "0680")),
        ["PASS host: the driver holds all 8 GPUs of the PCI bus"],
    ),
    (
        GpuPciBus,
        "p5.48xlarge",
        lambda h: h.without(7),
        ["FAIL 0000:ca:00.0: is on the PCI bus, but the driver does not hold it"],
    ),
    (
        GpuPciBus,
        "p5.48xlarge",
        lambda h: bus(h, device("0000:ca:00.0", dead=True), drop=7),
        ["FAIL 0000:ca:00.0: is on the bus, but its configuration space reads all ones (rev ff): it fell off the bus"],
    ),
    (
        GpuPciBus,
        "p5.48xlarge",
        lambda h: bus(h, drop=7),
        ["UNKNOWN 0000:ca:00.0: is held by the driver, but the bus does not show it: the bus listing is not whole"],
    ),
    (
        GpuPciBus,
        "p5.48xlarge",
        lambda h: bus(h.gpu(7, pci_address="0000:53:00.0"), drop=7),
        ["UNKNOWN GPU7: has the PCI address of GPU0: one of the two is not there"],
    ),
    (
        GpuPciBus,
        "g5.xlarge",
        lambda h: bus(h.without(0), drop=0),
        ["UNKNOWN host: no NVIDIA GPU on the PCI bus, and none held by the driver"],
    ),
    (
        GpuPciBus,
        "g5.xlarge",
        lambda h: h.gpu(0, pci_address=Missing(Reason.ABSENT)),
        ["UNKNOWN GPU0: PCI address: absent"],
    ),
    (
        GpuPciBus,
        "g5.xlarge",
        lambda h: h.drop(PciBus, "lspci: not found", "lspci"),
        ["UNKNOWN host: could not look: lspci: not found"],
    ),
    (GpuMemory, "p5.48xlarge", lambda h: h, ["PASS host: 81559 MiB on each of 8 GPUs"]),
    (
        GpuMemory,
        "p4d.24xlarge",
        lambda h: h.every(memory_total_mib=40536.0),
        ["PASS host: 40536 MiB on each of 8 GPUs"],
    ),
    (GpuMemory, "p5.48xlarge", lambda h: h.gpu(5, memory_total_mib=61000.0), ["FAIL GPU5: offers 61000 MiB of memory"]),
    (
        GpuMemory,
        "p5.48xlarge",
        lambda h: h.gpu(5, memory_total_mib=161000.0),
        ["UNKNOWN GPU5: offers 161000 MiB of memory"],
    ),
    (
        GpuMemory,
        "p5.48xlarge",
        lambda h: h.gpu(5, memory_total_mib=Missing(Reason.NOT_APPLICABLE, "[N/A]")),
        ["UNKNOWN GPU5: memory total: not applicable ([N/A])"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_presence(
    host: Callable[[str], Host],
    check: type[GpuCount],
    instance_type: str,
    change: Callable[[Host], Host],
    said: list[str],
) -> None:
    assert change(host(instance_type)).says(check()) == said


def test_a_wrong_count_says_what_was_expected_by_whom_and_what_to_do(host: Callable[[str], Host]) -> None:
    broken = host("p5.48xlarge").without(3)
    finding = next(iter(GpuCount().evaluate(broken.facts(), broken.expected)))
    assert (finding.measured, finding.expected) == ("7 GPUs", "8 GPUs")
    assert finding.source == "profile p5.48xlarge (EC2 DescribeInstanceTypes, as kept in moto 5.2.5, 2026-11-30)"
    assert finding.remedy == "Replace the host: a GPU that is missing at boot rarely comes back."
