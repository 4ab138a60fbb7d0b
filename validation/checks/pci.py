"""The PCI bus around the GPUs: devices that no longer answer, and bridges that send peers through the processor."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.host import PciBus
from validation.facts.host_state import AcsControls, HostState
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_GPU_CLASSES = ("0300", "0302")
# What a job needs besides its GPUs: NVSwitches and other bridges of NVIDIA, network, disks.
_NEEDED = {"0680": "NVSwitch", "0200": "network card", "0207": "InfiniBand card", "0108": "NVMe disk"}
_REDIRECT = 0x0004 | 0x0008  # P2P Request Redirect and P2P Completion Redirect of the ACS control register


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


class AcsOff(Check):
    """On a machine without a hypervisor no PCI bridge sends what GPUs say to each other through the processor."""

    id = "pcie.acs"
    title = "Access Control Services"
    why = "With ACS on, copies between GPUs and NICs behind one switch go up to the processor and back, or hang."
    source = "NCCL user guide, troubleshooting: PCI Access Control Services; gpud 4a8de33a checks it on bare metal"
    remedy = "Turn ACS off in the firmware, or with setpci at boot; keep it where the host runs virtual machines."
    fault_class = FaultClass.CONFIGURATION
    requires = (HostState, AcsControls)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        if facts.need(HostState).virtual:
            message = "a virtual machine: how its bridges are set is the hypervisor's business"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            return
        controls = facts.need(AcsControls).controls
        unread = [address for address, value in controls.items() if isinstance(value, Missing)]
        on = [a for a, value in controls.items() if not isinstance(value, Missing) and value & _REDIRECT]
        if on:
            message = f"ACS redirects on {counted(len(on), 'bridge')}: {listed(on)}"
            yield self.finding(Verdict.WARN, "host", message, measured="on", expected="off")
        elif unread:
            message = f"ACS of {counted(len(unread), 'bridge')} could not be read: {listed(unread)}"
            yield self.finding(Verdict.UNKNOWN, "host", message, measured="not read", expected="off")
        else:
            yield self.finding(Verdict.PASS, "host", f"no bridge redirects ({len(controls)} have ACS)", measured="off")
