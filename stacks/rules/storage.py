"""Rules about the gp3 root volume.

Limits: gp3 as in botocore 1.44.8 (2026): 1-65,536 GiB, 3,000-80,000 IOPS, 125-2,000 MiB/s; 500 IOPS per GiB, where the
3,000 of the baseline are allowed at any size; 0.25 MiB/s per IOPS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from stacks.rules.base import Asked, Finding, found

SIZE_GIB = (1, 65_536)
IOPS = (3_000, 80_000)
THROUGHPUT_MIBPS = (125, 2_000)
IOPS_PER_GIB = 500
MIBPS_PER_IOPS = 0.25
MB_PER_MIB = 1.048576


def _aws(asked: Asked) -> bool:
    return asked.settings.provider == "aws"


def volume_size(asked: Asked) -> Iterator[Finding]:
    """The size is one that gp3 has."""
    size = asked.settings.root_volume.size_gib
    low, high = SIZE_GIB
    if _aws(asked) and not low <= size <= high:
        yield found(
            "volume.size", "rootVolume.sizeGib", size, f"{low} to {high} GiB", "200 GiB holds an image with CUDA."
        )


def volume_iops(asked: Asked) -> Iterator[Finding]:
    """The IOPS are within gp3's limits."""
    iops = asked.settings.root_volume.iops
    low, high = IOPS
    if _aws(asked) and not low <= iops <= high:
        yield found("volume.iops", "rootVolume.iops", iops, f"{low} to {high}", f"{low} cost nothing extra.")


def volume_iops_ratio(asked: Asked) -> Iterator[Finding]:
    """IOPS above the baseline need a volume of the size to carry them."""
    volume = asked.settings.root_volume
    if not _aws(asked) or volume.size_gib < 1 or not IOPS[0] < volume.iops <= IOPS[1]:
        return
    most = max(IOPS[0], IOPS_PER_GIB * volume.size_gib)
    if volume.iops > most:
        needed = math.ceil(volume.iops / IOPS_PER_GIB)
        yield found(
            "volume.iops_ratio",
            "rootVolume.iops",
            volume.iops,
            f"at most {most} on {volume.size_gib} GiB ({IOPS_PER_GIB} IOPS per GiB)",
            f"Set iops to {most}, or sizeGib to {needed}.",
        )


def volume_throughput(asked: Asked) -> Iterator[Finding]:
    """The throughput is within gp3's limits."""
    throughput = asked.settings.root_volume.throughput_mibps
    low, high = THROUGHPUT_MIBPS
    if _aws(asked) and not low <= throughput <= high:
        yield found(
            "volume.throughput",
            "rootVolume.throughputMibps",
            throughput,
            f"{low} to {high} MiB/s",
            f"{low} cost nothing extra.",
        )


def volume_throughput_ratio(asked: Asked) -> Iterator[Finding]:
    """Throughput needs IOPS to carry it."""
    volume = asked.settings.root_volume
    if not _aws(asked) or not THROUGHPUT_MIBPS[0] <= volume.throughput_mibps <= THROUGHPUT_MIBPS[1]:
        return
    most = int(volume.iops * MIBPS_PER_IOPS)
    if IOPS[0] <= volume.iops and volume.throughput_mibps > most:
        needed = math.ceil(volume.throughput_mibps / MIBPS_PER_IOPS)
        yield found(
            "volume.throughput_ratio",
            "rootVolume.throughputMibps",
            volume.throughput_mibps,
            f"at most {most} MiB/s with {volume.iops} IOPS ({MIBPS_PER_IOPS} MiB/s per IOPS)",
            f"Set throughputMibps to {most}, or iops to {needed}.",
        )


def volume_instance_cap(asked: Asked) -> Iterator[Finding]:
    """Paying for more than the instance itself can move to EBS is a waste, so it is said."""
    volume = asked.settings.root_volume
    if not _aws(asked) or asked.profile is None:
        return
    storage = asked.profile.storage
    cap_mbps = storage.ebs_throughput_mbps_max.value if storage.ebs_throughput_mbps_max else float("inf")
    if volume.throughput_mibps * MB_PER_MIB > cap_mbps:
        most = int(cap_mbps / MB_PER_MIB)
        yield found(
            "volume.instance_cap",
            "rootVolume.throughputMibps",
            volume.throughput_mibps,
            f"at most {most} MiB/s, what {asked.settings.instance_type} moves to EBS",
            f"{most} do as well and cost less.",
            warning=True,
        )
    cap_iops = storage.ebs_iops_max.value if storage.ebs_iops_max else volume.iops
    if volume.iops > cap_iops:
        yield found(
            "volume.instance_cap",
            "rootVolume.iops",
            volume.iops,
            f"at most {cap_iops}, what {asked.settings.instance_type} does to EBS",
            f"{cap_iops} do as well and cost less.",
            warning=True,
        )
