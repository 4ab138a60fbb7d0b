"""Is the machine around the GPUs the one that was asked for: processor, kernel, disks, RDMA devices?"""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import THE_STACK, Check
from validation.checks.wording import counted, listed, profile_of
from validation.facts.host import BlockDevices, HostInfo, NumaMap, RdmaDevices
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_AMAZON = "1d0f"
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
_SIZE_SHARE = 0.97  # a disk of 3800 GB shows as 3.80e12 bytes; 3 % for what the device keeps


class Architecture(Check):
    """The host has the processor architecture of its type."""

    id = "host.architecture"
    title = "Processor architecture"
    why = "Another architecture means another machine than the one asked for."
    source = "EC2 DescribeInstanceTypes"
    remedy = "Correct the instance type or the image."
    fault_class = FaultClass.CONFIGURATION
    requires = (HostInfo,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        found = facts.need(HostInfo).architecture
        wanted = profile_of(expected).architecture
        same = _ARCHITECTURES.get(found) == wanted
        verdict = Verdict.PASS if same else Verdict.FAIL if found in _ARCHITECTURES else Verdict.UNKNOWN
        message = f"the processor is {found}"
        yield self.finding(verdict, "host", message, measured=found, expected=wanted, source="the profile")


class Cpus(Check):
    """The host has the CPUs of its type."""

    id = "host.vcpus"
    title = "Number of CPUs"
    why = "Fewer CPUs than the type has means another type, or CPUs that did not come up."
    source = "EC2 DescribeInstanceTypes"
    remedy = "Look at the stack's CPU options; if it asked for none, reboot once, then replace the host."
    fault_class = FaultClass.CONFIGURATION
    requires = (NumaMap,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        wanted = profile_of(expected).vcpus
        found = sum(len(cpus) for cpus in facts.need(NumaMap).cpus.values())
        if wanted is None:
            yield self.unspecified("host", "number of CPUs", expected, counted(found, "CPU"))
            return
        source = expected.source_of(wanted.source)
        # A warning, not a failure: CPU options and thread settings of the stack change the number on purpose.
        verdict = Verdict.UNKNOWN if not found else Verdict.PASS if found == wanted.value else Verdict.WARN
        message = f"{counted(found, 'CPU')}"
        yield self.finding(verdict, "host", message, measured=str(found), expected=str(wanted.value), source=source)


class KernelRelease(Check):
    """The kernel is the pinned one."""

    id = "host.kernel"
    title = "Kernel release"
    why = "Another kernel than the image was built for may lack its driver modules after the next boot."
    source = "the software profile's pin"
    remedy = "Boot the pinned kernel, or change the pin."
    fault_class = FaultClass.SOFTWARE
    requires = (HostInfo,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        found = facts.need(HostInfo).kernel
        pin = expected.software.kernel
        source = f"software profile {expected.software.name}"
        if not pin:
            yield self.finding(Verdict.PASS, "host", f"kernel {found}; no release is pinned", measured=found)
        elif found == pin:
            yield self.finding(Verdict.PASS, "host", f"kernel {found}, as pinned", measured=found, expected=pin)
        else:
            # The image's notes name one kernel; security updates move it. The modules loaded, so it runs: a warning.
            message = f"kernel {found} runs, {pin} is pinned"
            yield self.finding(Verdict.WARN, "host", message, measured=found, expected=pin, source=source)


class InstanceStore(Check):
    """The local disks of the type are there, in their size."""

    id = "disk.instance_store"
    title = "Instance store"
    why = "A missing local disk shows when the first job fills the others."
    source = "EC2 DescribeInstanceTypes; disks are told by model, since their index says nothing"
    remedy = "Replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (BlockDevices,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        storage = profile_of(expected).storage
        wanted = storage.instance_store_count
        if wanted is None:
            yield self.unspecified("host", "number of local disks", expected)
            return
        source = expected.source_of(wanted.source)
        if wanted.value == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "this type has no local disk", source=source)
            return
        disks = facts.need(BlockDevices).instance_store
        if len(disks) != wanted.value:
            verdict = Verdict.FAIL if len(disks) < wanted.value else Verdict.WARN
            message = f"{len(disks)} of {counted(wanted.value, 'local disk')}"
            want = str(wanted.value)
            yield self.finding(verdict, "host", message, measured=str(len(disks)), expected=want, source=source)
            return
        size = storage.instance_store_gb
        small = [
            disk.name
            for disk in disks
            if size and not isinstance(disk.size_bytes, Missing) and disk.size_bytes < _SIZE_SHARE * size.value * 1e9
        ]
        unsized = [disk.name for disk in disks if size and isinstance(disk.size_bytes, Missing)]
        if unsized:
            yield self.finding(Verdict.UNKNOWN, "host", f"size not told: {listed(unsized)}", source=source)
        elif small and size:
            message = f"smaller than {size.value} GB: {listed(small)}"
            yield self.finding(Verdict.FAIL, "host", message, expected=f"{size.value} GB each", source=source)
        else:
            each = f" of {size.value} GB" if size else ""
            yield self.finding(Verdict.PASS, "host", f"{counted(wanted.value, 'local disk')}{each}", source=source)


class EfaDevices(Check):
    """Each EFA that the stack asked for is an RDMA device with an active port."""

    id = "efa.rdma"
    title = "EFA as RDMA devices"
    why = "libfabric and the kernel must agree; a port that is down is there and carries nothing."
    source = "ibv_devinfo of p4d: zero GUIDs and firmware 0.0.0.0 are normal on EFA and not looked at"
    remedy = "Load the EFA driver again; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (RdmaDevices,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        wanted = expected.efa_count
        if wanted == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the stack asked for no EFA")
            return
        devices = [d for d in facts.need(RdmaDevices).devices if _AMAZON in str(d.vendor_id).lower()]
        down = [d.name for d in devices if isinstance(d.state, str) and "ACTIVE" not in d.state.upper()]
        silent = [d for d in devices if isinstance(d.state, Missing)]
        if len(devices) < wanted:
            message = f"{len(devices)} of {counted(wanted, 'EFA RDMA device')}"
            values = (str(len(devices)), str(wanted))
            yield self.finding(Verdict.FAIL, "host", message, measured=values[0], expected=values[1], source=THE_STACK)
        elif down:
            message = f"port not active: {listed(down)}"
            yield self.finding(
                Verdict.FAIL, "host", message, measured=counted(len(down), "port"), expected="all active"
            )
        elif silent:
            yield self.finding(Verdict.UNKNOWN, "host", f"port state not told: {listed(d.name for d in silent)}")
        else:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(devices), 'EFA RDMA device')}, ports active")
