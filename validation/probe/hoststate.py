"""The host around the GPUs as /proc, /sys and /etc show it, below KILN_ROOT. Everything is read, nothing is changed."""

import os
import re
import time
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from validation.probe.files import NVIDIA_VENDOR, PCI, Root
from validation.probe.process import ToolMissingError

Write = Callable[[str], None]
Stat = Tuple[str, str, int]  # name, state, parent
MEMINFO = ("MemTotal", "SwapTotal", "HugePages_Total", "Hugepagesize")
# Of the kernel's command line only these: what else stands there is nobody's business.
OPTIONS = re.compile(r"(?:\w*iommu\w*|pci\w*|mem|maxcpus|isolcpus|hugepages\w*|default_hugepagesz|swiotlb)(?:=|$)")
MODULES = ("nouveau", "nvidia", "nvidia_uvm")
EDAC = "/sys/devices/system/edac/mc/mc[0-9]*/[cu]e_count"
# Files that name the NVIDIA runtime where containers are given GPUs. Only whether they do is told: they hold secrets.
RUNTIMES = (
    "/etc/docker/daemon.json", "/etc/containerd/config.toml", "/etc/containerd/conf.d/*.toml",
    "/etc/crio/crio.conf.d/*.conf", "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
)  # fmt: skip
CDI = ("/etc/cdi/*", "/var/run/cdi/*", "/run/cdi/*")
BRIDGE_CLASS = "0x0604"
DISPLAY_CLASS = "0x03"
ACS = 0x000D  # PCI Express base specification, extended capability id; its control register lies 6 bytes in
BLOCKED_S = 0.1  # a process that waits for a disk is in D state for a moment


def state(root: Root) -> Callable[[Write], None]:
    """``path:content`` lines: memory, its controllers, options of the kernel, modules, mounts, container runtimes."""

    def task(write: Write) -> None:
        if not os.path.exists(root.at("/proc/meminfo")):
            raise ToolMissingError("/proc/meminfo: no such file")
        for path, content in _lines(root):
            write("%s:%s\n" % (path, content))

    return task


def _lines(root: Root) -> Iterator[Tuple[str, str]]:
    for name, value in re.findall(r"^(\w+):\s*(\d+)", root.read("/proc/meminfo"), re.M):
        if name in MEMINFO:
            yield "/proc/meminfo/" + name, value
    options = root.line("/proc/cmdline").partition(":")[2].split()
    yield "/proc/cmdline", " ".join(word for word in options if OPTIONS.match(word))
    yield "/proc/cpuinfo", "hypervisor" if "hypervisor" in _first_flags(root).split() else "no hypervisor flag"
    for path in root.glob(EDAC):
        yield path, root.line(path).partition(":")[2].strip()
    for name in MODULES:
        if os.path.isdir(root.at("/sys/module/" + name)):
            yield "/sys/module/" + name, "loaded"
    for mount in _mounts(root):
        yield "/proc/mounts", mount
    for path in [path for pattern in RUNTIMES for path in root.glob(pattern)]:
        yield path, "nvidia" if "nvidia" in root.line(path).partition(":")[2] else "other"
    for path in sorted({path for pattern in CDI for path in root.glob(pattern)}):
        yield path, "cdi"


def _mounts(root: Root) -> Iterator[str]:
    """``target type options`` of every mount but those of the kernel's own trees."""
    if not os.path.exists(root.at("/proc/mounts")):
        return
    for line in root.read("/proc/mounts").splitlines():
        parts = line.split()
        if (
            len(parts) >= 4
            and parts[1].startswith("/")
            and not (parts[1] + "/").startswith(("/proc/", "/sys/", "/dev/"))
        ):
            yield " ".join(parts[1:4])


