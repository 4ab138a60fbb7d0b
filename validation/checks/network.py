"""Are the network devices there that the stack asked for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from profiles.models import Expectation
from validation.checks.base import THE_STACK, Check
from validation.checks.wording import counted, listed, profile_of
from validation.facts.components import Components
from validation.facts.host import EfaModule, EfaNics, NumaMap, PciBus, PciDevice, RdmaDevices
from validation.facts.missing import Missing, Reason
from validation.facts.rdma import ALIBABA
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_AMAZON = "1d0f"
# Alibaba's eRDMA adapters: erdma_pci_tbl of the vendor's driver 0.2.37 (Linux has the first), read 2026-11-30.
_ERDMA = (("1ded", "107f"), ("1ded", "5007"))
_INFINIBAND = "0207"  # PCI class; the same adapters as Ethernet are of class 0200


class EfaCount(Check):
    """libfabric sees as many EFA NICs as the stack asked for."""

    id = "efa.count"
    title = "EFA NICs"
    why = "With fewer EFAs than asked the job runs over fewer, or over TCP, and nobody notices but the bill."
    source = "fi_info of p4d (one NIC has up to three records: NICs are counted, not lines)"
    remedy = "Create the instance again with interface type efa or efa-only on every card: it cannot be added later."
    fault_class = FaultClass.CONFIGURATION
    requires = (EfaNics,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        wanted = expected.efa_count
        if wanted == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the stack asked for no EFA")
            return
        nics = facts.need(EfaNics).nics
        measured, asked = counted(len(nics), "EFA NIC"), counted(wanted, "EFA NIC")
        say = partial(self.finding, measured=measured, expected=asked, source=THE_STACK)
        if len(nics) == wanted:
            yield say(Verdict.PASS, "host", f"{asked}, as asked for")
        elif len(nics) > wanted:
            message = f"{measured}, {wanted} asked for"
            remedy = "Correct efaCount, or the instance's network interfaces."
            yield say(Verdict.WARN, "host", message, remedy=remedy)
        elif EfaModule in facts and not facts.need(EfaModule).loaded:
            message = f"{len(nics)} of {asked}: the EFA kernel module is not loaded"
            remedy = "Install the EFA driver (aws-efa-installer), load it, and validate again."
            yield say(Verdict.FAIL, "host", message, fault_class=FaultClass.SOFTWARE, remedy=remedy)
        else:
            there = f" (there: {listed(nics)})" if nics else ""
            yield say(Verdict.FAIL, "host", f"{len(nics)} of {asked}{there}")


class EfaAffinity(Check):
    """Each NUMA node has its share of the EFA NICs, beside its GPUs."""

    id = "efa.affinity"
    title = "EFA NICs by NUMA node"
    why = "A GPU whose NICs hang on the other socket sends everything through the link between the sockets."
    source = "aws-ofi-nccl topology/p4d-24xl-topo.xml: two GPUs and one NIC behind each PCIe switch, two a socket"
    remedy = "Replace the host; if the new one shows the same, correct the profile."
    fault_class = FaultClass.REPLACE_NOW
    requires = (NumaMap, PciBus)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        network = profile_of(expected).network
        wanted = network.efa_nodes
        if expected.efa_count == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the stack asked for no EFA")
            return
        if wanted is None:
            message = "no source tells on which NUMA nodes the EFAs of this type are"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            return
        if expected.efa_count < network.efa_max.value:
            message = f"the share of each NUMA node is only known with all {network.efa_max.value} EFAs"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            return
        numa = facts.need(NumaMap)
        nodes = [numa.gpu_node.get(device.address) for device in facts.need(PciBus).devices if _is_efa(device)]
        told = Counter(node for node in nodes if isinstance(node, int))
        if not nodes or sum(told.values()) < len(nodes):
            # No capture shows these files on a real host: what the platform does not tell closes no gate.
            message = f"the NUMA node of {counted(len(nodes) - sum(told.values()), 'EFA NIC')} is not told"
            yield replace(self.finding(Verdict.UNKNOWN, "host", message), required=False)
            return
        asked = _shares(dict(enumerate(wanted.value)))
        verdict = Verdict.PASS if _shares(told) == asked else Verdict.WARN
        message = f"EFA NICs {_shares(told)}"
        source = expected.source_of(wanted.source)
        yield self.finding(verdict, "host", message, measured=_shares(told), expected=asked, source=source)


def _is_efa(device: PciDevice) -> bool:
    """Amazon's device ids of EFA are efa0, efa1, ...; its ENA is of the same class."""
    return device.vendor_id == _AMAZON and str(device.device_id).startswith("efa")


