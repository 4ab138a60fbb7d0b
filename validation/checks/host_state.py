"""Is the host around the GPUs in a state to work: memory, disk space, clock, processes, and no driver in the way?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed, profile_of
from validation.facts.host_state import Clock, Filesystem, Filesystems, HostState, Mount, Processes
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_KIB = 2**20  # in a GiB
# The kernel keeps 1.6 % of the memory for its own table of pages, firmware and crash dumps some more.
_MEMORY_GOOD, _MEMORY_LEAST = 0.92, 0.80
_FULL_SHARE = 0.95  # imbue-ai/cluster-health: a disk that full is reported
_FREE_KIB = 500 * 1024  # gpud 4a8de33a: the least free space of the root file system
_WRITABLE = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "overlay")
# Where a program that starts needs to write. A full data volume may be meant to be full.
_NEEDED = ("/", "/tmp", "/var", "/var/lib", "/var/log", "/var/tmp", "/run", "/opt", "/home")  # noqa: S108 - names only
_ZOMBIES_MAX = 1000  # gpud 4a8de33a


class HostMemory(Check):
    """The host has the memory of its type."""

    id = "host.memory"
    title = "Memory of the host"
    why = "A module that did not come up leaves a machine that works until the job has loaded its data."
    source = "EC2 DescribeInstanceTypes and the provider's tables; mej/nhc and azurehpc-health-checks check it"
    remedy = "Reboot once; if it repeats, replace the host. Look for mem= on the kernel's command line first."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (HostState,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        state = facts.need(HostState)
        wanted = profile_of(expected).memory_gib
        found = state.memory_kib / _KIB
        measured = f"{found:.1f} GiB"
        if wanted is None:
            message = f"{measured}; no source tells how much this type has"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message, measured=measured)
            return
        share = found / wanted.value
        verdict = Verdict.PASS if share >= _MEMORY_GOOD else Verdict.WARN if share >= _MEMORY_LEAST else Verdict.FAIL
        limit = f", and the kernel was started with {state.command_line}" if "mem=" in state.command_line else ""
        yield self.finding(
            verdict,
            "host",
            f"{measured} of {wanted.value:g} GiB{limit if verdict is not Verdict.PASS else ''}",
            measured=measured,
            expected=f"{wanted.value:g} GiB, less what kernel and firmware keep",
            source=expected.source_of(wanted.source),
        )


class Dimms(Check):
    """No memory controller has counted an error that it could not correct."""

    id = "memory.dimm"
    title = "Errors of the host's memory"
    why = "A memory module with uncorrectable errors kills whatever lies there, and looks like a bug of the program."
    source = "Linux EDAC (admin-guide/ras): /sys/devices/system/edac; guests have no controller of their own"
    remedy = "Replace the host, or the memory module of your own machine."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    requires = (HostState,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        controllers = facts.need(HostState).controllers
        if not controllers:
            message = "the host shows no memory controller, as in a virtual machine"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            return
        trouble = False
        for controller in controllers:
            count = controller.uncorrected
            if isinstance(count, Missing):
                trouble = True
                yield self.missing(controller.name, "uncorrected memory errors", count, expected="0")
            elif count:
                trouble = True
                message = f"{counted(count, 'uncorrected memory error')} since boot"
                yield self.finding(Verdict.FAIL, controller.name, message, measured=str(count), expected="0")
        if not trouble:
            corrected = sum(c.corrected for c in controllers if not isinstance(c.corrected, Missing))
            message = f"no uncorrected error on {counted(len(controllers), 'memory controller')}, {corrected} corrected"
            yield self.finding(Verdict.PASS, "host", message)


class DiskSpace(Check):
    """The file systems that programs write to have room, and can be written."""

    id = "disk.space"
    title = "Disk space"
    why = "Without room for logs and temporary files containers do not start, and nobody can log what happened."
    source = "gpud 4a8de33a (500 MB of the root file system); imbue-ai/cluster-health (95 %)"
    remedy = "Make room, or give the host a larger root volume."
    fault_class = FaultClass.CONFIGURATION
    requires = (Filesystems, HostState)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        mounts = {mount.target: mount for mount in facts.need(HostState).mounts}
        rows = [row for row in facts.need(Filesystems).rows if self._writable(row, mounts)]
        found = [*self._full(rows), *self._read_only(mounts)]
        yield from found
        root = next((row for row in rows if row.target == "/"), None)
        if root is None:
            yield self.finding(Verdict.UNKNOWN, "host", "df does not show the root file system")
        elif not found:
            free = root.free_kib / _KIB
            message = f"{free:.1f} GiB free on /, no other file system of {len(rows)} is full"
            yield self.finding(Verdict.PASS, "host", message, measured=f"{free:.1f} GiB")

    def _writable(self, row: Filesystem, mounts: Mapping[str, Mount]) -> bool:
        return row.target not in mounts or mounts[row.target].kind in _WRITABLE

    def _full(self, rows: Iterable[Filesystem]) -> Iterator[Finding]:
        for row in rows:
            used = 1 - row.free_kib / row.size_kib if row.size_kib else 0.0
            needed = row.target in _NEEDED
            least = needed and row.free_kib < _FREE_KIB < row.size_kib
            if least or used >= _FULL_SHARE:
                message = f"{row.target} is {used:.0%} full, {max(row.free_kib, 0) / 1024:.0f} MiB are free"
                verdict = Verdict.FAIL if least else Verdict.WARN
                yield self.finding(
                    verdict, "host", message, measured=f"{used:.0%}", expected=f"less than {_FULL_SHARE:.0%}"
                )

    def _read_only(self, mounts: Mapping[str, Mount]) -> Iterator[Finding]:
        locked = [target for target, mount in mounts.items() if target in _NEEDED and mount.read_only]
        locked = [target for target in locked if mounts[target].kind in _WRITABLE]
        if locked:  # a file system that went read-only after errors, the kernel log tells: kernel.events
            message = f"mounted read-only: {listed(locked)}; by design on images such as Bottlerocket"
            yield self.finding(Verdict.WARN, "host", message, measured="read-only", expected="writable")


class StuckProcesses(Check):
    """No process is stuck in the kernel, and no flood of dead ones waits to be collected."""

    id = "host.processes"
    title = "Stuck processes"
    why = "A process in uninterruptible sleep cannot be killed: it holds a GPU, a disk or a file server that is gone."
    source = "facebookresearch/gcm (D state); gpud 4a8de33a (1,000 zombies)"
    remedy = "Look at what the process waits for (/proc/PID/stack); if it does not end, reboot the host."
    fault_class = FaultClass.OPERATOR
    requires = (Processes,)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        found = facts.need(Processes)
        # A warning: a disk that is busy does this for a moment too. What hangs the driver, the driver's tools show.
        if found.blocked:
            names = listed(f"{name} ({pid})" for pid, name in found.blocked)
            message = f"in uninterruptible sleep: {names}"
            yield self.finding(Verdict.WARN, "host", message, measured=str(len(found.blocked)), expected="0")
        if found.zombies >= _ZOMBIES_MAX:
            message = f"{found.zombies} of {found.count} processes are zombies"
            expected_text = f"less than {_ZOMBIES_MAX}"
            yield self.finding(Verdict.WARN, "host", message, measured=str(found.zombies), expected=expected_text)
        if not found.blocked and found.zombies < _ZOMBIES_MAX:
            message = f"none of {found.count} processes is stuck, {found.zombies} wait to be collected"
            yield self.finding(Verdict.PASS, "host", message)


class ClockHeld(Check):
    """The host's clock is held by a time source."""

    id = "host.clock"
    title = "Clock of the host"
    why = "A clock that drifts breaks certificates, signed requests to the cloud, licences, and the order of all logs."
    source = "systemd timedatectl; AWS signs requests with the time, and refuses those more than 5 minutes off"
    remedy = "Enable chrony or systemd-timesyncd in the image, and let it reach its server."
    fault_class = FaultClass.SOFTWARE
    requires = (Clock,)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        if facts.need(Clock).synchronised:
            yield self.finding(Verdict.PASS, "host", "the clock is synchronised", measured="synchronised")
        else:
            # A warning: in the first minute after boot no clock is yet.
            message = "the clock is held by no time source"
            yield self.finding(Verdict.WARN, "host", message, measured="not synchronised", expected="synchronised")


class Nouveau(Check):
    """The free driver nouveau is not loaded beside NVIDIA's."""

    id = "driver.nouveau"
    title = "No nouveau"
    why = "nouveau takes the GPU at boot, and NVIDIA's driver then finds none; which of them is first is chance."
    source = "DCGM 4.6.0 diagnostic, level 1 (deny list)"
    remedy = "Blacklist nouveau in the image (modprobe.d and initramfs), and reboot."
    fault_class = FaultClass.SOFTWARE
    requires = (HostState,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        if "nouveau" not in facts.need(HostState).modules:
            yield self.finding(Verdict.PASS, "host", "nouveau is not loaded", measured="not loaded")
            return
        # A warning while NVIDIA's driver holds every GPU, which gpu.pci_bus judges.
        yield self.finding(Verdict.WARN, "host", "nouveau is loaded", measured="loaded", expected="not loaded")
