"""The fabric: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.fabric import FabricManager, FabricManagerVersion, FabricState
from validation.facts.components import Components
from validation.facts.gpu import Fabric, GpuInventory
from validation.facts.host import PciBus, PciDevice, Unit
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
ZERO = "00000000-0000-0000-0000-000000000000"


def completed(**changes: Any) -> Fabric:
    return Fabric(**{"state": "Completed", "status": "Success", "clique_id": 0, "cluster_uuid": ZERO, **changes})


def unit(load: str = "loaded", active: str = "active", sub: str = "running", enabled: str = "enabled") -> Unit:
    return Unit("nvidia-fabricmanager.service", load, active, sub, enabled)


def rack(h: Host, **changes: Any) -> Host:
    """A p5 judged as a rack-wide NVLink domain: no capture of a GB200 host is in the catalogue."""
    links = h.profile.links
    assert links.fabric is not None
    kind = links.fabric.model_copy(update={"value": "nvl72"})
    return h.profiled(links={"fabric": kind}).only(1).gpu(0, fabric=completed(**changes))


UNTOLD = "ecs.gn7e-c16g1.32xlarge"  # no source tells who runs its NVSwitches


def switched(h: Host) -> Host:
    """The same host with NVSwitches of its own on its PCI bus."""
    bus = h.values[PciBus]
    assert isinstance(bus, PciBus)
    switches = (PciDevice(f"0000:c{n}:00.0", "0680", "10de", "1af1", "Bridge", False) for n in range(6))
    return h.put(PciBus((*bus.devices, *switches)))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (FabricState, "p5.48xlarge", lambda h: h, ["PASS host: fabric Completed on each of 8 GPUs"]),
    (FabricState, "p4d.24xlarge", lambda h: h, ["NOT_APPLICABLE host: these GPUs report no fabric"]),
    (
        FabricState,
        "p4d.24xlarge",
        lambda h: h.every(fabric=completed()),
        ["PASS host: fabric Completed on each of 8 GPUs"],
    ),
    (
        FabricState,
        "p4d.24xlarge",
        lambda h: h.every(fabric=Fabric()),
        ["NOT_APPLICABLE host: these GPUs report no fabric"],
    ),
    (FabricState, "g4dn.xlarge", lambda h: h, ["NOT_APPLICABLE host: these GPUs report no fabric"]),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(1, fabric=completed(state="In Progress")),
        ["FAIL GPU1: fabric state is In Progress"],
    ),
    (
        FabricState,
        "p4d.24xlarge",
        lambda h: h.gpu(1, fabric=completed(state="Not Started")),
        ["FAIL GPU1: fabric state is Not Started"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(1, fabric=completed(status="Insufficient Resources")),
        ["FAIL GPU1: fabric state is Completed, but its status is Insufficient Resources"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(
            1, fabric=completed(health_summary="Unhealthy", health=(("route_unhealthy", "True"), ("bandwidth", "Full")))
        ),
        ["FAIL GPU1: fabric health is Unhealthy (route_unhealthy True)"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(1, fabric=completed(health_summary="Limited Capacity")),
        ["FAIL GPU1: fabric health is Limited Capacity (no detail)"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(
            1,
            fabric=completed(
                health_summary="Healthy", health=(("bandwidth", "Degraded"), ("incorrect_configuration", "None"))
            ),
        ),
        ["FAIL GPU1: fabric health: bandwidth Degraded"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(1, fabric=Fabric(NONE)),
        ["UNKNOWN GPU1: fabric state: not applicable (N/A)"],
    ),
    (FabricState, "p5.48xlarge", lambda h: h.gpu(1, fabric=Fabric(ABSENT)), ["UNKNOWN GPU1: fabric state: absent"]),
    (FabricState, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.expecting(profile=None),
        ["PASS host: fabric Completed on each of 8 GPUs"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.profiled(links={"fabric": None}).only(1),
        ["PASS host: fabric Completed on each of 1 GPU"],  # what is there is judged, whoever expected it
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.profiled(links={"fabric": None}).only(1).every(fabric=Fabric("Completed", "In Progress")),
        ["FAIL GPU0: fabric state is Completed, but its status is In Progress"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.gpu(0, fabric=Fabric("Completed", Missing(Reason.COULD_NOT_LOOK, "[Unknown]"))),
        ["UNKNOWN GPU0: fabric status: could not look ([Unknown])"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: h.profiled(links={"fabric": None}).only(1).every(fabric=Fabric()),
        ["UNKNOWN GPU0: the profile of p5.48xlarge gives no fabric kind, so there is nothing to judge against"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: rack(h, clique_id=3, cluster_uuid="5bd1b1cf-0000-4b1b-8a6c-0d0d0d0d0d0d"),
        ["PASS host: fabric Completed on each of 1 GPU"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: rack(h),
        [f"FAIL GPU0: cluster UUID is {ZERO}: the GPU belongs to no NVLink domain"],
    ),
    (
        FabricState,
        "p5.48xlarge",
        lambda h: rack(h, cluster_uuid="5bd1b1cf-0000-4b1b-8a6c-0d0d0d0d0d0d"),
        ["FAIL GPU0: clique id is 0: the GPU belongs to no clique"],
    ),
    (FabricManager, UNTOLD, lambda h: h, ["NOT_APPLICABLE host: this machine has no NVSwitch to manage"]),
    (
        FabricManager,
        UNTOLD,
        lambda h: switched(h).put(unit()),
        ["PASS host: nvidia-fabricmanager.service is active (running)"],
    ),
    (
        FabricManager,
        UNTOLD,
        switched,
        ["FAIL host: nvidia-fabricmanager.service is not installed (load state not-found)"],
    ),
    (FabricManager, UNTOLD, lambda h: h.drop(PciBus), ["UNKNOWN host: could not look: tool: not found"]),
    (
        FabricManagerVersion,
        UNTOLD,
        lambda h: switched(h).software(fabric_manager="535.161.08"),
        ["FAIL host: Fabric Manager 535.161.08, driver 580.105.08"],
    ),
    (FabricManagerVersion, UNTOLD, lambda h: h, ["NOT_APPLICABLE host: this machine has no NVSwitch to manage"]),
    (FabricManager, "p5.48xlarge", lambda h: h, ["PASS host: nvidia-fabricmanager.service is active (running)"]),
    (
        FabricManager,
        "p3.16xlarge",
        lambda h: h.drop(Unit),
        ["NOT_APPLICABLE host: this machine has no NVSwitch to manage"],
    ),
    (
        FabricManager,
        "p4d.24xlarge",
        lambda h: h.put(unit("not-found", "inactive", "dead", "")),
        ["FAIL host: nvidia-fabricmanager.service is not installed (load state not-found)"],
    ),
    (
        FabricManager,
        "p5.48xlarge",
        lambda h: h.put(unit(active="failed", sub="failed")),
        ["FAIL host: nvidia-fabricmanager.service is failed (failed)"],
    ),
    (
        FabricManager,
        "p5.48xlarge",
        lambda h: h.put(unit(active="activating", sub="start")),
        ["FAIL host: nvidia-fabricmanager.service is activating (start)"],
    ),
    (
        FabricManager,
        "p5.48xlarge",
        lambda h: h.put(unit(enabled="disabled")),
        ["WARN host: nvidia-fabricmanager.service runs, but is disabled: it will be gone after a reboot"],
    ),
    (
        FabricManager,
        "p5.48xlarge",
        lambda h: h.drop(Unit, "systemctl: not found"),
        ["UNKNOWN host: could not look: systemctl: not found"],
    ),
    (
        FabricManagerVersion,
        "p5.48xlarge",
        lambda h: h,
        ["PASS host: Fabric Manager 580.105.08, driver 580.105.08"],
    ),
    (
        FabricManagerVersion,
        "p4d.24xlarge",
        lambda h: h.software(fabric_manager="580.105"),
        ["FAIL host: Fabric Manager 580.105, driver 580.105.08"],
    ),
    (
        FabricManagerVersion,
        "p5.48xlarge",
        lambda h: h.software(fabric_manager=ABSENT),
        ["UNKNOWN host: nv-fabricmanager was not found, so its version is not known"],
    ),
    (
        FabricManagerVersion,
        "p5.48xlarge",
        lambda h: h.software(fabric_manager=Missing(Reason.COULD_NOT_LOOK, "no answer within 15 s")),
        ["UNKNOWN host: version of nv-fabricmanager: could not look (no answer within 15 s)"],
    ),
    (
        FabricManagerVersion,
        "p5.48xlarge",
        lambda h: h.driver(driver_version=Missing(Reason.COULD_NOT_LOOK, "N/A")),
        ["UNKNOWN host: driver version: could not look (N/A)"],
    ),
    (
        FabricManagerVersion,
        "p5.48xlarge",
        lambda h: h.drop(Components),
        ["UNKNOWN host: could not look: tool: not found"],
    ),
    (
        FabricManagerVersion,
        "g5.xlarge",
        lambda h: h.drop(Components),
        ["NOT_APPLICABLE host: this machine has no NVSwitch to manage"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_fabric(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
