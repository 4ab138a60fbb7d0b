"""How GPUs are wired, as NVML says it: NVLink, fabric, peer access, PCIe ancestors. Shapes: nvml.py's docstring."""

from functools import partial
from typing import Any, Callable, Dict, Tuple

import pynvml

from validation.probe.nvml_query import ERROR_NAMES, field, first_of, guarded

NO_LINK = ({"error": "NVML_ERROR_INVALID_ARGUMENT"}, {"error": "NVML_ERROR_NOT_SUPPORTED"})
LINKS_MAX = 36  # NVML_NVLINK_MAX_LINKS
LINK_REMOTES = {0: "gpu", 1: "npu", 2: "switch"}
P2P_STATUS = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
TOPOLOGY = {0: "INTERNAL", 10: "SINGLE", 20: "MULTIPLE", 30: "HOSTBRIDGE", 40: "NODE", 50: "SYSTEM"}
FABRIC_STATES = {0: "N/A", 1: "Not Started", 2: "In Progress", 3: "Completed"}
FABRIC_SUMMARIES = {0: "N/A", 1: "Healthy", 2: "Unhealthy", 3: "Limited Capacity"}
TRISTATE = {0: "N/A", 1: "True", 2: "False"}
MISCONFIGURATIONS = {
    0: "N/A", 1: "None", 2: "Incorrect SysGuid", 3: "Incorrect Chassis SN", 4: "No Partition",
    5: "Insufficient Nvlinks", 6: "Incompatible GPU Firmware", 7: "Invalid Location", 8: "GPU State Invalid",
}  # fmt: skip
# Health mask: name, lowest bit, width in bits, words.
FABRIC_HEALTH: Tuple[Tuple[str, int, int, Dict[int, str]], ...] = (
    ("bandwidth", 0, 2, {0: "N/A", 1: "Degraded", 2: "Full"}),
    ("route_recovery_in_progress", 2, 2, TRISTATE),
    ("route_unhealthy", 4, 2, TRISTATE),
    ("access_timeout_recovery", 6, 2, TRISTATE),
    ("incorrect_configuration", 8, 4, MISCONFIGURATIONS),
    ("partition_assigned", 12, 2, TRISTATE),
)


def _fabric_block(query: Callable[..., Any], kind: Callable[[], Any], handle: Any) -> Any:
    info = kind()
    query(handle, pynvml.byref(info))
    return info


def fabric(handle: Any) -> Dict[str, Any]:
    """The fabric block by the newest call the driver has; a GPU without fabric is NVML_ERROR_NOT_SUPPORTED."""
    versioned = partial(_fabric_block, pynvml.nvmlDeviceGetGpuFabricInfoV)
    info = first_of(
        partial(versioned, pynvml.c_nvmlGpuFabricInfo_v3_t, handle),
        partial(versioned, pynvml.c_nvmlGpuFabricInfo_v2_t, handle),
        partial(_fabric_block, pynvml.nvmlDeviceGetGpuFabricInfo, pynvml.c_nvmlGpuFabricInfo_t, handle),
    )
    if info.state == pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    digits = "".join("%02x" % byte for byte in info.clusterUuid)
    return {
        "state": FABRIC_STATES.get(info.state, str(info.state)),
        "status": "Success" if not info.status else ERROR_NAMES.get(info.status, str(info.status)),
        "clique_id": info.cliqueId,
        "cluster_uuid": "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])),
        "health_summary": FABRIC_SUMMARIES.get(getattr(info, "healthSummary", 0), "Unknown"),
        "health": fabric_health(getattr(info, "healthMask", 0)),
    }


def fabric_health(mask: int) -> Dict[str, str]:
    """The words of a health mask: ``fabric_health(2)["bandwidth"]`` is ``Full``."""
    values = {name: mask >> shift & (1 << width) - 1 for name, shift, width, _ in FABRIC_HEALTH}
    return {name: words.get(values[name], "0x%x" % values[name]) for name, _, _, words in FABRIC_HEALTH}


def nvlink_rate(handle: Any, link: int) -> int:
    """MB/s per direction: the field per link where the driver has it, else the board's common rate."""
    rate = first_of(
        partial(field, handle, pynvml.NVML_FI_DEV_NVLINK_GET_SPEED, link),
        partial(field, handle, pynvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON),
    )
    return int(rate)


def nvlink_remote(handle: Any, link: int) -> str:
    return LINK_REMOTES.get(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link), "unknown")


def nvlink(handle: Any, link: int) -> Dict[str, Any]:
    """One link; rate, version and what it leads to only where it is active."""
    active = guarded(partial(pynvml.nvmlDeviceGetNvLinkState, handle, link))
    if active != pynvml.NVML_FEATURE_ENABLED:
        return {"link": link, "active": False if active == pynvml.NVML_FEATURE_DISABLED else active}
    return {
        "link": link,
        "active": True,
        "rate_mbps": guarded(partial(nvlink_rate, handle, link)),
        "version": guarded(partial(pynvml.nvmlDeviceGetNvLinkVersion, handle, link)),
        "remote": guarded(partial(nvlink_remote, handle, link)),
    }


def nvlinks(handle: Any) -> Any:
    """The links the GPU has. An index without a link answers INVALID_ARGUMENT or NOT_SUPPORTED and is left out.

    Where no index has a link, and where every link refuses in the same way, the refusal is the GPU's.
    """
    links = [link for link in (nvlink(handle, number) for number in range(LINKS_MAX)) if link["active"] not in NO_LINK]
    if not links:
        return {"error": "NVML_ERROR_NOT_SUPPORTED"}
    refusals = [link["active"] for link in links if isinstance(link["active"], dict)]
    return refusals[0] if len(refusals) == len(links) else links


def pairs(handle: Any, others: Dict[int, Any], query: Callable[[Any, Any], Any]) -> Dict[str, Any]:
    """One query towards every other GPU that has a handle, by its index."""
    return {str(index): guarded(partial(query, handle, other)) for index, other in others.items()}


def p2p_status(capability: int) -> Callable[[Any, Any], str]:
    def query(one: Any, other: Any) -> str:
        status = pynvml.nvmlDeviceGetP2PStatus(one, other, capability)
        value = getattr(status, "value", status)
        return P2P_STATUS.get(value, str(value))

    return query


def ancestor(one: Any, other: Any) -> str:
    level = pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other)
    return TOPOLOGY.get(level, str(level))
