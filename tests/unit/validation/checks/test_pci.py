"""The PCI bus around the GPUs: rows with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.pci import AcsOff, DeadFunctions, Iommu, PcieGeneration
from validation.facts.gpu import GpuInventory, PcieLink
from validation.facts.host import PciBus, PciDevice
from validation.facts.host_state import AcsControls, HostState
from validation.facts.missing import Missing, Reason
from validation.judge import judge_facts

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

GONE = ["UNKNOWN host: could not look: tool: not found"]
SWITCH = PciDevice("0000:cb:00.0", "0680", "10de", "22a3", "NVSwitch")
DISK = PciDevice("0000:d8:01.0", "0108", "1d0f", "cd01", "NVMe SSD Controller")
AUDIO = PciDevice("0000:53:00.1", "0403", "10de", "22a3", "Audio device")
NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
DENIED = Missing(Reason.COULD_NOT_LOOK, "<not root>")


def bus(h: Host, *more: PciDevice) -> Host:
    return h.put(PciBus((*h.facts().need(PciBus).devices, *more)))


def metal(h: Host, **controls: int | Missing) -> Host:
    return h.state(virtual=False).put(AcsControls({f"0000:{name[1:]}:00.0": word for name, word in controls.items()}))


NIC = PciDevice("0000:19:00.0", "0207", "15b3", "1021", "MT2910 Family [ConnectX-7]")
# A root port, a switch below it with two ports, and a root port of its own for the second GPU.
BUSES = {
    "0000:15:01.0": (0x16, 0x1A),
    "0000:16:00.0": (0x17, 0x1A),
    "0000:17:00.0": (0x18, 0x18),
    "0000:17:01.0": (0x19, 0x19),
    "0000:2a:01.0": (0x2B, 0x2B),
}


def switched(h: Host, *more: PciDevice, **controls: int | Missing) -> Host:
    """GPUs on buses 18 and 2b; ``_17_01=0x1d`` is the control of the bridge 0000:17:01.0."""
    gpus = [PciDevice(f"0000:{bus}:00.0", "0302", "10de", "2330", "H100") for bus in ("18", "2b")]
    named = {f"0000:{name[1:3]}:{name[4:]}.0": word for name, word in controls.items()}
    return h.state(virtual=False).put(PciBus((*gpus, *more)), AcsControls(named, BUSES))


def treated(h: Host, *kinds: str | Missing, virtual: bool = False) -> Host:
    iommu = {f"0000:{0x18 + at:02x}:00.0": kind for at, kind in enumerate(kinds)}
    return h.state(virtual=virtual).put(AcsControls({}, {}, iommu))


ROWS: list[tuple[Any, Callable[[Host], Host], list[str]]] = [
    (DeadFunctions, lambda h: bus(h, SWITCH, DISK), ["PASS host: 2 devices besides the GPUs answer"]),
    (
        DeadFunctions,
        lambda h: bus(h, DISK, replace(SWITCH, dead=True)),
        ["FAIL 0000:cb:00.0: the NVSwitch is on the bus, but its configuration space reads all ones (rev ff)"],
    ),
    (
        DeadFunctions,
        lambda h: bus(h, replace(DISK, dead=True)),
        ["FAIL 0000:d8:01.0: the NVMe disk is on the bus, but its configuration space reads all ones (rev ff)"],
    ),
    (
        DeadFunctions,
        lambda h: bus(h, SWITCH, replace(AUDIO, dead=True)),
        [
            (
                "WARN 0000:53:00.1: the device of class 0403 is on the bus, but its configuration space reads all ones "
                "(rev ff)"
            )
        ],
    ),
    (DeadFunctions, lambda h: h, ["NOT_APPLICABLE host: nothing but GPUs is on the PCI bus"]),
    (PcieGeneration, lambda h: h, ["PASS host: generation 5 can be reached by 8 GPUs"]),
    (
        PcieGeneration,
        lambda h: h.gpu(3, pcie=PcieLink(1, 3, 16, 16, 0)),
        ["FAIL GPU3: its PCIe link can reach generation 3 only"],
    ),
    # In a machine of one's own, or an unknown one, a slot may give less by design.
    (
        PcieGeneration,
        lambda h: h.gpu(3, pcie=PcieLink(1, 3, 16, 16, 0)).expecting(profile=None),
        ["WARN GPU3: its PCIe link can reach generation 3 only"],
    ),
    (
        PcieGeneration,
        lambda h: h.every(pcie=PcieLink(1, 1, 16, 16, 0)).only(1),
        ["WARN GPU0: its PCIe link can reach generation 1 only"],
    ),
    (
        PcieGeneration,
        lambda h: h.every(pcie=PcieLink(NONE, NONE, 16, 16, 0)),
        ["NOT_APPLICABLE host: the driver does not tell the highest PCIe generation"],
    ),
    (
        PcieGeneration,
        lambda h: h.gpu(1, pcie=PcieLink(1, DENIED, 16, 16, 0)),
        [
            "UNKNOWN GPU1: highest PCIe generation: could not look (<not root>)",
            "PASS host: generation 5 can be reached by 7 GPUs",
        ],
    ),
    (PcieGeneration, lambda h: h.drop(GpuInventory), GONE),
    (DeadFunctions, lambda h: h.drop(PciBus), GONE),
    (
        AcsOff,
        lambda h: h,
        ["NOT_APPLICABLE host: a virtual machine: how its bridges are set is the hypervisor's business"],
    ),
    (AcsOff, lambda h: metal(h), ["PASS host: no bridge redirects (0 have ACS)"]),
    (AcsOff, lambda h: metal(h, b50=0x0000, b51=0x0011), ["PASS host: no bridge redirects (2 have ACS)"]),
    (AcsOff, lambda h: metal(h, b50=0x001D, b51=0x0000), ["WARN host: ACS redirects on 1 bridge: 0000:50:00.0"]),
    (
        AcsOff,
        lambda h: metal(h, b50=DENIED, b51=0x0000),
        ["UNKNOWN host: ACS of 1 bridge could not be read: 0000:50:00.0"],
    ),
    (AcsOff, lambda h: h.drop(HostState), GONE),
    # Only what lies between two devices of one switch matters: a root port that redirects is usual, and harms nobody.
    (
        AcsOff,
        lambda h: switched(h, NIC, _15_01=0x1D, _17_00=0x01, _17_01=0, _2a_01=0x1D),
        ["PASS host: no bridge redirects (2 have ACS)"],
    ),
    (AcsOff, lambda h: switched(h, NIC, _17_01=0x1D), ["WARN host: ACS redirects on 1 bridge: 0000:17:01.0"]),
    (AcsOff, lambda h: switched(h, NIC, _17_00=0x20), ["WARN host: ACS redirects on 1 bridge: 0000:17:00.0"]),
    (
        AcsOff,
        lambda h: switched(h, _15_01=0x1D, _17_00=0x1D),
        ["NOT_APPLICABLE host: no GPU shares a PCIe switch with another GPU or a network card"],
    ),
    (
        AcsOff,
        lambda h: switched(h, NIC, _15_01=DENIED, _17_00=DENIED),
        ["UNKNOWN host: ACS of 1 bridge could not be read: 0000:17:00.0"],
    ),
    (
        Iommu,
        lambda h: treated(h, "DMA-FQ", virtual=True),
        ["NOT_APPLICABLE host: a virtual machine: how its bridges are set is the hypervisor's business"],
    ),
    (Iommu, lambda h: treated(h, "identity", "none"), ["PASS host: it passes 2 GPUs through"]),
    (
        Iommu,
        lambda h: treated(h, "identity", "DMA-FQ"),
        ["WARN host: it translates every access of 1 GPU: 0000:19:00.0"],
    ),
    (Iommu, lambda h: treated(h, "DMA"), ["WARN host: it translates every access of 1 GPU: 0000:18:00.0"]),
    (Iommu, lambda h: treated(h, "none", DENIED), ["UNKNOWN host: it is not told how it treats 1 GPU: 0000:19:00.0"]),
    (Iommu, lambda h: treated(h), ["UNKNOWN host: it is not told how it treats any GPU"]),
]


@pytest.mark.parametrize(("check", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host("p5.48xlarge")).says(check()) == said


def test_bridges_that_could_not_be_read_close_no_gate(host: Callable[..., Host]) -> None:
    silent = metal(host("p5.48xlarge")).drop(AcsControls)
    findings = judge_facts(silent.facts(), silent.expected, "host", [AcsOff()])
    assert [finding.required for finding in findings] == [False]


@pytest.mark.parametrize(("instance_type", "verdict"), [("g5g.16xlarge", "NOT_APPLICABLE"), ("g5g.metal", "WARN")])
def test_where_the_processor_does_not_say_that_it_is_a_guests_the_type_does(
    host: Callable[..., Host], instance_type: str, verdict: str
) -> None:
    (said,) = treated(host(instance_type), "DMA").says(Iommu())
    assert said.startswith(f"{verdict} host")
