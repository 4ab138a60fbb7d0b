"""The PCI bus around the GPUs: devices that no longer answer, and bridges that send peers through the processor."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.pci_paths import between, peers
from validation.checks.wording import counted, equal_slots, listed, not_there
from validation.facts.gpu import GpuInventory
from validation.facts.host import PciBus
from validation.facts.host_state import AcsControls, HostState
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_GPU_CLASSES = ("0300", "0302")
# What a job needs besides its GPUs: NVSwitches and other bridges of NVIDIA, network, disks.
_NEEDED = {"0680": "NVSwitch", "0200": "network card", "0207": "InfiniBand card", "0108": "NVMe disk"}
_LEAST_GENERATION = 3  # DCGM 4.6.0: of every data-center board since Volta
# Of the ACS control register: P2P Request Redirect, P2P Completion Redirect, P2P Egress Control.
_REDIRECT = 0x0004 | 0x0008 | 0x0020
_TRANSLATED = ("DMA", "DMA-FQ")
_GUEST = "a virtual machine: how its bridges are set is the hypervisor's business"


class DeadFunctions(Check):
    """Every switch, network card and disk on the PCI bus answers."""

    id = "pcie.dead"
    title = "Devices on the PCI bus"
    why = "A device that died stays on the bus with all configuration bytes 0xff, and every count of devices passes."
    source = "lspci (rev ff), as of a GPU fallen off the bus; the same happens to NVSwitches, NICs and disks"
    remedy = "Replace the host."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    requires = (PciBus,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        devices = [device for device in facts.need(PciBus).devices if device.class_id not in _GPU_CLASSES]
        dead = [device for device in devices if device.dead]
        for device in dead:
            kind = _NEEDED.get(str(device.class_id))
            name = kind or f"device of class {device.class_id}"
            message = f"the {name} is on the bus, but its configuration space reads all ones (rev ff)"
            # What the job does not need, a laptop's sleeping card for one, warns.
            verdict = Verdict.FAIL if kind else Verdict.WARN
            yield self.finding(verdict, device.address, message, measured="dead", expected="answers on PCI")
        if not devices:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "nothing but GPUs is on the PCI bus")
        elif not dead:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(devices), 'device')} besides the GPUs answer")


class PcieGeneration(Check):
    """No GPU's PCIe link is held below generation 3 by board, slot or firmware, or below that of its peers."""

    id = "pcie.generation"
    title = "PCIe generation that the link can reach"
    why = (
        "Idle links sleep at generation 1; one that cannot go higher feeds its GPU at a fraction of the speed for ever."
    )
    source = "DCGM 4.6.0 diag-skus.yaml.in: generation 3 or more for every board in use; captures of T4 to H100"
    remedy = "Look at the slot's setting in the firmware; reboot once, and if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (GpuInventory,)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        told = {gpu.label: gpu.pcie.generation_max for gpu in facts.need(GpuInventory).gpus}
        known = {label: value for label, value in told.items() if not isinstance(value, Missing)}
        if not told:
            yield self.finding(Verdict.UNKNOWN, "host", "no GPU answered, so no link was looked at")
            return
        for label, value in told.items():
            if isinstance(value, Missing) and not not_there(value):
                yield self.missing(label, "highest PCIe generation", value)
        if not known:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the driver does not tell the highest PCIe generation")
            return
        best = max(known.values())
        wanted = max(_LEAST_GENERATION, best)
        low = {label: value for label, value in known.items() if value < wanted}
        for label, value in low.items():
            # All of them low may be how a hypervisor shows them, one of them its slot in a machine of one's own: a
            # warning. What it costs the burn-in measures.
            verdict = Verdict.FAIL if value < best and equal_slots(expected) else Verdict.WARN
            message = f"its PCIe link can reach generation {value} only"
            found, asked = f"generation {value}", f"generation {wanted}"
            yield self.finding(verdict, label, message, measured=found, expected=asked)
        if not low:
            yield self.finding(
                Verdict.PASS, "host", f"generation {best} can be reached by {counted(len(known), 'GPU')}"
            )


