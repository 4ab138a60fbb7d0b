"""``nvidia-smi topo -m``, ``topo -p2p r``, ``nvlink -s`` and ``nvlink -e``."""

from __future__ import annotations

from sandbox.hosts.render.pci import nic_node, rdma_name
from sandbox.hosts.state import Gpu, Host

UNDERLINE = "\x1b[4m"
RESET = "\x1b[0m"
# As driver 590 answers for both queries; 535 says nothing.
NO_LINKS_IN_MIG = "Nvlink queries are not supported for Devices in MIG mode"

TOPOLOGY_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""

P2P_LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""


def cpus_of(host: Host, gpu: Gpu) -> str:
    """The CPUs near a GPU as a kernel list; all of them where the platform does not expose the node."""
    lists = host.machine.numa.cpus
    if gpu.numa is not None:
        return lists[gpu.numa]
    last = max(int(part.split("-")[-1]) for cpus in lists for part in cpus.split(","))
    return f"0-{last}"


def nodes_of(host: Host, gpu: Gpu) -> str:
    """The NUMA nodes near a GPU as a kernel list; all of them where the platform does not expose the node."""
    if gpu.numa is not None:
        return str(gpu.numa)
    last = len(host.machine.numa.cpus) - 1
    return f"0-{last}" if last else "0"


def _gpu_nic(host: Host, gpu: Gpu, nic: str, node: int | None) -> str:
    """How a GPU meets a NIC on a NUMA node: behind one switch where their buses are close, else by node."""
    if host.machine.pcie_pairs == "PHB":
        return "PHB"
    if 0 <= int(gpu.address[5:7], 16) - int(nic[5:7], 16) <= 4:
        return "PXB"
    return "NODE" if node == gpu.numa else "SYS"


def _nic_nic(host: Host, first: str, second: str, *, same_node: bool) -> str:
    if first == second:
        return " X "
    if host.machine.pcie_pairs == "PHB":
        return "PHB"
    if abs(int(first[5:7], 16) - int(second[5:7], 16)) <= 3:
        return "PXB"
    return "NODE" if same_node else "SYS"


def topology(host: Host) -> str:
    """``nvidia-smi topo -m``: tabs, an underlined header, NICs as columns and rows where there are EFA devices."""
    gpus = [f"GPU{index}" for index in range(len(host.gpus))]
    nics = [f"NIC{index}" for index in range(len(host.efa))]
    nodes = {nic: nic_node(host, nic) for nic in host.efa}
    header = "\t".join([*gpus, *nics, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [f"\t{UNDERLINE}{header}{RESET}"]
    for label, gpu in zip(gpus, host.gpus, strict=True):
        cells = [" X " if other is gpu else host.pair(gpu, other) for other in host.gpus]
        cells += [_gpu_nic(host, gpu, nic, node) for nic, node in nodes.items()]
        lines.append("\t".join([label, *cells, cpus_of(host, gpu), nodes_of(host, gpu), "", "N/A"]))
    for label, nic in zip(nics, host.efa, strict=True):
        cells = [_gpu_nic(host, gpu, nic, nodes[nic]) for gpu in host.gpus]
        cells += [_nic_nic(host, nic, other, same_node=nodes[nic] == node) for other, node in nodes.items()]
        lines.append("\t".join([label, *cells, "", "", "", ""]))
    legend = TOPOLOGY_LEGEND
    if nics:
        names = "".join(f"  {label}: {rdma_name(nic)}\n" for label, nic in zip(nics, host.efa, strict=True))
        legend += f"\nNIC Legend:\n\n{names}"
    return "\n".join(lines) + "\n" + legend + "\n"


def p2p_status(host: Host, first: Gpu, second: Gpu) -> str:
    """``OK`` or why not: two GPUs whose every common NVLink is down still meet over PCIe, but not for P2P."""
    cells = (host.pair(first, second), host.pair(second, first))
    if host.machine.pair(first.slot, second.slot).startswith("NV") and not all(cell.startswith("NV") for cell in cells):
        return "TNS"
    return host.machine.p2p


def p2p_matrix(host: Host) -> str:
    """``nvidia-smi topo -p2p r``."""
    labels = [f"GPU{index}" for index in range(len(host.gpus))]
    lines = ["\t" + UNDERLINE + "\t".join(labels) + RESET]
    for label, gpu in zip(labels, host.gpus, strict=True):
        cells = ["X" if other is gpu else p2p_status(host, gpu, other) for other in host.gpus]
        lines.append("\t".join([f" {label}", *cells]))
    return "\n".join(lines) + "\n" + P2P_LEGEND


def nvlink_status(host: Host) -> str:
    """``nvidia-smi nvlink -s``."""
    lines = []
    for index, gpu in enumerate(host.gpus):
        lines.append(f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})")
        if not gpu.board.nvlink:
            lines.append("Device does not have or support Nvlink")
        elif not any(gpu.links):
            lines.append("NVML: Unable to retrieve NVLink information as all links are inActive")
        elif gpu.mig:
            lines.append(NO_LINKS_IN_MIG)
        else:
            rate = f"{gpu.board.nvlink.rate} GB/s"
            lines += [f"\t Link {link}: {rate if active else '<inactive>'}" for link, active in enumerate(gpu.links)]
    return "\n".join(lines) + "\n"


def nvlink_errors(host: Host) -> str:
    """``nvidia-smi nvlink -e``, as drivers print it for NVLink 2 to 4: three counters a link, a blank line between."""
    lines = []
    for index, gpu in enumerate(host.gpus):
        lines.append(f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})")
        if not gpu.board.nvlink:
            lines.append("Device does not have or support Nvlink")
        elif not any(gpu.links):
            lines.append("NVML: Unable to retrieve NVLink information as all links are inActive")
        elif gpu.mig:
            lines.append(NO_LINKS_IN_MIG)
        for link, active in enumerate([] if gpu.mig else gpu.links):
            counts = {"Replay": 0, "Recovery": 0, "CRC": gpu.link_errors.get(link, 0)} if active else {}
            lines += [f"\t Link {link}: {name} Errors: {count}" for name, count in counts.items()]
            lines += [""] if counts else []
    return "\n".join(lines) + "\n"
