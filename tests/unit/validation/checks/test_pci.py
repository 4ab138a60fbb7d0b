"""The PCI bus around the GPUs: rows with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.pci import AcsOff, DeadFunctions
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
DENIED = Missing(Reason.COULD_NOT_LOOK, "<not root>")


def bus(h: Host, *more: PciDevice) -> Host:
    return h.put(PciBus((*h.facts().need(PciBus).devices, *more)))


def metal(h: Host, **controls: int | Missing) -> Host:
    return h.state(virtual=False).put(AcsControls({f"0000:{name[1:]}:00.0": word for name, word in controls.items()}))


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
]


@pytest.mark.parametrize(("check", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host("p5.48xlarge")).says(check()) == said


def test_bridges_that_could_not_be_read_close_no_gate(host: Callable[..., Host]) -> None:
    silent = metal(host("p5.48xlarge")).drop(AcsControls)
    findings = judge_facts(silent.facts(), silent.expected, "host", [AcsOff()])
    assert [finding.required for finding in findings] == [False]
