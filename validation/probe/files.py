"""Evidence that is read from files, below KILN_ROOT. Paths are printed as on the host, without that root.

So a mounted image, a captured tree and a simulated host are read by the same code as a real host.
"""

import glob
import os
import re
from typing import Callable, List

from validation.probe.process import READ_SIZE, ToolMissingError

Write = Callable[[str], None]
PCI = "/sys/bus/pci/devices"
NVIDIA_VENDOR = "0x10de"
NETWORK_CLASS = "0x02"
PCI_FILES = (
    "vendor", "device", "class", "subsystem_vendor", "subsystem_device",
    "current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
)  # fmt: skip
DMI_FILES = ("board_asset_tag", "product_name", "sys_vendor")
CLOUD_INIT_ID = "/var/lib/cloud/data/instance-id"
CLOUD_INIT_DATA = "/run/cloud-init/instance-data.json"
IMAGE = re.compile(r'"(?:ami|image)[-_]id": *"([\w.-]+)"')  # AWS and Alibaba Cloud, in their metadata as kept there
NCCL_LIBRARIES = tuple(
    folder + "/libnccl.so.[0-9]*"
    for folder in (
        "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/cuda*/lib*",
        "/opt/nccl/build/lib",
    )
)  # fmt: skip
NCCL_PLUGINS = tuple(
    folder + "/libnccl-net*.so"
    for folder in ("/opt/amazon/ofi-nccl/lib*", "/opt/amazon/ofi-nccl/lib/*-linux-gnu", "/opt/aws-ofi-nccl/lib*")
)
CUDA_FILES = "/usr/local/cuda*/version.json"
RDMA_COUNTERS = tuple(
    "/sys/class/infiniband/*/ports/*/" + names
    for names in ("hw_counters/*", "counters/link_downed", "counters/link_error_recovery", "counters/symbol_error")
)
PEERMEM = ("/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem")
PLUGIN_VERSION = re.compile(rb"aws-ofi-nccl (\d+\.\d+\.\d+[\w.-]*)")


class Root:
    """The directory below which files are read: KILN_ROOT, by default "/"."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path or "/")
        self.above = self.path.rstrip("/")

    def at(self, path: str) -> str:
        return self.above + "/" + path.lstrip("/")

    def glob(self, pattern: str) -> List[str]:
        """Paths that match, as on the host."""
        return sorted(found[len(self.above) :] for found in glob.glob(glob.escape(self.above) + pattern))

    def read(self, path: str) -> str:
        """The whole file. Hundreds are small, and take half as long without a file object."""
        descriptor = os.open(self.at(path), os.O_RDONLY)
        try:
            parts = [os.read(descriptor, READ_SIZE)]
            while parts[-1]:
                parts.append(os.read(descriptor, READ_SIZE))
        finally:
            os.close(descriptor)
        return b"".join(parts).decode("utf-8", "replace")

    def line(self, path: str) -> str:
        """``path:content``, the content on one line; an unreadable file says why in its place."""
        try:
            return "%s:%s\n" % (path, " ".join(self.read(path).split("\n")).strip())
        except OSError as error:
            return "%s:<%s>\n" % (path, error.strerror)


def one_file(root: Root, *paths: str) -> Callable[[Write], None]:
    """The first of these files that exists, word for word."""

    def task(write: Write) -> None:
        for path in paths:
            if os.path.exists(root.at(path)):
                write(root.read(path))
                return
        raise ToolMissingError("%s: no such file" % paths[0])

    return task


def matching(root: Root, *patterns: str) -> Callable[[Write], None]:
    """``path:content`` of every file that matches."""

    def task(write: Write) -> None:
        paths = [path for pattern in patterns for path in root.glob(pattern) if os.path.isfile(root.at(path))]
        if not paths:
            raise ToolMissingError("%s: no such file" % patterns[0])
        for path in paths:
            write(root.line(path))

    return task


def names(root: Root, *patterns: str) -> Callable[[Write], None]:
    """The path of every file that matches, one a line."""

    def task(write: Write) -> None:
        paths = sorted({path for pattern in patterns for path in root.glob(pattern)})
        if not paths:
            raise ToolMissingError("%s: no such file" % patterns[0])
        write("".join("%s\n" % path for path in paths))

    return task


def nccl_plugins(root: Root) -> Callable[[Write], None]:
    """``path:version`` of every aws-ofi-nccl library; the version is a text inside it, and nowhere else for sure."""

    def task(write: Write) -> None:
        paths = sorted({path for pattern in NCCL_PLUGINS for path in root.glob(pattern)})
        if not paths:
            raise ToolMissingError("%s: no such file" % NCCL_PLUGINS[0])
        for path in paths:
            with open(root.at(path), "rb") as file:
                found = PLUGIN_VERSION.search(file.read())
            write("%s:%s\n" % (path, found.group(1).decode("ascii") if found else "<says no version>"))

    return task


def instance(root: Root) -> Callable[[Write], None]:
    """Who the machine says it is: ``key: value`` lines from DMI and cloud-init."""

    def task(write: Write) -> None:
        paths = [("/sys/class/dmi/id/" + name, name) for name in DMI_FILES]
        paths.append((CLOUD_INIT_ID, "cloud_init_instance_id"))
        there = [(path, name) for path, name in paths if os.path.exists(root.at(path))]
        if not there:
            raise ToolMissingError("/sys/class/dmi/id: no such directory")
        for path, name in there:
            write("%s: %s\n" % (name, root.line(path).partition(":")[2].strip()))
        image = IMAGE.search(root.line(CLOUD_INIT_DATA))
        if image:
            write("image: %s\n" % image.group(1))

    return task


def efa_module(root: Root) -> Callable[[Write], None]:
    """``/sys/module/efa:present`` and its version where the module is loaded."""

    def task(write: Write) -> None:
        if not os.path.isdir(root.at("/sys/module/efa")):
            raise ToolMissingError("/sys/module/efa: no such directory")
        write("/sys/module/efa:present\n")
        if os.path.exists(root.at("/sys/module/efa/version")):
            write(root.line("/sys/module/efa/version"))

    return task


def sysfs_numa(root: Root) -> Callable[[Write], None]:
    """CPUs and distances of every NUMA node, and the node of every NVIDIA and every network function."""

    def task(write: Write) -> None:
        nodes = root.glob("/sys/devices/system/node/node[0-9]*/cpulist")
        nodes += root.glob("/sys/devices/system/node/node[0-9]*/distance")
        if not nodes:
            raise ToolMissingError("/sys/devices/system/node: no such directory")
        for path in nodes + [folder + "/numa_node" for folder in functions(root)]:
            write(root.line(path))

    return task


def sysfs_pcie(root: Root) -> Callable[[Write], None]:
    """Identity and PCIe link of every NVIDIA and every network function."""

    def task(write: Write) -> None:
        if not os.path.isdir(root.at(PCI)):
            raise ToolMissingError("%s: no such directory" % PCI)
        for folder in functions(root):
            for name in PCI_FILES:
                if os.path.exists(root.at(folder + "/" + name)):
                    write(root.line(folder + "/" + name))

    return task


def functions(root: Root) -> List[str]:
    """The PCI functions of vendor NVIDIA, and those of a network class."""
    found = []
    for folder in root.glob(PCI + "/*"):
        vendor = root.line(folder + "/vendor").partition("/vendor:")[2].strip()
        kind = root.line(folder + "/class").partition("/class:")[2].strip()
        if vendor == NVIDIA_VENDOR or kind.startswith(NETWORK_CLASS):
            found.append(folder)
    return found
