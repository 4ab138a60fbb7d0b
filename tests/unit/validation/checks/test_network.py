"""EFA and InfiniBand: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.network import EfaAffinity, EfaCount, ErdmaDevices, PeerMemory
from validation.facts.components import Components
from validation.facts.host import EfaModule, EfaNics, NumaMap, PciBus, PciDevice, RdmaDevice, RdmaDevices
from validation.facts.missing import Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


def asked(count: int, found: int) -> Callable[[Host], Host]:
    nics = EfaNics(tuple(f"rdmap{n}s0" for n in range(found)))
    return lambda h: h.expecting(efa_count=count).put(nics)


NOT_TOLD = Missing(Reason.COULD_NOT_LOOK, "-1")
ENA = PciDevice("0000:00:05.0", "0200", "1d0f", "ec20", "Elastic Network Adapter (ENA)")


def on_nodes(*nodes: int | Missing) -> Callable[[Host], Host]:
    """EFA NICs on these NUMA nodes, and the ENA that every instance has."""
    nics = [PciDevice(f"0000:{n:02x}:1b.0", "0200", "1d0f", "efa0", "EFA") for n in range(len(nodes))]
    numa = NumaMap({0: frozenset({0}), 1: frozenset({1})}, {}, dict(zip((d.address for d in nics), nodes, strict=True)))
    return lambda h: h.expecting(efa_count=len(nodes)).put(PciBus((ENA, *nics)), numa)


def infiniband(modules: tuple[str, ...] | Missing) -> Callable[[Host], Host]:
    adapter = PciDevice("0000:18:00.0", "0207", "15b3", "1021", "MT2910 Family [ConnectX-7]")
    return lambda h: h.put(PciBus((ENA, adapter))).software(peermem=modules)


def erdma(*states: str, vendor: str = "0x1ded") -> Callable[[Host], Host]:
    """Two eRDMA adapters on the bus, and an RDMA device for each state."""
    bus = tuple(PciDevice(f"0000:00:0{n}.0", "0200", "1ded", "107f", "ERDMA") for n in (7, 8))
    ports = tuple(RdmaDevice(f"erdma_{n}", vendor, state) for n, state in enumerate(states or ("PORT_ACTIVE",)))
    return lambda h: h.put(PciBus(bus)).put(RdmaDevices(ports))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (EfaCount, "p5.48xlarge", lambda h: h.drop(EfaNics), ["NOT_APPLICABLE host: the stack asked for no EFA"]),
    (EfaCount, "p5.48xlarge", asked(32, 32), ["PASS host: 32 EFA NICs, as asked for"]),
    (EfaCount, "p4d.24xlarge", asked(4, 3), ["FAIL host: 3 of 4 EFA NICs (there: rdmap0s0, rdmap1s0, rdmap2s0)"]),
    (EfaCount, "p4d.24xlarge", asked(1, 1), ["PASS host: 1 EFA NIC, as asked for"]),
    (EfaCount, "p4d.24xlarge", asked(4, 0), ["FAIL host: 0 of 4 EFA NICs"]),
    (
        EfaCount,
        "p4d.24xlarge",
        lambda h: asked(4, 0)(h).put(EfaModule(loaded=False)),
        ["FAIL host: 0 of 4 EFA NICs: the EFA kernel module is not loaded"],
    ),
    (EfaCount, "p4d.24xlarge", asked(2, 4), ["WARN host: 4 EFA NICs, 2 asked for"]),
    (
        EfaCount,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=4).drop(EfaNics, "fi_info: not found", "fi-info"),
        ["UNKNOWN host: could not look: fi_info: not found"],
    ),
    (EfaAffinity, "p4d.24xlarge", lambda h: h.drop(NumaMap), ["NOT_APPLICABLE host: the stack asked for no EFA"]),
    (EfaAffinity, "p4d.24xlarge", on_nodes(0, 0, 1, 1), ["PASS host: EFA NICs 2 on node 0, 2 on node 1"]),
    (EfaAffinity, "p4d.24xlarge", on_nodes(0, 0, 0, 1), ["WARN host: EFA NICs 3 on node 0, 1 on node 1"]),
    (
        EfaAffinity,
        "p4d.24xlarge",
        on_nodes(0, 0, NOT_TOLD, NOT_TOLD),
        ["UNKNOWN host: the NUMA node of 2 EFA NICs is not told"],
    ),
    (
        EfaAffinity,
        "p4d.24xlarge",
        on_nodes(0, 1),
        ["NOT_APPLICABLE host: the share of each NUMA node is only known with all 4 EFAs"],
    ),
    (
        EfaAffinity,
        "g6e.24xlarge",
        on_nodes(0, 1),
        ["NOT_APPLICABLE host: no source tells on which NUMA nodes the EFAs of this type are"],
    ),
    (
        EfaAffinity,
        "p4d.24xlarge",
        lambda h: on_nodes(0, 0, 1, 1)(h).drop(PciBus),
        ["UNKNOWN host: could not look: tool: not found"],
    ),
    (
        PeerMemory,
        "p6-b200.48xlarge",
        lambda h: h.drop(PciBus),
        ["NOT_APPLICABLE host: the network of this type is EFA"],
    ),
    (
        PeerMemory,
        "g5.xlarge",
        lambda h: h.drop(Components),
        ["NOT_APPLICABLE host: there is no InfiniBand adapter"],
    ),
    (PeerMemory, "g5.xlarge", infiniband(("nvidia_peermem",)), ["PASS host: nvidia_peermem is loaded"]),
    (
        PeerMemory,
        "g5.xlarge",
        infiniband(Missing(Reason.ABSENT)),
        ["WARN host: nvidia_peermem is not loaded, and there is InfiniBand: 0000:18:00.0"],
    ),
    (
        PeerMemory,
        "g5.xlarge",
        infiniband(Missing(Reason.COULD_NOT_LOOK, "denied")),
        ["UNKNOWN host: GPUDirect RDMA module: could not look (denied)"],
    ),
    (ErdmaDevices, "g5.xlarge", lambda h: h.drop(RdmaDevices), ["NOT_APPLICABLE host: there is no eRDMA adapter"]),
    (ErdmaDevices, "g5.xlarge", erdma("PORT_ACTIVE", "PORT_ACTIVE"), ["PASS host: 2 of 2 eRDMA adapters active"]),
    (ErdmaDevices, "g5.xlarge", erdma("PORT_ACTIVE", "PORT_DOWN"), ["WARN host: 1 of 2 eRDMA adapters active"]),
    (ErdmaDevices, "g5.xlarge", erdma(vendor="0x02c9"), ["WARN host: 0 of 2 eRDMA adapters active"]),
    (
        ErdmaDevices,
        "g5.xlarge",
        lambda h: erdma()(h).drop(RdmaDevices),
        ["UNKNOWN host: 2 eRDMA adapters, and no ibv_devinfo that tells their state"],
    ),
    (PeerMemory, "g5.xlarge", lambda h: h.drop(PciBus), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_network(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


def test_what_the_platform_does_not_tell_of_efa_closes_no_gate(host: Callable[[str], Host]) -> None:
    changed = on_nodes(NOT_TOLD, NOT_TOLD, NOT_TOLD, NOT_TOLD)(host("p4d.24xlarge"))
    (finding,) = EfaAffinity().evaluate(changed.facts(), changed.expected)
    assert finding.required is False
