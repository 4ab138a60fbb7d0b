"""Does the driver work, is it the one that was asked for, and do its halves fit?"""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import at_least, counted, is_version, profile_of, same_version
from validation.facts.gpu import DriverFault, GpuInventory
from validation.facts.host import DriverModule, KernelLog
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

# What each fault of the driver means, and what mends it.
_FAULTS: dict[str, tuple[str, FaultClass, str]] = {
    "library-mismatch": (
        "kernel module and user-space library have different versions",
        FaultClass.SOFTWARE,
        "Reboot, so that the module of the installed driver is loaded, and keep unattended upgrades off the driver.",
    ),
    "not-loaded": (
        "the kernel module is not loaded",
        FaultClass.SOFTWARE,
        "Load it (modprobe nvidia); look for nouveau, Secure Boot, and a DKMS build that failed for this kernel.",
    ),
    "no-access": (
        "the driver's library may not talk to the driver",
        FaultClass.SOFTWARE,
        "In a container: start it again, which gives it back its devices after a daemon-reload; on the host: as root.",
    ),
    "no-library": (
        "the driver's library is not there",
        FaultClass.SOFTWARE,
        "Install the NVIDIA driver; a container gets its library from the host, by NVIDIA's runtime or CDI.",
    ),
    "no-devices": ("the driver finds no GPU", FaultClass.REPLACE_NOW, "Replace the host."),
    "gpu-lost": ("a GPU is lost", FaultClass.REPLACE_NOW, "Replace the host."),
    "fabric-not-ready": (
        "CUDA cannot start: the NVLink fabric is not initialised (error 802)",
        FaultClass.SOFTWARE,
        "Start Fabric Manager in exactly the driver's version, wait a minute, and validate again.",
    ),
}


class DriverLoaded(Check):
    """The driver answers at all."""

    id = "driver.loaded"
    title = "Driver answers"
    why = "Without the driver nothing else can be looked at; its own words name the reason."
    source = "nvidia-smi exit status 6, 9, 15, 18; NVML error names; NVIDIA/NVSentinel PR 808 (CUDA 802)"
    remedy = "Install or load the NVIDIA driver."
    fault_class = FaultClass.SOFTWARE
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        fault = facts.need(DriverFault) if DriverFault in facts else None
        if fault is not None and fault.kind != "inforom-corrupt":  # gpu.inforom speaks of that: the driver works
            if fault.kind == "no-matrix":
                yield self._no_matrix(fault)
                return
            meaning, fault_class, remedy = _FAULTS.get(fault.kind, (fault.kind, self.fault_class, self.remedy))
            yield self.finding(
                Verdict.FAIL,
                "host",
                f"{meaning}: {fault.text}",
                measured=fault.kind,
                expected="the driver answers",
                fault_class=fault_class,
                remedy=remedy,
                evidence=fault.source,
            )
            return
        inventory = facts.need(GpuInventory)
        version = inventory.driver_version
        if isinstance(version, Missing):
            yield self.missing("host", "driver version", version)
        else:
            message = f"driver {version} answers for {counted(len(inventory.gpus), 'GPU')}"
            yield self.finding(Verdict.PASS, "host", message, measured=version)

    def _no_matrix(self, fault: DriverFault) -> Finding:
        """Not FAIL: a lost GPU does this, and so does a software RDMA device (NVIDIA/NVSentinel#1485)."""
        return self.finding(
            Verdict.UNKNOWN,
            "host",
            f"nvidia-smi could not ask about every pair, as where a GPU is lost: {fault.text}",
            measured=fault.kind,
            expected="a matrix",
            remedy="Look for a lost GPU with nvidia-smi -q; where none is lost, for a software RDMA device.",
            evidence=fault.source,
        )


class DriverVersion(Check):
    """The driver is the pinned one, and not older than the board needs."""

    id = "driver.version"
    title = "Driver version"
    why = "A driver that changed under the stack changes performance, bugs and the CUDA versions that run."
    source = "the stack's pin; lowest driver of the board: NVIDIA MIG user guide 620, open-gpu-kernel-modules README"
    remedy = "Install the pinned driver, or change the pin; then reboot."
    fault_class = FaultClass.SOFTWARE
    requires = (GpuInventory,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        version = facts.need(GpuInventory).driver_version
        pin = expected.software.driver
        if isinstance(version, Missing):
            yield self.missing("host", "driver version", version, expected=pin or "")
            return
        if pin and not same_version(version, pin):
            yield self.finding(
                Verdict.FAIL,
                "host",
                f"driver {version} runs, {pin} is pinned",
                measured=version,
                expected=pin,
                source=f"software profile {expected.software.name}",
            )
            return
        if not is_version(version):
            yield self.finding(Verdict.UNKNOWN, "host", f"driver version {version!r} is not one to compare")
            return
        floor = profile_of(expected).needs.min_driver
        if floor and not at_least(version, floor.value):
            yield self.finding(
                Verdict.WARN,
                "host",
                f"driver {version} is older than the first one known to run this board",
                measured=version,
                expected=f"{floor.value} or newer",
                source=expected.source_of(floor.source),
                remedy="Install a newer driver.",
            )
            return
        pinned = "as pinned" if pin else "no version is pinned"
        yield self.finding(Verdict.PASS, "host", f"driver {version}, {pinned}", measured=version, expected=pin or "")


class LibraryMatch(Check):
    """The loaded kernel module and the user-space library are of one version."""

    id = "driver.library_match"
    title = "Kernel module and library match"
    why = "An upgrade under a loaded module stops every new CUDA program, and reads like a missing GPU."
    source = "NVML: Driver/library version mismatch; NVRM: API mismatch"
    remedy = (
        "Reboot, so that the module of the installed driver is loaded, and keep unattended upgrades off the driver."
    )
    fault_class = FaultClass.SOFTWARE
    requires = (DriverModule, GpuInventory)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        fault = facts.need(DriverFault) if DriverFault in facts else None
        if fault is not None and fault.kind == "library-mismatch":
            loaded = facts.need(DriverModule).version if DriverModule in facts else "unknown"
            yield self._mismatch(f"{fault.text} (loaded kernel module: {loaded})", fault.source)
            return
        module = facts.need(DriverModule)
        version = facts.need(GpuInventory).driver_version
        if isinstance(version, Missing):
            yield self.missing("host", "driver version of the library", version, expected=module.version)
        elif version != module.version:
            yield self._mismatch(f"kernel module {module.version}, library {version}", "driver-module")
        elif KernelLog in facts and (events := [e for e in facts.need(KernelLog).events if e.kind == "api-mismatch"]):
            message = (
                f"the kernel log has an API mismatch since boot, although both are {version} now: {events[-1].text}"
            )
            yield self.finding(Verdict.WARN, "host", message, evidence="kernel-log")
        else:
            message = f"kernel module and library are both {version}"
            yield self.finding(Verdict.PASS, "host", message, measured=version, expected=module.version)

    def _mismatch(self, message: str, evidence: str) -> Finding:
        return self.finding(
            Verdict.FAIL, "host", message, measured="mismatch", expected="one version", evidence=evidence
        )
