"""The kernel's side: its log, and what the NVIDIA module says below ``/proc`` and ``/sys/module``."""

from __future__ import annotations

from sandbox.hosts.render.pci import functions
from sandbox.hosts.state import Host

BUILT = "Wed Oct 29 22:15:20 UTC 2025"


def _module_line(host: Host) -> str:
    kind = "Open Kernel Module for x86_64" if host.software.kernel_module == "open" else "x86_64 Kernel Module"
    return f"NVIDIA UNIX {kind}  {host.driver}  "


def _boot(host: Host) -> list[tuple[float, str]]:
    """The boot's own lines that matter, with seconds since boot."""
    software = host.software
    lines = [
        (
            0.0,
            f"Linux version {software.kernel} (buildd@lcy02-amd64-051) #46~22.04.1-Ubuntu SMP",
        ),
        (0.0, f"Command line: BOOT_IMAGE=/vmlinuz-{software.kernel} root=PARTUUID=fbcf98ae-2f6b ro console=ttyS0"),
        (0.0, "BIOS-provided physical RAM map:"),
        (0.0, f"DMI: Amazon EC2 {host.identity.instance_type}/, BIOS 1.0 10/16/2017"),
        (0.021, "Hypervisor detected: KVM"),
    ]
    lines += [
        (1.1, f"pci {item.address}: [{item.vendor_id}:{item.device_id}] type 00 class 0x{item.class_id}00")
        for item in functions(host)
    ]
    lines += [
        (2.4, "nvme nvme0: pci function 0000:00:04.0"),
        (3.2, "ena 0000:00:05.0: Elastic Network Adapter (ENA) found at mem fe900000, mac addr 0e:5b:00:00:00:01"),
        (4.0, "EXT4-fs (nvme0n1p1): mounted filesystem ro with ordered data mode. Quota mode: none."),
        (9.8, "nvidia: loading out-of-tree module taints kernel."),
        (9.9, "nvidia-nvlink: Nvlink Core is being initialized, major device number 236"),
    ]
    lines += [(10.1, f"nvidia {gpu.address}: enabling device (0140 -> 0142)") for gpu in host.gpus]
    lines += [
        (10.9, f"NVRM: loading {_module_line(host)}Release Build  (dvs-builder@U22-I3-AM02-24-3)  {BUILT}"),
        (11.3, f"nvidia-modeset: Loading NVIDIA UNIX Kernel Mode Setting Driver for UNIX platforms  {host.driver}"),
    ]
    for gpu in host.gpus:
        lines.append((11.6, f"[drm] [nvidia-drm] [GPU ID 0x{gpu.address[5:7]}{gpu.address[8:10]}] Loading driver"))
    lines += [
        (12.7, f"efa {address}: Elastic Fabric Adapter (EFA) v{host.software.efa_driver}g") for address in host.efa
    ]
    return lines


def log(host: Host) -> str:
    """``dmesg``: the boot, then what faults have added."""
    lines = [f"[{seconds:12.6f}] {text}" for seconds, text in _boot(host)]
    lines += [f"[{812.4 + 0.25 * index:12.6f}] {text}" for index, text in enumerate(host.kernel_lines)]
    return "\n".join(lines) + "\n"


def files(host: Host) -> dict[str, str | bytes]:
    """``/proc/driver/nvidia`` and ``/sys/module/nvidia``."""
    found: dict[str, str | bytes] = {
        "proc/driver/nvidia/version": (
            f"NVRM version: {_module_line(host)}Release Build  (dvs-builder@U22-I3-AM02-24-3)  {BUILT}\n"
            "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04.2)\n"
        ),
        "sys/module/nvidia/version": f"{host.driver}\n",
        "sys/module/nvidia/initstate": "live\n",
    }
    for index, gpu in enumerate(host.gpus):
        found[f"proc/driver/nvidia/gpus/{gpu.address}/information"] = (
            f"Model: \t\t {gpu.name}\nIRQ:   \t\t {120 + index}\nGPU UUID: \t {gpu.uuid}\n"
            f"Video BIOS: \t {gpu.board.vbios}\nBus Type: \t PCIe\nBus Location: \t {gpu.address}\n"
            f"Device Minor: \t {index}\nGPU Firmware: \t {host.driver}\nGPU Excluded:\t No\n"
        )
    return found
