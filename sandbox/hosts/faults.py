"""Faults by name. Each changes the state of a healthy host, so that every source tells the same story.

A fault carries what Kiln must make of it: the check that speaks, its verdict and fault class, and the exit code. A
fault on one GPU hits GPU3, or the last GPU where there are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from profiles.errors import ConfigError
from sandbox.hosts import system_faults
from sandbox.hosts.state import Gpu, Host, peers_of_links
from validation.verdict import FaultClass, Verdict

VICTIM = 3
DOWN_LINK = 7
UNCORRECTABLE = 2
LINK_ERRORS = 41
XID_PROCESS = "pid='<unknown>', name=<unknown>"
HW_SLOWDOWN, SW_THERMAL, HW_THERMAL = 0x8, 0x20, 0x40
OLD_DRIVER, OLD_CUDA = "535.104.05", "12.2"
NEW_LIBRARY = "580.126.09"


@dataclass(frozen=True)
class Fault:
    """One fault. ``check`` is None where nothing may be noticed; ``cured_by_reboot`` where a reboot ends it.

    ``leaves`` is what stays for good after that reboot, as a board keeps its error counts.
    """

    name: str
    summary: str
    apply: Callable[[Host], None]
    check: str | None
    verdict: Verdict
    fault_class: FaultClass | None = None
    cured_by_reboot: bool = False
    leaves: Callable[[Host], None] | None = None

    @property
    def exit_code(self) -> int:
        return {Verdict.FAIL: 1, Verdict.UNKNOWN: 3}.get(self.verdict, 0)


_registry: dict[str, Fault] = {}


def _fault(
    name: str,
    check: str | None,
    verdict: Verdict,
    fault_class: FaultClass | None = None,
    *,
    cured_by_reboot: bool = False,
    leaves: Callable[[Host], None] | None = None,
) -> Callable[[Callable[[Host], None]], Callable[[Host], None]]:
    def register(apply: Callable[[Host], None]) -> Callable[[Host], None]:
        summary = (apply.__doc__ or "").split("\n", 1)[0]
        _registry[name] = Fault(name, summary, apply, check, verdict, fault_class, cured_by_reboot, leaves)
        return apply

    return register


def _victim(host: Host, fault: str) -> Gpu:
    present = [gpu for gpu in host.gpus if not gpu.lost]
    if not present:
        raise _unfit(host, fault, "it has no GPU left")
    return present[min(VICTIM, len(present) - 1)]


def _unfit(host: Host, fault: str, why: str) -> ConfigError:
    return ConfigError(
        f"fault {fault!r} does not fit host {host.identity.name} ({host.identity.instance_type}): {why}",
        remedy="choose another fault: kiln sandbox fault --list",
    )


def _xid(host: Host, gpu: Gpu, text: str) -> None:
    """The lines the driver writes for an Xid: who the GPU is, then the event."""
    place = f"PCI:{gpu.address.rsplit('.', 1)[0]}"
    host.kernel_lines += [
        f"NVRM: GPU at {place}: {gpu.uuid}",
        f"NVRM: GPU Board Serial Number: {gpu.serial}",
        f"NVRM: Xid ({place}): {text}",
    ]


def _fell_off_the_bus(host: Host, gpu: Gpu) -> None:
    _xid(host, gpu, f"79, {XID_PROCESS}, GPU has fallen off the bus.")
    host.kernel_lines.append(f"NVRM: GPU {gpu.address}: GPU has fallen off the bus.")


@_fault("gpu-lost", "gpu.lost", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _gpu_lost(host: Host) -> None:
    """One GPU falls off the bus: NVML loses it, its configuration space reads all ones, Xid 79 is logged."""
    gpu = _victim(host, "gpu-lost")
    gpu.lost = True
    _fell_off_the_bus(host, gpu)


@_fault("gpu-missing", "gpu.count", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _gpu_missing(host: Host) -> None:
    """One GPU never appeared at boot: not on the bus, not in NVML, no Xid."""
    host.gpus.remove(_victim(host, "gpu-missing"))


@_fault("nvlink-down", "nvlink.links_active", Verdict.FAIL, FaultClass.REBOOT_ONCE, cured_by_reboot=True)
def _nvlink_down(host: Host) -> None:
    """One NVLink of one GPU did not train; its pairs are bonded by one link fewer."""
    gpu = _victim(host, "nvlink-down")
    if not gpu.links:
        raise _unfit(host, "nvlink-down", "its GPUs have no NVLink")
    link = min(DOWN_LINK, len(gpu.links) - 1)
    gpu.links[link] = False
    slot = peers_of_links(host.machine, gpu.slot)[link]
    for peer in host.gpus:
        if peer.slot == slot:  # without a switch the other end is a GPU, and sees the link down as well
            peer.links[peers_of_links(host.machine, peer.slot).index(gpu.slot)] = False


@_fault("xid-79", "kernel.xid", Verdict.FAIL, FaultClass.REPLACE_NOW, cured_by_reboot=True)
def _xid_79(host: Host) -> None:
    """The kernel log holds an Xid 79 of a GPU that answers again."""
    _fell_off_the_bus(host, _victim(host, "xid-79"))


@_fault("xid-13", "kernel.xid", Verdict.WARN, cured_by_reboot=True)
def _xid_13(host: Host) -> None:
    """The kernel log holds an Xid 13: an application's own fault."""
    _xid(
        host,
        _victim(host, "xid-13"),
        "13, pid=4242, name=train.py, Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address",
    )


