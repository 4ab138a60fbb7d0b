"""What a listing of the PCI bus means where nobody says which machine it is from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.pci_paths import between, peers
from validation.checks.wording import counted, listed
from validation.facts.host import PciBus, PciDevice
from validation.facts.lspci import AcsLines
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_BRIDGE = "0604"
_NOUVEAU = "nouveau"
_GIVEN_AWAY = ("vfio-pci", "pci-stub", "xen-pciback")
# Vendors of the devices that a hypervisor shows its guests: QEMU and virtio, VMware, Hyper-V.
_HYPERVISORS = ("1af4", "1b36", "15ad", "1414")
_ACS_SOURCE = (
    "NCCL user guide 2.26.2, Troubleshooting, PCI Access Control Services (read 2026-11-30); the bits that redirect: "
    "drivers/pci/p2pdma.c of Linux 4.20"
)


class PciAlone(Check):
    """What a listing of the PCI bus means alone: the lanes of each GPU's link, and which driver holds it."""

    id = "tool.lspci"
    title = "PCI functions alone"
    why = "A link that trained at fewer lanes halves every copy, and a GPU that another driver holds is no GPU to CUDA."
    source = "LnkCap, LnkSta and driver lines of lspci -vvv on H100 and RTX hosts; aws-k8s-tester PR 806 (x8 by design)"
    remedy = "Reboot once; if it repeats, replace the host, or reseat the card of your own machine."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (PciBus,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        devices, gpus = facts.need(PciBus).devices, facts.need(PciBus).nvidia_gpus
        found = [*self._links(gpus, expected), *self._drivers(gpus)]
        yield from found
        alive = [gpu for gpu in gpus if not gpu.dead]
        if not gpus:
            message = f"no NVIDIA GPU among {counted(len(devices), 'PCI function')}"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
        elif not found and len(alive) == len(gpus):
            yield self.finding(Verdict.PASS, "host", f"{counted(len(gpus), 'NVIDIA GPU')} on the PCI bus{_lanes(gpus)}")

    def _links(self, gpus: Sequence[PciDevice], expected: Expectation) -> Iterable[Finding]:
        wanted = expected.profile.links.pcie_width if expected.profile else None
        for gpu in gpus:
            width, most = gpu.link_width, gpu.link_width_max
            if isinstance(width, Missing) and width.reason is Reason.COULD_NOT_LOOK:
                remedy = "List again as root: sudo lspci -nnvvv."
                yield self.finding(Verdict.UNKNOWN, gpu.address, f"its link: {width}", remedy=remedy)
            elif isinstance(width, Missing) or (wanted is None and isinstance(most, Missing)):
                continue
            elif wanted is not None and width < wanted.value:
                want = f"x{wanted.value}"
                message = f"PCIe link is x{width}"
                yield self.finding(Verdict.FAIL, gpu.address, message, measured=f"x{width}", expected=want)
            elif wanted is None and not isinstance(most, Missing) and width < most:
                message = (
                    f"PCIe link is x{width} of x{most}; by design where every GPU of its kind has that (g4dn, g5, g6)"
                )
                yield self.finding(Verdict.WARN, gpu.address, message, measured=f"x{width}", expected=f"x{most}")

    def _drivers(self, gpus: Sequence[PciDevice]) -> Iterable[Finding]:
        for gpu in gpus:
            if gpu.driver == _NOUVEAU:
                message = "nouveau holds it, so NVIDIA's driver cannot"
                remedy = "Blacklist nouveau, rebuild the initramfs, reboot, and load the nvidia module."
                fault = FaultClass.SOFTWARE
                yield self.finding(Verdict.FAIL, gpu.address, message, remedy=remedy, fault_class=fault)
            elif gpu.driver in _GIVEN_AWAY:
                message = f"{gpu.driver} holds it: it is set aside for a virtual machine, and this host cannot use it"
                remedy = "Give it back to the nvidia driver if this host is to use it."
                yield self.finding(Verdict.WARN, gpu.address, message, remedy=remedy)


def _lanes(gpus: Sequence[PciDevice]) -> str:
    widths = Counter(gpu.link_width for gpu in gpus if not isinstance(gpu.link_width, Missing))
    return f", links {listed(f'x{width} ({count})' for width, count in sorted(widths.items()))}" if widths else ""


class AcsAlone(Check):
    """What ``lspci -vvv`` says of ACS: whether a switch sends what a GPU and a peer say to each other to the CPU."""

    id = "tool.acs"
    title = "ACS alone"
    why = (
        "With ACS on, a switch sends what GPUs and network cards say to each other up to the CPU: GPUDirect gets slow, "
        "or hangs. Virtual machines need it, so there it is not judged."
    )
    source = _ACS_SOURCE
    remedy = (
        "Where this host runs no virtual machines: switch ACS off in the BIOS, or after every boot with "
        "setpci -s BRIDGE ECAP_ACS+0x6.w=0000."
    )
    fault_class = FaultClass.CONFIGURATION
    requires = (PciBus,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        bus = facts.need(PciBus)
        if not bus.nvidia_gpus or all(isinstance(device.buses, Missing) for device in bus.devices):
            return  # a listing without -vvv does not tell what lies behind the bridges
        pairs = [(one, two, ports) for one, two in peers(bus) if (ports := _between(bus, one, two))]
        redirected = [pair for pair in pairs if any(map(_redirects, pair[2]))]
        unread = sorted({port.address for _, _, ports in pairs for port in ports if _unread(port)})
        if any(device.vendor_id in _HYPERVISORS for device in bus.devices):
            message = "a virtual machine: what its switches do is the hypervisor's"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
        elif redirected:
            yield self._redirected(redirected)
        elif unread:
            remedy = "List again as root: sudo lspci -nnvvv."
            message = f"ACS of {listed(unread, limit=3)} cannot be read without root"
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy)
        elif pairs:
            message = f"no switch redirects between the {counted(len(pairs), 'pair')} of devices below one"
            yield self.finding(Verdict.PASS, "host", message)
        else:
            message = "no GPU has a peer below the same PCIe switch; between root ports all goes through the CPU anyway"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)

    def _redirected(self, pairs: Sequence[tuple[PciDevice, PciDevice, list[PciDevice]]]) -> Finding:
        ports = sorted({port.address for _, _, between in pairs for port in between if _redirects(port)})
        devices = sorted({device.address for one, two, _ in pairs for device in (one, two)})
        verb = "sends" if len(ports) == 1 else "send"
        message = (
            f"{counted(len(ports), 'bridge')} ({listed(ports, limit=4)}) {verb} up to the CPU what "
            f"{counted(len(pairs), 'pair')} of devices say to each other: {listed(devices, limit=4)}"
        )
        return self.finding(Verdict.WARN, "host", message, measured="ACS redirects", expected="no redirect")


