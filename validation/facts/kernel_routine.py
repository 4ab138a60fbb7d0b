"""What drivers of GPUs, network cards and storage write on machines that work: a line that is like none of it is told.

Words of NVIDIA's kernel modules 535 to 595, mlx5_core, amzn-drivers (ENA, EFA), erdma, NVMe, XFS, ext4, Btrfs and md,
from logs of real machines; imbue-ai/cluster-health reports the same way whatever its own list does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MOST = 20
_NUMBER = re.compile(r"\d+")
# The driver's name, then its device or what it speaks of, up to the colon.
_SIGNED = re.compile(
    r"^(?:\[drm\] (?=\[?.{0,12}nvidia)|"
    r"(?:NVRM|nvidia(?:[-_]\w+)*|gdrdrv|mlx\d_\w+|infiniband|efa|ena|erdma|nvme\w*|XFS|EXT4-fs|BTRFS|md(?:/\w+)?)"
    r"(?: [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)?(?: [\w.-]{1,40})?(?: \([^()]{1,60}\))*\s?: ?)",
    re.I,
)
_ROUTINE = re.compile(
    # NVIDIA; the table of what its GSP was asked for last, which follows an Xid 119
    r"^\s*entry function|^RPC |"
    r"\bloading (?:out-of-tree|NVIDIA|driver\b)|\bmodule (?:license|verification failed|uses symbols)|\bNvlink Core\b|"
    r"^nvlink driver |\benabling device \(|\bvgaarb: |^Probing device |^using MSI|^(?:open|release) \(major=|"
    r"\b(?:Un)?loaded the UVM driver|\bUnloading\b|^Initialized nvidia|^GPU at PCI:|^GPU Board Serial|"
    r"^Persistence mode is deprecated|^kbifInitLtr_|^Adding to iommu group|^i2c timeout|^PM: |^DMA mask|"
    # mlx5
    r"^firmware version|^Rate limit|^E-Switch: |^Port module event: module \d+, Cable (?:un)?plugged|^MLX5E: |"
    r"PCIe slot advertised sufficient power|FWTracer: Ownership|Gb/s available PCIe bandwidth|renamed from|"
    r"^Link (?:up|down)$|^Supported tc |^Flow counters bulk|^mlx5_ib: Mellanox|\bmlx5e: IPSec|^handle_add: |"
    r"^cmd_work_handler.*recovered|^set_ipv6_addr|"
    # EFA, ENA, erdma
    r"^Elastic (?:Fabric|Network) Adapter|^ENA (?:device|controller) version|^Setup irq|IB device registered|"
    r"^Registered EFA|\bLLQ\b|^reset_fail: 0|^creating \d+ io queues|^Forcing large headers|isn't supported|"
    r"^Local page cache|^XDP|^ena device version|^ena controller version|^Device reset completed|^create IB device|"
    # NVMe, md
    r"^pci function |default/read/poll queues|^Shutdown timeout set|^allocated \d+ MiB host memory|^D3 entry latency|"
    r"^missing or invalid SUBNQN|^platform quirk|^(?:p\d+ ?)+$|detected capacity change|^Using generic|"
    r"^new namespace|^Identifier|^rescanning namespaces|^raid\d+ (?:session|set)|^array |active with \d+ out of|"
    # Filesystems
    r"^(?:re-)?mounted\b|^unmounting|^mounting (?:V\d )?filesystem|^ending (?:clean mount|recovery)|^recovery complete|"
    r"^starting recovery|\bMMP interval\b|^(?:re)?siz(?:ed|ing) filesystem|^orphan|"
    r"^write access|^using .* (?:checksum|algorithm)|^(?:disk space caching|using free space tree)|"
    r"^bdev .* errs|^first mount of|^last unmount|^turning on|^enabling (?:ssd|auto)|^quota|^INFO: recovery required|"
    r"^deprecated|^warning|^checksum |^Checking for|^will be|^VFS:|^devid|^device fsid|^Quotacheck",
    re.I,
)


def is_of_a_driver(message: str) -> bool:
    """Whether a driver of a GPU, of a network card or of storage signed the line."""
    return _SIGNED.match(message) is not None


def unlisted(messages: Iterable[str]) -> tuple[str, ...]:
    """The lines of such drivers that no list has: one of each shape, and no more than anybody would read."""
    found: dict[str, str] = {}
    for message in messages:
        signed = _SIGNED.match(message)
        if signed is None or _ROUTINE.search(message[signed.end() :]):
            continue
        found.setdefault(_NUMBER.sub("N", message), message)
        if len(found) == _MOST:
            break
    return tuple(found.values())