def _shares(counts: dict[int, int]) -> str:
    """``2 on node 0, 2 on node 1``."""
    return listed(f"{count} on node {node}" for node, count in sorted(counts.items()) if count)


class PeerMemory(Check):
    """InfiniBand adapters can read GPU memory."""

    id = "rdma.peer_memory"
    title = "GPUDirect RDMA module"
    why = "Without it every message over InfiniBand goes through the host's memory, at a fraction of the speed."
    source = "gpud 4a8de33a and imbue-ai/cluster-health; EFA has its own way and needs no such module"
    remedy = "Load nvidia_peermem at boot; with the open kernel module and DMA-BUF it is not needed."
    fault_class = FaultClass.SOFTWARE
    requires = (PciBus, Components)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if expected.profile and expected.profile.network.efa_max.value:
            # Boards of B200 have InfiniBand functions too, which only manage NVLink.
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the network of this type is EFA")
            return
        adapters = [device.address for device in facts.need(PciBus).devices if device.class_id == _INFINIBAND]
        if not adapters:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "there is no InfiniBand adapter")
            return
        modules = facts.need(Components).peermem
        if not isinstance(modules, Missing):
            yield self.finding(Verdict.PASS, "host", f"{listed(modules)} is loaded", measured=listed(modules))
        elif modules.reason is Reason.ABSENT:
            # A warning: with DMA-BUF the adapters do without it, which shows only in a program.
            message = f"nvidia_peermem is not loaded, and there is InfiniBand: {listed(adapters)}"
            yield self.finding(Verdict.WARN, "host", message, measured="not loaded", expected="loaded")
        else:
            yield self.missing("host", "GPUDirect RDMA module", modules)


class ErdmaDevices(Check):
    """Every eRDMA adapter of Alibaba Cloud on the PCI bus is an RDMA device with an active port."""

    id = "rdma.erdma"
    title = "Alibaba eRDMA"
    why = (
        "An eRDMA interface without its driver is a plain network card: the job talks TCP, and only its speed shows it."
    )
    source = "Linux erdma_main.c (PCI ids), erdma_verbs.c (vendor id); Alibaba help: enable eRDMA, 2026-03"
    remedy = "Install the eRDMA driver (erdma_installer) and load it: modprobe erdma; ibv_devinfo must show erdma_0."
    fault_class = FaultClass.SOFTWARE
    requires = (PciBus, RdmaDevices)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        bus = facts.need(PciBus).devices
        adapters = [device.address for device in bus if (device.vendor_id, device.device_id) in _ERDMA]
        if not adapters:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "there is no eRDMA adapter")
            return
        if RdmaDevices not in facts:
            message = f"{counted(len(adapters), 'eRDMA adapter')}, and no ibv_devinfo that tells their state"
            yield replace(self.finding(Verdict.UNKNOWN, "host", message), required=False)
            return
        active = [
            port.name for port in facts.need(RdmaDevices).devices if port.vendor_id == ALIBABA and port.is_active()
        ]
        # A warning: the stack does not ask for eRDMA, so nothing says that the job counts on it.
        verdict = Verdict.PASS if len(active) >= len(adapters) else Verdict.WARN
        message = f"{len(active)} of {counted(len(adapters), 'eRDMA adapter')} active"
        yield self.finding(verdict, "host", message, measured=listed(active), expected=listed(adapters))