def _old_ecc_errors(host: Host) -> None:
    _victim(host, "ecc-uncorrectable").errors.aggregate_uncorrected += UNCORRECTABLE


@_fault(
    "ecc-uncorrectable",
    "ecc.uncorrected",
    Verdict.FAIL,
    FaultClass.REBOOT_ONCE,
    cured_by_reboot=True,
    leaves=_old_ecc_errors,
)
def _ecc_uncorrectable(host: Host) -> None:
    """One GPU has counted uncorrectable errors of its memory, and says so in the kernel log."""
    gpu = _victim(host, "ecc-uncorrectable")
    gpu.errors.volatile_uncorrected += UNCORRECTABLE
    gpu.errors.aggregate_uncorrected += UNCORRECTABLE
    _xid(
        host,
        gpu,
        f"48, {XID_PROCESS}, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at "
        "physical partition 6, subpartition 0.",
    )


def _remapped(host: Host) -> None:
    _victim(host, "remap-pending").repairs.uncorrected += 1


@_fault(
    "remap-pending",
    "memory.row_remap",
    Verdict.FAIL,
    FaultClass.REBOOT_ONCE,
    cured_by_reboot=True,
    leaves=_remapped,
)
def _remap_pending(host: Host) -> None:
    """One GPU has marked bad memory that only a reset takes out of use."""
    gpu = _victim(host, "remap-pending")
    gpu.repairs.uncorrected += 1
    gpu.repairs.pending = True
    if gpu.board.repair.kind == "remapped-rows":
        _xid(host, gpu, f"63, {XID_PROCESS}, Row Remapper: New row marked for remapping, reset gpu to activate.")
    else:
        _xid(
            host,
            gpu,
            f"63, {XID_PROCESS}, Dynamic Page Retirement: New page retired, reboot to activate (0x00000000000a3c12).",
        )


@_fault("channel-repair", "gpu.repair", Verdict.FAIL, FaultClass.REBOOT_ONCE, cured_by_reboot=True)
def _channel_repair(host: Host) -> None:
    """One GPU wants to take a memory channel out of use, and waits for the reset that does it."""
    gpu = _victim(host, "channel-repair")
    if gpu.board.sram_counters != "split":
        raise _unfit(host, "channel-repair", "its boards tell of no such repair")
    gpu.repairs.channel_pending = True


