"""Which tool printed a text: every format that ``kiln explain`` reads, and how each is told from the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts import (
    container_error,
    container_gpus,
    cuda_toolkit,
    dcgm,
    dcgm_health,
    dcgm_nvlink,
    docker_info,
    driver_fault,
    eadm,
    fi_info,
    fio,
    gpu_burn,
    gpu_fryer,
    kernel_lines,
    kernel_log,
    kernel_module,
    lsblk,
    lspci,
    mdstat,
    nccl_tests,
    numa_tools,
    nvbandwidth,
    nvlink,
    nvlink_errors,
    nvml,
    oci,
    rdma,
    rdma_counters,
    rdma_link,
    services,
    smi_csv,
    smi_list,
    smi_rows,
    smi_table,
    smi_text,
    smi_xml,
    stress_ng,
    sysfs,
    topo,
    topo_p2p,
    vgpu,
)
from validation.facts.text import clean

Parse = Callable[[str], object]


@dataclass(frozen=True)
class Kind:
    """One format: its name for ``--kind``, what it is in words, how it is told, and its parser."""

    name: str
    title: str
    is_it: Callable[[str], bool]
    parse: Parse


def _has(pattern: str, flags: int = re.MULTILINE) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.search(text) is not None


def _json_has(*keys: str) -> Callable[[str], bool]:
    """A JSON document with these keys, told without reading it whole: it may be cut short."""
    return lambda text: text.lstrip().startswith(("{", "[")) and all(f'"{key}"' in text for key in keys)


_HEAD_MAX = 65536  # characters in which the first row must stand


def _is_csv(text: str) -> bool:
    rows = (line for line in text[:_HEAD_MAX].split("\n") if line.strip() and not driver_fault.find(line, ""))
    first = next(rows, "")
    like = "GPU-" in first and "," in first and "UUID:" not in first
    return smi_csv.is_header(first) or smi_csv.is_refusal(first) or like


def _is_container_error(text: str) -> bool:
    """Unless it passes on what the driver said, which tells more."""
    return container_error.is_it(text) and driver_fault.first(text, "text") is None


# White space without end: a pattern that begins with some would look through all of it from each of its places.
_BLANKS, _RUN = re.compile(r"\n(?:[^\S\n]*\n){2,}"), re.compile(r"[^\S\n]{300,}")
_LISTED = _has(r"^GPU \d+: .+ \(UUID: [^()\n]*\)[ \t]*$|^ *MIG \S+ +Device +\d+: \(UUID: ")
_OTHER = _has(r"^[ \t]+(?!MIG\b|[ \t])\S")  # nvlink -c, -info, -R and others: below the same lines of GPUs
# Sections of nvidia-smi -q without its head and the GPU's address, as greps and people cut them out.
_SECTION = _has(
    r"^[ \t]*(?:Remapped Rows|Retired Pages|ECC (?:Errors|Mode)|Clocks (?:Throttle|Event) Reasons|GPU Reset Status|"
    r"(?:FB|BAR1) Memory Usage|(?:GPU )?Power Readings)[ \t]*\n[ \t]+\S"
)


def _is_docker_info(text: str) -> bool:
    """Unless a container that got no GPU stands beside it: that is what the text is about."""
    return docker_info.is_it(text) and not container_error.is_it(text)


def _is_list(text: str) -> bool:
    return _LISTED(text) and not _OTHER(text)


def _driver_error(text: str) -> object:
    fault = driver_fault.first(text, "text")
    if fault is None:
        raise ParseError("the driver's error", 0, "no line in which the driver says that it cannot work")
    return fault


def _sysfs_numa(text: str) -> object:
    return sysfs.parse_numa(text, grep=True)


_MATRIX_ROW = r"^\s*(?:GPU|PPU)\d+[ \t]+(?:{cells})\b"
_LINKS = r"X|NV\d+|ICN\d+|PIX|PXB|PHB|PSB|NODE|SYS|SOC|C2C"

# The first that fits is the kind: the ones with a signature of their own come before the ones with a loose one.
KINDS: tuple[Kind, ...] = (
    Kind("nvml", "the probe's NVML document", _json_has("init_error", "errors"), nvml.parse),
    Kind("nvml", "the probe's NVML document", _json_has("devices", "device_count"), nvml.parse),
    Kind("dcgm-health", "DCGM health watch", dcgm_health.is_it, dcgm_health.parse),
    Kind("dcgm-diag", "DCGM diagnostic", dcgm.is_it, dcgm.parse_diag),
    Kind("oci-health", "OCI active health check", _json_has("tests", "final_result"), oci.parse),
    Kind("lsblk", "block devices", _json_has("blockdevices"), lsblk.parse),
    Kind("lsblk", "block devices", _json_has("Devices", "ModelNumber"), lsblk.parse),
    Kind("rdma-link", "RDMA links", _json_has("ifname", "physical_state"), rdma_link.parse),
    Kind("rdma-counters", "RDMA counters", _json_has("ifname", "port"), rdma_counters.parse),
    Kind("cuda-version-files", "CUDA version files", _json_has("cuda", "cuda_cudart"), cuda_toolkit.parse_files),
    Kind("fio", "disk test", fio.is_it, fio.parse),
    Kind("stress-ng", "stress test of the host", stress_ng.is_it, stress_ng.parse),
    Kind("nvidia-ctk-version", "container toolkit", container_gpus.is_version, container_gpus.parse_version),
    Kind("nvidia-ctk", "GPUs for containers", container_gpus.is_it, container_gpus.parse),
    Kind("dcgmi-nvlink", "NVLink states as DCGM sees them", dcgm_nvlink.is_it, dcgm_nvlink.parse),
    Kind("lscpu", "CPU and NUMA layout", _json_has("lscpu", "field"), numa_tools.parse_lscpu),
    Kind("nvidia-smi-q-x", "GPU inventory as XML", _has(r"<nvidia_smi_log\b"), smi_xml.parse),
    Kind("nvbandwidth", "copy bandwidth test", nvbandwidth.is_it, nvbandwidth.parse),
    Kind("nccl-tests", "collective bandwidth test", nccl_tests.is_it, nccl_tests.parse),
    Kind("gpu-burn", "burn-in", gpu_burn.is_it, gpu_burn.parse),
    Kind("gpu-fryer", "burn-in", gpu_fryer.is_it, gpu_fryer.parse),
    Kind("vgpu-license", "vGPU licence", _has(r"^[ \t]*Active vGPUs[ \t]+:"), vgpu.parse),
    Kind(
        "nvidia-smi-q",
        "GPU inventory as text",
        _has(r"^=+NVSMI LOG=+|^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$"),
        smi_text.parse,
    ),
    Kind("vgpu-license", "vGPU licence", _has(r"^\s*(?:vGPU Software|GRID) Licensed Product\s*$"), vgpu.parse),
    Kind("nvidia-smi", "nvidia-smi's table", smi_table.is_table, smi_table.parse_table),
    Kind("nvidia-smi-version", "nvidia-smi's versions", _has(r"^NVIDIA-SMI version\s+:"), smi_list.parse_version),
    Kind(
        "topo-p2p",
        "peer-to-peer matrix",
        _has(
            _MATRIX_ROW.format(cells=r"X[ \t]+(?:OK|CNS|GNS|TNS|NS|DR|U)|OK|CNS|GNS|TNS|NS|DR|U")
            + r"|^ +OK +=|topo -p2p [rwnap]+$"
        ),
        lambda text: topo_p2p.parse(text, ""),
    ),
    Kind("topo-m", "pair matrix", _has(_MATRIX_ROW.format(cells=_LINKS)), topo.parse),
    Kind(
        "nvlink-e",
        "NVLink error counters",
        _has(r"^\s*Link \d+: .*(?:Errors?|packets|bytes|recover|discards)\b.*\d+\s*$"),
        nvlink_errors.parse,
    ),
    Kind(
        "nvlink-s",
        "NVLink states",
        _has(
            r"^\s*Link \d+: (?:[\d.]+ GB/s|<inactive>)|Unable to retrieve NVLink|have or support NVLink|NVLink queries",
            re.M | re.I,
        ),
        nvlink.parse,
    ),
    Kind(
        "nvidia-smi-l",
        "GPU list",
        _is_list,
        lambda text: smi_list.parse_list(text),
    ),
    Kind("kernel-module", "the loaded NVIDIA module", _has(r"^NVRM version:"), kernel_module.parse),
    Kind("nvidia-smi-apps", "processes on the GPUs", smi_rows.is_apps, smi_rows.parse_apps),
    Kind("nvidia-smi-pages", "retired memory pages", smi_rows.is_pages, smi_rows.parse_pages),
    Kind("kernel-log", "kernel log", kernel_lines.is_kernel_log, kernel_log.parse),
    Kind("nvidia-smi-csv", "GPU table", _is_csv, smi_csv.parse),
    Kind("fi-info", "EFA NICs", _has(r"^\s*provider: \S+|^fi_getinfo: -\d+|^fi_info:$"), fi_info.parse),
    Kind(
        "ibv-devinfo",
        "RDMA devices",
        _has(r"^\s*hca_id:|No IB devices found|Failed to get IB devices list|^\s*device\s+node GUID|^\d+ HCAs? found:"),
        rdma.parse_ibv_devinfo,
    ),
    Kind("ibstatus", "RDMA ports", _has(r"^\s*Infiniband device '|^Fatal error: +No devices"), rdma.parse_ibstatus),
    Kind("ibstat", "RDMA adapters", _has(r"^\s*CA:? '"), rdma.parse_ibstat),
    Kind(
        "rdma-link",
        "RDMA links",
        _has(
            r"^\s*(?:\d+(?:/\d+)?: )?(?:link )?[^/\s]+/\d+:? (?:subnet_prefix .*)?state [A-Z]|"
            r"open NETLINK_RDMA socket|^\d+: \S+ node_type "
        ),
        rdma_link.parse,
    ),
    Kind("ibdev2netdev", "RDMA ports by interface", _has(r" port \d+ (?:\(\w+ *\) )?==> \S+ \("), rdma_link.parse_map),
    Kind(
        "rdma-counters",
        "RDMA counters",
        _has(r"^\s*link \S+/\d+ [a-z]\w+ \d+ |^/sys/class/infiniband/\S+/hw_counters/"),
        rdma_counters.parse,
    ),
    Kind("eadm", "Alibaba's eRDMA driver", eadm.is_it, eadm.parse),
    Kind("sysfs-numa", "NUMA nodes", _has(r"/sys/devices/system/node/node\d+/"), _sysfs_numa),
    Kind("sysfs-pcie", "PCI functions", _has(r"^/sys/bus/pci/devices/"), sysfs.parse_pci),
    Kind("numactl", "NUMA nodes", _has(r"^\s*available: \d+ nodes?"), numa_tools.parse_numactl),
    Kind("lscpu", "CPU and NUMA layout", numa_tools.is_lscpu, numa_tools.parse_lscpu),
    Kind(
        "lsblk",
        "block devices",
        _has(
            r'^\s*K?NAME="[^"]*" [A-Z:%-]+="|^ *K?NAME +\S.* TYPE\b|'
            r"^ *K?NAME +(?:TYPE|MAJ:MIN|FSTYPE|ALIGNMENT|DISC-ALN)\b|^Failed to scan topology|"
            r"^ *NAME +SIZE OWNER|^\s*Node +(?:Generic +)?SN +Model|^Subsystem +Subsystem-NQN|^NVM Express Subsystems"
        ),
        lsblk.parse,
    ),
    Kind("mdstat", "software RAID", _has(r"^Personalities :|^md\S+ : (?:active|inactive|broken)"), mdstat.parse),
    Kind("mdadm", "software RAID in detail", _has(r"^\s*Raid Level : |^ARRAY /dev/|^mdadm: "), mdstat.parse_detail),
    Kind(
        "nvcc",
        "CUDA compiler",
        _has(
            r"^Cuda compilation tools, release|NVIDIA \(R\) Cuda compiler|\bnvcc: .*not found|Command 'nvcc' not found"
        ),
        cuda_toolkit.parse,
    ),
    Kind(
        "cuda-version-files",
        "CUDA version files",
        _has(r"^\S*/cuda[^/\s]*/version\.(?:json|txt):|^CUDA Version \d+\.\d+\.\d+\s*$"),
        cuda_toolkit.parse_files,
    ),
    Kind("systemctl", "systemd units", services.is_it, services.parse),
    Kind("docker-info", "Docker's own state", _is_docker_info, docker_info.parse),
    Kind("lspci", "PCI functions", lspci.is_it, lspci.parse_any),
    Kind("nvidia-smi-q", "GPU inventory as text", _SECTION, smi_text.parse),
    Kind("container-error", "why a container got no GPU", _is_container_error, container_error.parse),
    Kind(
        "driver-error", "the driver's error", lambda text: driver_fault.first(text, "text") is not None, _driver_error
    ),
)


def recognise(text: str) -> Kind | None:
    """The kind of a text, or None where no format fits."""
    content = _RUN.sub(" ", _BLANKS.sub("\n\n", clean(text)))
    return next((kind for kind in KINDS if kind.is_it(content)), None)


def by_name(name: str) -> tuple[Kind, ...]:
    """The kinds of one name; some names have two shapes (a table and JSON) with one parser."""
    return tuple(kind for kind in KINDS if kind.name == name)


def names() -> tuple[str, ...]:
    """Every name that ``--kind`` takes."""
    return tuple(dict.fromkeys(kind.name for kind in KINDS))
