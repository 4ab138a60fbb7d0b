"""The host around the GPUs: memory, mounts and disk space, the clock, processes, PCI bridges, container runtimes."""

from __future__ import annotations

import json

from profiles import catalog
from sandbox.hosts.render.answers import Answer
from sandbox.hosts.state import Host

KIB_A_GIB = 2**20
KERNEL_SHARE = 0.975  # of the memory is what MemTotal shows; modelled
ROOT_KIB = 101430960  # df of a 100 GiB volume with ext4
MEMORY_GIB = 64.0  # of a type whose profile names none


def memory_kib(host: Host) -> int:
    """MemTotal: the type's memory, less what the kernel keeps."""
    profile = catalog.load(host.identity.instance_type)
    whole = profile.memory_gib.value if profile and profile.memory_gib else MEMORY_GIB
    return int(whole * host.memory_share * KERNEL_SHARE * KIB_A_GIB)


def df(host: Host) -> str:
    """``df -P -k -l``."""
    free = 0 if host.disk_full else 61204812
    rows = [
        ("/dev/root", ROOT_KIB, free, "/"),
        ("tmpfs", memory_kib(host) // 2, memory_kib(host) // 2, "/dev/shm"),  # noqa: S108 - the name of a mount
        ("/dev/nvme0n1p15", 106832, 100738, "/boot/efi"),
    ]
    lines = ["Filesystem     1024-blocks      Used Available Capacity Mounted on"]
    for device, size, left, target in rows:
        lines.append(f"{device:<15}{size:>11} {size - left:>9} {left:>9} {(size - left) * 100 // size:>7}% {target}")
    return "\n".join(lines) + "\n"


def clock(host: Host) -> str:
    """``timedatectl``."""
    return (
        "               Local time: Fri 2026-08-21 08:54:01 UTC\n"
        "           Universal time: Fri 2026-08-21 08:54:01 UTC\n"
        "                 RTC time: Fri 2026-08-21 08:54:01\n                Time zone: Etc/UTC (UTC, +0000)\n"
        f"System clock synchronized: {'yes' if host.clock_held else 'no'}\n              NTP service: active\n"
        "          RTC in local TZ: no\n"
    )


def answers(host: Host) -> dict[str, Answer]:
    return {"df": Answer(df(host)), "timedatectl": Answer(clock(host))}


def files(host: Host) -> dict[str, str | bytes]:
    """Files below /proc, /sys and /etc. A guest has no memory controllers and an unprivileged view of its bridges."""
    found: dict[str, str | bytes] = {
        "proc/meminfo": (
            f"MemTotal:       {memory_kib(host)} kB\nMemFree:        {memory_kib(host) - 900000} kB\n"
            "SwapTotal:             0 kB\nSwapFree:              0 kB\n"
            "HugePages_Total:       0\nHugepagesize:       2048 kB\n"
        ),
        "proc/mounts": (
            "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n/dev/root / ext4 rw,relatime,discard 0 0\n"
            "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n"
            "/dev/nvme0n1p15 /boot/efi vfat rw,relatime,fmask=0077,dmask=0077 0 0\n"
        ),
        "proc/cmdline": f"BOOT_IMAGE=/vmlinuz-{host.software.kernel} root=PARTUUID=0a root ro console=ttyS0\n",
        "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme de pse tsc hypervisor lahf_lm\n",
        "proc/1/stat": "1 (systemd) S 0 1 1 0 -1 4194560 9313 0 0 0 12 34 0 0 20 0 1 0 3 1 0\n",
        "proc/2/stat": "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0\n",
        "etc/docker/daemon.json": json.dumps({"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}) + "\n",
    }
    for controller, errors in enumerate(host.dimm_errors):
        folder = f"sys/devices/system/edac/mc/mc{controller}"
        found.update({f"{folder}/ce_count": "0\n", f"{folder}/ue_count": f"{errors}\n"})
    return found