@_fault("inforom-corrupt", "gpu.inforom", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _inforom_corrupt(host: Host) -> None:
    """The infoROM of one GPU fails its checksums; everything else works."""
    _victim(host, "inforom-corrupt").inforom_corrupt = True


@_fault("driver-mismatch", "driver.library_match", Verdict.FAIL, FaultClass.SOFTWARE, cured_by_reboot=True)
def _driver_mismatch(host: Host) -> None:
    """The user-space driver was upgraded under the loaded kernel module."""
    host.library = NEW_LIBRARY
    host.kernel_lines += [
        "NVRM: API mismatch: the client 'nvidia-smi' (pid 2451)",
        f"NVRM: has the version {host.library}, but",
        f"NVRM: this kernel module has the version {host.driver}.  Please",
        "NVRM: make sure that this kernel module and all NVIDIA driver",
        "NVRM: components have the same version.",
    ]


@_fault("wrong-driver", "driver.version", Verdict.FAIL, FaultClass.SOFTWARE)
def _wrong_driver(host: Host) -> None:
    """The image carries an older driver than the stack pins; everything about it is consistent."""
    host.driver = host.library = OLD_DRIVER
    host.cuda_driver = OLD_CUDA


@_fault("wrong-fabric-manager", "fabric.manager_version", Verdict.FAIL, FaultClass.SOFTWARE)
def _wrong_fabric_manager(host: Host) -> None:
    """Fabric Manager was upgraded and the driver was not; the one that runs is still the old one."""
    if not host.machine.switches:
        raise _unfit(host, "wrong-fabric-manager", "it has no NVSwitch")
    host.fabric_manager = NEW_LIBRARY


@_fault("nvlink-errors", "nvlink.errors", Verdict.FAIL, FaultClass.REBOOT_ONCE, cured_by_reboot=True)
def _nvlink_errors(host: Host) -> None:
    """One NVLink of one GPU is up and counts errors."""
    gpu = _victim(host, "nvlink-errors")
    if not gpu.links:
        raise _unfit(host, "nvlink-errors", "its GPUs have no NVLink")
    gpu.link_errors[min(DOWN_LINK, len(gpu.links) - 1)] = LINK_ERRORS


@_fault("wrong-gpu", "gpu.name", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _wrong_gpu(host: Host) -> None:
    """One GPU is another model that fits the same socket."""
    gpu = _victim(host, "wrong-gpu")
    other = gpu.board.lookalike
    gpu.name, gpu.device_id, gpu.bus_name = other.name, other.device_id, other.bus_name
    gpu.memory_mib = other.memory_mib


@_fault("mig-enabled", "gpu.mig", Verdict.FAIL, FaultClass.CONFIGURATION)
def _mig_enabled(host: Host) -> None:
    """One GPU is partitioned into MIG instances, which the stack did not ask for; MIG outlives a reboot."""
    gpu = _victim(host, "mig-enabled")
    if not gpu.board.mig:
        raise _unfit(host, "mig-enabled", f"its GPUs ({gpu.board.name}) have no MIG")
    gpu.mig = True


@_fault("nvidia-smi-hangs", "gpu.count", Verdict.UNKNOWN, cured_by_reboot=True)
def _nvidia_smi_hangs(host: Host) -> None:
    """nvidia-smi and NVML never answer and ignore signals, as with a driver that holds its lock."""
    host.smi_hangs = True


@_fault("ssh-refused", "host.reachable", Verdict.UNKNOWN, cured_by_reboot=True)
def _ssh_refused(host: Host) -> None:
    """Nothing listens on the SSH port."""
    host.access.listening = False


@_fault("ssh-slow", "host.reachable", Verdict.UNKNOWN, cured_by_reboot=True)
def _ssh_slow(host: Host) -> None:
    """Connections are accepted, and sshd's greeting does not come within any deadline."""
    host.access.stalled = True


@_fault("cloud-init-running", "host.reachable", Verdict.UNKNOWN)
def _cloud_init_running(host: Host) -> None:
    """cloud-init does not finish."""
    host.cloud_init = "running"


@_fault("wrong-host-key", "host.identity", Verdict.FAIL, FaultClass.OPERATOR)
def _wrong_host_key(host: Host) -> None:
    """Another machine answers at the host's address: its SSH key is not the one the stack made."""
    host.access.foreign_key = True


@_fault("efa-missing", "efa.count", Verdict.FAIL, FaultClass.CONFIGURATION)
def _efa_missing(host: Host) -> None:
    """One network interface was not created as an EFA."""
    if not host.efa:
        raise _unfit(host, "efa-missing", "it has no EFA interface")
    host.efa.pop()


@_fault("corrupt-gemm", "burnin.gemm", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _corrupt_gemm(host: Host) -> None:
    """One GPU gets one element of one product wrong."""
    _victim(host, "corrupt-gemm").burn_in["corrupt_at"] = "3"


@_fault("slow-gpu", "burnin.speed", Verdict.FAIL, FaultClass.REBOOT_ONCE)
def _slow_gpu(host: Host) -> None:
    """One GPU computes at a third of the speed of a good one."""
    gpu = _victim(host, "slow-gpu")
    gpu.burn_in["fp16_tflops"] = f"{gpu.board.burn_in.fp16_tflops / 3:.1f}"


@_fault("no-work", "burnin.gemm", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _no_work(host: Host) -> None:
    """One GPU reports success and does nothing."""
    _victim(host, "no-work").burn_in["no_work"] = "1"


@_fault("too-fast", "burnin.speed", Verdict.UNKNOWN)
def _too_fast(host: Host) -> None:
    """One GPU seems to compute faster than its physical peak: the measurement is wrong."""
    gpu = _victim(host, "too-fast")
    gpu.burn_in["fp16_tflops"] = f"{gpu.board.burn_in.fp16_tflops * 5:.1f}"


@_fault("thermal-throttle", "gpu.throttle", Verdict.FAIL, FaultClass.REPLACE_NOW)
def _thermal_throttle(host: Host) -> None:
    """One GPU is hot and has slowed itself down."""
    gpu = _victim(host, "thermal-throttle")
    heat = gpu.board.temperature
    # T.Limit counts down to the slowdown: its zero lies where the margin of the capture runs out.
    limit = heat.thresholds.slowdown if heat.thresholds else heat.gpu_c + (heat.tlimit.now if heat.tlimit else 0) + 2
    gpu.temperature_c = limit
    gpu.throttle = HW_SLOWDOWN | HW_THERMAL | SW_THERMAL
    gpu.burn_in["fp16_tflops"] = f"{gpu.board.burn_in.fp16_tflops / 2:.1f}"


@_fault("noisy-shell", None, Verdict.PASS)
def _noisy_shell(host: Host) -> None:
    """The login shell prints a banner before anything else."""
    rule = "=" * 77
    welcome = f'  Welcome to {host.identity.name}. Authorised use only. {{"schema": "not yours"}}'
    host.access.banner = f"{rule}\n{welcome}\n  3 updates can be applied immediately.\n{rule}\n"


@_fault("no-python", "host.reachable", Verdict.UNKNOWN)
def _no_python(host: Host) -> None:
    """The host has no Python."""
    host.has_python = False


@_fault("no-sudo", "host.reachable", Verdict.UNKNOWN)
def _no_sudo(host: Host) -> None:
    """sudo asks for a password."""
    host.has_sudo = False


for _name, _apply, _check, _verdict, _class in system_faults.ROWS:
    _fault(_name, _check, _verdict, _class)(_apply)
FAULTS: Mapping[str, Fault] = MappingProxyType(_registry)


def fault(name: str) -> Fault:
    """The fault of that name. Raises ConfigError naming the ones there are."""
    if name not in FAULTS:
        raise ConfigError(f"unknown fault {name!r}", remedy=f"use one of {', '.join(sorted(FAULTS))}")
    return FAULTS[name]