class AcsOff(Check):
    """On a machine without a hypervisor no PCIe switch sends what GPUs and NICs say to each other to the processor."""

    id = "pcie.acs"
    title = "Access Control Services"
    why = "With ACS on, copies between GPUs and NICs behind one switch go up to the processor and back, or hang."
    source = (
        "NCCL user guide 2.26.2, troubleshooting: PCI Access Control Services (read 2026-11-30); gpud 4a8de33a checks "
        "it on bare metal; which bits redirect, and which bridges matter: Linux 4.20, drivers/pci/p2pdma.c"
    )
    remedy = "Turn ACS off in the firmware, or with setpci at boot; keep it where the host runs virtual machines."
    fault_class = FaultClass.CONFIGURATION
    requires = (HostState, AcsControls)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if _is_guest(facts, expected):
            yield self.finding(Verdict.NOT_APPLICABLE, "host", _GUEST)
            return
        acs = facts.need(AcsControls)
        pairs = _pairs(facts, acs)
        concerned = set(acs.controls) if pairs is None else {bridge for ways in pairs for bridge in ways}
        controls = {address: value for address, value in acs.controls.items() if address in concerned}
        unread = [address for address, value in controls.items() if isinstance(value, Missing)]
        on = [a for a, value in controls.items() if not isinstance(value, Missing) and value & _REDIRECT]
        if on:
            message = f"ACS redirects on {counted(len(on), 'bridge')}: {listed(on)}"
            yield self.finding(Verdict.WARN, "host", message, measured="on", expected="off")
        elif unread:
            message = f"ACS of {counted(len(unread), 'bridge')} could not be read: {listed(unread)}"
            yield self.finding(Verdict.UNKNOWN, "host", message, measured="not read", expected="off")
        elif pairs == []:
            message = "no GPU shares a PCIe switch with another GPU or a network card"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
        else:
            yield self.finding(Verdict.PASS, "host", f"no bridge redirects ({len(controls)} have ACS)", measured="off")


class Iommu(Check):
    """On a machine without a hypervisor the IOMMU lets the GPUs' accesses through as they are."""

    id = "pcie.iommu"
    title = "IOMMU state"
    why = "An IOMMU that translates every access sends what GPUs and NICs say to each other through the processor."
    source = (
        "NCCL user guide 2.26.2, troubleshooting: PCI Access Control Services (read 2026-11-30); Linux 5.11, "
        "/sys/kernel/iommu_groups/*/type"
    )
    remedy = "Boot with iommu=pt, on Arm with iommu.passthrough=1; leave it where the host runs virtual machines."
    fault_class = FaultClass.CONFIGURATION
    requires = (HostState, AcsControls)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if _is_guest(facts, expected):
            yield self.finding(Verdict.NOT_APPLICABLE, "host", _GUEST)
            return
        types = facts.need(AcsControls).iommu
        translated = [address for address, kind in types.items() if kind in _TRANSLATED]
        unread = [address for address, kind in types.items() if isinstance(kind, Missing)]
        seen = listed(sorted({str(kind) for kind in types.values()}))
        if translated:
            message = f"it translates every access of {counted(len(translated), 'GPU')}: {listed(translated)}"
            yield self.finding(Verdict.WARN, "host", message, measured=seen, expected="identity, or none")
        elif unread or not types:
            which = f"{counted(len(unread), 'GPU')}: {listed(unread)}" if unread else "any GPU"
            yield self.finding(Verdict.UNKNOWN, "host", f"it is not told how it treats {which}")
        else:
            yield self.finding(Verdict.PASS, "host", f"it passes {counted(len(types), 'GPU')} through", measured=seen)


def _is_guest(facts: Facts, expected: Expectation) -> bool:
    """By the processor's word; where it has none (Arm), by the type: a cloud's that is not named bare metal."""
    profile = expected.profile
    if facts.need(HostState).virtual or profile is None or profile.architecture == "x86_64":
        return facts.need(HostState).virtual
    return profile.provider != "local" and not profile.instance_type.endswith(".metal")


def _pairs(facts: Facts, acs: AcsControls) -> list[list[str]] | None:
    """The bridges on the way of each pair of devices below one switch; None where the tree of the bus is not told."""
    if not acs.buses or PciBus not in facts:
        return None
    ways = (between(acs.buses, one.address, two.address) for one, two in peers(facts.need(PciBus)))
    return [way for way in ways if way]