def _first_flags(root: Root) -> str:
    """The flags of the first processor; the rest of the file says the same once a CPU."""
    try:
        with open(root.at("/proc/cpuinfo"), "rb") as file:
            head = file.read(8192).decode("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(r"^flags\s*:(.*)$", head, re.M)
    return found.group(1) if found else ""


def acs(root: Root) -> Callable[[Write], None]:
    """Lines about the way between devices.

    ``address:control first-last`` of every PCI bridge: its Access Control Services (``none``, ``<why>`` where unread)
    and the buses behind it, where the kernel tells them. ``address:iommu type`` of every NVIDIA GPU.
    """

    def task(write: Write) -> None:
        if not os.path.isdir(root.at(PCI)):
            raise ToolMissingError("%s: no such directory" % PCI)
        for folder in root.glob(PCI + "/*"):
            kind = _content(root, folder + "/class")
            address = folder.rsplit("/", 1)[1]
            if kind.startswith(BRIDGE_CLASS):
                found = acs_control(root, folder + "/config") or "none"
                buses = [_content(root, "%s/%s_bus_number" % (folder, end)) for end in ("secondary", "subordinate")]
                behind = " " + "-".join(buses) if all(number.isdigit() for number in buses) else ""
                write("%s:%s%s\n" % (address, found, behind))
            elif kind.startswith(DISPLAY_CLASS) and _content(root, folder + "/vendor") == NVIDIA_VENDOR:
                write("%s:iommu %s\n" % (address, iommu(root, folder)))

    return task


def iommu(root: Root, folder: str) -> str:
    """The type of the function's IOMMU group (identity, DMA, DMA-FQ), ``none`` where it is in no group."""
    if not os.path.isdir(root.at(folder + "/iommu_group")):
        return "none"
    return _content(root, folder + "/iommu_group/type")


def _content(root: Root, path: str) -> str:
    """A file of one line, or why it cannot be read, in ``<>``."""
    return root.line(path)[len(path) + 1 :].strip()


def acs_control(root: Root, path: str) -> Optional[str]:
    """The register as ``0x001d``, a reason in ``<>`` where it cannot be read, None where there is none."""
    try:
        with open(root.at(path), "rb") as file:
            config = file.read(4096)
    except OSError as error:
        return "<%s>" % error.strerror
    if len(config) <= 256:
        return None if os.getuid() == 0 else "<not root>"  # a conventional bridge has no extended capabilities
    offset, seen = 256, 0
    while offset and offset + 8 <= len(config) and seen < 64:
        header = int.from_bytes(config[offset : offset + 4], "little")
        if header & 0xFFFF == ACS:
            return "0x%04x" % int.from_bytes(config[offset + 6 : offset + 8], "little")
        offset, seen = header >> 20 & 0xFFC, seen + 1
    return None


def processes(root: Root) -> Callable[[Write], None]:
    """How many there are, how many are zombies, and which were blocked (D state) both times, a tenth of a second apart.

    Kernel threads and this probe's own children are left out: the tools that ask the driver wait in it for a moment.
    """

    def task(write: Write) -> None:
        before = dict(stats(root))
        if not before:
            raise ToolMissingError("/proc: no process")
        time.sleep(BLOCKED_S)
        now = dict(stats(root))
        own = descendants(now, os.getppid())
        write("processes:%d\n" % len(now))
        write("zombies:%d\n" % sum(1 for _, state, _ in now.values() if state == "Z"))
        for pid in sorted(now):
            name, state, parent = now[pid]
            stuck = state == "D" and before.get(pid, ("", "", 0))[1] == "D"
            if stuck and 2 not in (pid, parent) and pid not in own:
                write("blocked:%d %s\n" % (pid, name))

    return task


def stats(root: Root) -> Iterator[Tuple[int, Stat]]:
    """Name, state and parent of every process; one that ends meanwhile is left out."""
    for path in root.glob("/proc/[0-9]*/stat"):
        try:
            text = root.read(path)
        except OSError:
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) >= 2 and fields[1].lstrip("-").isdigit():
            yield int(path.split("/")[2]), (" ".join(name.split()), fields[0], int(fields[1]))


def descendants(table: Dict[int, Stat], ancestor: int) -> List[int]:
    """A process and everything that it started."""
    found = {ancestor}
    grown = True
    while grown:
        more = {pid for pid, (_, _, parent) in table.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return sorted(found)