class AcsLinesAlone(Check):
    """What ``lspci -vvv | grep ACSCtl`` says: whether any function redirects, not which."""

    id = "tool.acs_lines"
    title = "ACS controls alone"
    why = "One switch that redirects is enough to slow GPUDirect; a root port that does may matter to nobody."
    source = _ACS_SOURCE
    remedy = "Give the whole of lspci -vvv, as root: only that tells whether the bridges above the GPUs are meant."
    fault_class = FaultClass.CONFIGURATION
    requires = (AcsLines,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        controls = facts.need(AcsLines).controls
        redirecting = [acs for acs in controls if acs.redirects]
        if redirecting:
            message = f"{len(redirecting)} of {counted(len(controls), 'function')} redirect (ReqRedir+ or CmpltRedir+)"
            yield self.finding(Verdict.WARN, "host", message, measured="ACS redirects", expected="no redirect")
        else:
            yield self.finding(Verdict.PASS, "host", f"none of {counted(len(controls), 'function')} redirects")


def _between(bus: PciBus, one: PciDevice, two: PciDevice) -> list[PciDevice]:
    bridges = {
        device.address: device.buses
        for device in bus.devices
        if device.class_id == _BRIDGE and not isinstance(device.buses, Missing)
    }
    found = set(between(bridges, one.address, two.address))
    return [device for device in bus.devices if device.address in found]


def _redirects(port: PciDevice) -> bool:
    return not isinstance(port.acs, Missing) and port.acs.redirects


def _unread(port: PciDevice) -> bool:
    return isinstance(port.acs, Missing) and port.acs.reason is Reason.COULD_NOT_LOOK
