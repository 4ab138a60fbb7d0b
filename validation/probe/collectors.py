"""What is gathered, one entry an item: name, how, and how long it may take.

All entries run at once. A new item is one line here and a parser in validation/facts.
"""

import json
import os
import re
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from validation.probe import files, hoststate
from validation.probe.files import Root
from validation.probe.process import Task, ToolMissingError, command

MIB = 2**20
CAP = 4 * MIB  # eight GPUs in "nvidia-smi -q -x" take 0.4 MiB
LOG_CAP = 16 * MIB
FILE_S = 5.0
TOOL_S = 15.0
LOG_S = 30.0
# Without persistence mode the first open initialises every GPU, some seconds each; the others wait on its lock.
GPU_S = 45.0
TOOL_FOLDERS = ("usr/sbin", "sbin", "opt/amazon/efa/bin", "usr/local/cuda/bin")
KERNEL_LOGS = ("dmesg", "journalctl -k -b --no-pager")
FABRIC_MANAGER = "systemctl show nvidia-fabricmanager -p Id,LoadState,ActiveState,SubState,UnitFileState"
EFA_PACKAGES = "/opt/amazon/efa_installed_packages"

# One way to gather an item: what a person would type, and the task.
Way = Tuple[str, Task]


class Collector(NamedTuple):
    """``ways`` are tried in turn; ``cap`` bounds each stream, in bytes; ``is_file`` items have no exit status.

    ``whole`` says of a text whether it is all there is: where it is not, the next way may know more.
    """

    name: str
    ways: Sequence[Way]
    timeout_s: float
    cap: int
    is_file: bool = False
    whole: Callable[[str], bool] = bool


def environment(root: Root) -> Dict[str, str]:
    """The session's own environment in the C locale, with the usual tool directories after its PATH.

    They are appended, so that a directory the session puts first stays first, and lie below the root, so that a
    simulated or captured host never answers with this machine's tools.
    """
    path = [os.environ.get("PATH", os.defpath)] + [root.at(folder) for folder in TOOL_FOLDERS]
    return dict(os.environ, LC_ALL="C", PATH=os.pathsep.join(path))


def collectors(root: Root) -> List[Collector]:
    """The table. The first way that is there and succeeds makes the item; else the last one tried."""
    tools = environment(root)

    def file(name: str, source: str, task: Task) -> Collector:
        return Collector(name, [(source, task)], FILE_S, CAP, is_file=True)

    def tool(name: str, *lines: str, timeout_s: float = TOOL_S, cap: int = CAP) -> Collector:
        return Collector(name, [(line, command(line.split(), tools)) for line in lines], timeout_s, cap)

    return [
        Collector("nvml", [("NVML", nvml)], GPU_S, CAP, is_file=True),
        tool("nvidia-smi-q-x", "nvidia-smi -q -x", timeout_s=GPU_S),
        tool("topo-m", "nvidia-smi topo -m", timeout_s=GPU_S),
        tool("topo-p2p-r", "nvidia-smi topo -p2p r", timeout_s=GPU_S),
        tool("nvlink-s", "nvidia-smi nvlink -s", timeout_s=GPU_S),
        tool("nvlink-e", "nvidia-smi nvlink -e", timeout_s=GPU_S),
        tool("kernel-log", *KERNEL_LOGS, timeout_s=LOG_S, cap=LOG_CAP)._replace(whole=begins_at_boot),
        tool("lspci", "lspci -Dnn"),
        tool("fabricmanager", FABRIC_MANAGER),
        tool("fabricmanager-version", "nv-fabricmanager --version"),
        tool("dcgmi-version", "dcgmi --version"),
        tool("nvidia-ctk", "nvidia-ctk --version"),
        tool("fi-info", "fi_info -p efa -t FI_EP_RDM", timeout_s=GPU_S),  # libfabric opens CUDA: the same cold start
        tool("ibv-devinfo", "ibv_devinfo"),
        tool("lsblk", "lsblk -J -b -o NAME,TYPE,SIZE,MODEL,SERIAL,MOUNTPOINT"),
        tool("nvcc", "nvcc --version"),
        tool("kernel", "uname -srm"),
        tool("df", "df -P -k -l"),
        tool("timedatectl", "timedatectl"),
        file("os-release", "/etc/os-release", files.one_file(root, "/etc/os-release", "/usr/lib/os-release")),
        file("boot-id", "/proc/sys/kernel/random/boot_id", files.one_file(root, "/proc/sys/kernel/random/boot_id")),
        file("driver-module", "/proc/driver/nvidia/version", files.one_file(root, "/proc/driver/nvidia/version")),
        file("instance", "/sys/class/dmi/id/*", files.instance(root)),
        file("efa-module", "/sys/module/efa", files.efa_module(root)),
        file("peermem-modules", files.PEERMEM[0], files.names(root, *files.PEERMEM)),
        file("efa-packages", EFA_PACKAGES, files.one_file(root, EFA_PACKAGES)),
        file("nccl-libraries", files.NCCL_LIBRARIES[0], files.names(root, *files.NCCL_LIBRARIES)),
        file("nccl-plugins", files.NCCL_PLUGINS[0], files.nccl_plugins(root)),
        file("cuda-version-files", files.CUDA_FILES, files.matching(root, files.CUDA_FILES)),
        file("rdma-counters", files.RDMA_COUNTERS[0], files.matching(root, *files.RDMA_COUNTERS)),
        file("host-state", "/proc/meminfo, /proc/mounts, ...", hoststate.state(root)),
        file("processes", "/proc/*/stat", hoststate.processes(root)),
        file("acs", "/sys/bus/pci/devices/*/config", hoststate.acs(root)),
        file("sysfs-numa", "/sys/devices/system/node/node*", files.sysfs_numa(root)),
        file("sysfs-pcie", "/sys/bus/pci/devices/*", files.sysfs_pcie(root)),
    ]


def begins_at_boot(log: str) -> bool:
    """Whether the kernel's ring buffer still holds its first line, or the journal the boot's."""
    head = log[:4096]
    return bool(re.match(r"\[ *0\.0{3,}\]", head) or re.search(r"\bLinux version \d|\bBooting Linux on", head))


def nvml(write: Callable[[str], None]) -> None:
    """The JSON that validation/probe/nvml.py describes. Loaded here, in the child: the library can hang or crash."""
    from validation.probe import nvml as library

    facts = library.collect()
    write(json.dumps(facts, sort_keys=True))
    if facts.get("init_error") == "NVML_ERROR_LIBRARY_NOT_FOUND":
        raise ToolMissingError("libnvidia-ml.so.1: cannot be loaded")
