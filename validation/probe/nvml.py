"""What NVML says about every GPU, as one JSON-shaped dictionary. Runs on the host, decides nothing.

Every value below may instead be ``{"error": "NVML_ERROR_NOT_SUPPORTED"}`` (NVML's own name of the error; a text that
does not begin with ``NVML_ERROR_`` is a defect of this module, with its cause). A group (``ecc``, ``memory``, ...) is
either the dictionary shown, each of whose values may be an error, or one error for the whole group::

    {
      "init_error": "NVML_ERROR_DRIVER_NOT_LOADED",   only where NVML could not start: then no other key but "errors"
      "driver_version": "580.105.08",
      "nvml_version": "13.580.105.08",
      "cuda_driver_version": "13.0",                  newest CUDA the driver can run
      "device_count": 8,
      "errors": ["GPU3: NVML_ERROR_GPU_IS_LOST"],     GPUs without a handle
      "devices": [
        {
          "index": 0,
          "handle_error": "NVML_ERROR_GPU_IS_LOST",   only where the GPU gives no handle: then no key but "index"
          "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-...", "serial": "1650...", "minor_number": 0,
          "pci_address": "00000000:53:00.0", "pci_device_id": "0x233010DE",
          "architecture": "Hopper", "compute_capability": "9.0",
          "vbios": "96.00.89.00.01", "gsp_firmware": "580.105.08",
          "persistence": true, "compute_mode": "Default", "virtualization": "None",
          "mig": {"enabled": false, "pending": false},
          "memory": {"total_mib": 81559, "used_mib": 0, "reserved_mib": 551},       MiB = 2^20 bytes
          "ecc": {"enabled": true, "pending": true,
                  "volatile_corrected": 0, "volatile_uncorrected": 0,
                  "aggregate_corrected": 0, "aggregate_uncorrected": 0,
                  "sram_threshold_exceeded": false},
          "remapped_rows": {"correctable": 0, "uncorrectable": 0, "pending": false, "failure": false},
          "retired_pages": {"single_bit": 0, "double_bit": 0, "pending": false},
          "repairs": {"channel_pending": false, "tpc_pending": false, "unrepairable_memory": false,
                      "inforom_corrupt": false},
          "clocks": {"graphics_mhz": 345, "sm_mhz": 345, "memory_mhz": 2619, "video_mhz": 765,
                     "graphics_max_mhz": 1980, "sm_max_mhz": 1980, "memory_max_mhz": 2619},
          "power": {"draw_w": 72.3, "limit_w": 700.0, "limit_default_w": 700.0, "limit_enforced_w": 700.0,
                    "limit_min_w": 200.0, "limit_max_w": 700.0},
          "temperature": {"gpu_c": 31, "memory_c": 38, "slowdown_c": 87, "shutdown_c": 92,
                          "tlimit_margin_c": 55,      degrees left to the slowdown, as the driver counts them
                          "slowdown_tlimit_c": -2, "shutdown_tlimit_c": -8},        the T.Limit at which each begins
          "performance_state": 0,
          "throttle_reasons": ["gpu_idle"],           names: THROTTLE_REASONS below; an unknown bit is "0x..."
          "recovery_action": "None",                  None, Reset, Reboot, Drain P2P, Drain and Reset, ...
          "processes": 0,                             compute processes
          "numa_node": 0,                             node of the GPU's own memory; most drivers: NOT_SUPPORTED
          "cpu_affinity": "0-47,96-143",
          "pcie": {"generation": 5, "generation_max": 5, "width": 16, "width_max": 16, "replays": 0},
          "fabric": {"state": "Completed", "status": "Success", "clique_id": 0,
                     "cluster_uuid": "00000000-0000-0000-0000-000000000000",
                     "health_summary": "Healthy",
                     "health": {"bandwidth": "Full", "route_recovery_in_progress": "False",
                                "route_unhealthy": "False", "access_timeout_recovery": "False",
                                "incorrect_configuration": "None"}},
          "nvlinks": [{"link": 0, "active": true, "rate_mbps": 26562, "version": 4, "remote": "switch"}, ...],
          "p2p": {"1": "OK", ...}, "p2p_nvlink": {"1": "OK", ...},
          "topology": {"1": "SYSTEM", ...}
        }
      ]
    }

``fabric`` and ``recovery_action`` use the words of ``nvidia-smi -q``; a health field the driver does not fill is "N/A".
``nvlinks`` lists the links the GPU has; a board without NVLink is one error for the group. ``rate_mbps`` is MB/s per
direction: 26562 where ``nvidia-smi nvlink -s`` prints 26.562 GB/s. ``p2p`` is the read status to each other GPU by
index: OK, CNS, GNS, TNS, DR, NS, U as ``nvidia-smi topo -p2p r`` prints it. ``topology`` is the common PCIe ancestor:
INTERNAL, SINGLE, MULTIPLE, HOSTBRIDGE, NODE, SYSTEM (PIX, PXB, PHB, NODE, SYS of ``topo -m``); NVLink is not in it.

Names and numbers of NVML: header of nvidia-ml-py 13.615.71, 2026-11.
"""

from functools import partial
from typing import Any, Dict, List, Sequence

import pynvml

from validation.probe.nvml_links import ancestor, fabric, nvlinks, p2p_status, pairs
from validation.probe.nvml_query import error_name, field, first_of, group, guarded, text

MIB = 2**20
CPU_WORDS = 64  # 4096 CPUs
ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
COMPUTE_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
VIRTUALIZATION = {0: "None", 1: "Pass-Through", 2: "VGPU", 3: "Host VGPU", 4: "Host VSGA"}
RECOVERY_ACTIONS = {
    0: "None", 1: "Reset", 2: "Reboot", 3: "Drain P2P", 4: "Drain and Reset", 5: "Recover IMEX Domain", 6: "Bus Reset",
    7: "System Reboot",
}  # fmt: skip
THROTTLE_REASONS = (
    (0x001, "gpu_idle"),
    (0x002, "applications_clocks_setting"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal_slowdown"),
    (0x040, "hw_thermal_slowdown"),
    (0x080, "hw_power_brake_slowdown"),
    (0x100, "display_clocks_setting"),
    (0x200, "board_limit"),
    (0x400, "reliability"),
)


def ranges(numbers: Sequence[int]) -> str:
    """``[0, 1, 2, 8]`` as ``0-2,8``."""
    parts: List[List[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in parts)


def cpu_affinity(handle: Any) -> str:
    words = pynvml.nvmlDeviceGetCpuAffinity(handle, CPU_WORDS)
    return ranges([index * 64 + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1])


def throttle_reasons(handle: Any) -> List[str]:
    mask = first_of(
        partial(pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle),
        partial(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
    )
    names = [name for bit, name in THROTTLE_REASONS if mask & bit]
    unknown = mask & ~sum(bit for bit, _ in THROTTLE_REASONS)
    return names + (["0x%x" % unknown] if unknown else [])


def memory(handle: Any) -> Dict[str, Any]:
    info = first_of(
        partial(pynvml.nvmlDeviceGetMemoryInfo, handle, version=pynvml.nvmlMemory_v2),
        partial(pynvml.nvmlDeviceGetMemoryInfo, handle),
    )
    reserved = getattr(info, "reserved", None)
    return {
        "total_mib": info.total // MIB,
        "used_mib": info.used // MIB,
        "reserved_mib": {"error": "NVML_ERROR_FUNCTION_NOT_FOUND"} if reserved is None else reserved // MIB,
    }


def sram_threshold_exceeded(handle: Any) -> bool:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, pynvml.byref(status))
    return bool(status.bThresholdExceeded)


def ecc(handle: Any) -> Dict[str, Any]:
    count = partial(pynvml.nvmlDeviceGetTotalEccErrors, handle)
    corrected, uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    volatile, aggregate = pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC
    return group(
        (
            ("enabled", lambda: bool(pynvml.nvmlDeviceGetEccMode(handle)[0])),
            ("pending", lambda: bool(pynvml.nvmlDeviceGetEccMode(handle)[1])),
            ("volatile_corrected", partial(count, corrected, volatile)),
            ("volatile_uncorrected", partial(count, uncorrected, volatile)),
            ("aggregate_corrected", partial(count, corrected, aggregate)),
            ("aggregate_uncorrected", partial(count, uncorrected, aggregate)),
            ("sram_threshold_exceeded", lambda: sram_threshold_exceeded(handle)),
        )
    )


def remapped_rows(handle: Any) -> Dict[str, Any]:
    correctable, uncorrectable, pending, failure = pynvml.nvmlDeviceGetRemappedRows(handle)
    return {
        "correctable": correctable,
        "uncorrectable": uncorrectable,
        "pending": bool(pending),
        "failure": bool(failure),
    }


def retired_pages(handle: Any) -> Dict[str, Any]:
    return group(
        (
            ("single_bit", lambda: len(pynvml.nvmlDeviceGetRetiredPages(handle, 0))),
            ("double_bit", lambda: len(pynvml.nvmlDeviceGetRetiredPages(handle, 1))),
            ("pending", lambda: bool(pynvml.nvmlDeviceGetRetiredPagesPendingStatus(handle))),
        )
    )


def inforom_corrupt(handle: Any) -> bool:
    """Whether the board's record of itself fails its checksums; NVML only reads it."""
    try:
        pynvml.nvmlDeviceValidateInforom(handle)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_CORRUPTED_INFOROM:
            raise
        return True
    return False


def repairs(handle: Any) -> Dict[str, Any]:
    return group(
        (
            ("channel_pending", lambda: bool(pynvml.nvmlDeviceGetRepairStatus(handle)[0])),
            ("tpc_pending", lambda: bool(pynvml.nvmlDeviceGetRepairStatus(handle)[1])),
            ("unrepairable_memory", lambda: bool(pynvml.nvmlDeviceGetUnrepairableMemoryFlag_v1(handle))),
            ("inforom_corrupt", lambda: inforom_corrupt(handle)),
        )
    )


def clocks(handle: Any) -> Dict[str, Any]:
    return group(
        (
            ("graphics_mhz", lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_GRAPHICS)),
            ("sm_mhz", lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            ("memory_mhz", lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            ("video_mhz", lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_VIDEO)),
            ("graphics_max_mhz", lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_GRAPHICS)),
            ("sm_max_mhz", lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            ("memory_max_mhz", lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
        )
    )


def power(handle: Any) -> Dict[str, Any]:
    return group(
        (
            ("draw_w", lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000.0),
            ("limit_w", lambda: pynvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000.0),
            ("limit_default_w", lambda: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000.0),
            ("limit_enforced_w", lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000.0),
            ("limit_min_w", lambda: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[0] / 1000.0),
            ("limit_max_w", lambda: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1] / 1000.0),
        )
    )


def temperature_c(handle: Any) -> int:
    value = first_of(
        partial(pynvml.nvmlDeviceGetTemperatureV, handle, pynvml.NVML_TEMPERATURE_GPU),
        partial(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
    )
    return int(value)


def temperature(handle: Any) -> Dict[str, Any]:
    return group(
        (
            ("gpu_c", lambda: temperature_c(handle)),
            ("memory_c", lambda: field(handle, pynvml.NVML_FI_DEV_MEMORY_TEMP)),
            ("slowdown_c", lambda: pynvml.nvmlDeviceGetTemperatureThreshold(handle, 1)),
            ("shutdown_c", lambda: pynvml.nvmlDeviceGetTemperatureThreshold(handle, 0)),
            ("tlimit_margin_c", lambda: pynvml.nvmlDeviceGetMarginTemperature(handle)),
            ("slowdown_tlimit_c", lambda: field(handle, pynvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT)),
            ("shutdown_tlimit_c", lambda: field(handle, pynvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT)),
        )
    )


def pcie(handle: Any) -> Dict[str, Any]:
    return group(
        (
            ("generation", lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
            ("generation_max", lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
            ("width", lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
            ("width_max", lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
            ("replays", lambda: pynvml.nvmlDeviceGetPcieReplayCounter(handle)),
        )
    )


def mig(handle: Any) -> Dict[str, Any]:
    current, pending = pynvml.nvmlDeviceGetMigMode(handle)
    return {"enabled": bool(current), "pending": bool(pending)}


def compute_capability(handle: Any) -> str:
    return "%d.%d" % tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))


def device(handle: Any, index: int, others: Dict[int, Any]) -> Dict[str, Any]:
    """Everything about one GPU; ``others`` are the handles of the rest by index."""
    facts = group(
        (
            ("name", lambda: text(pynvml.nvmlDeviceGetName(handle))),
            ("uuid", lambda: text(pynvml.nvmlDeviceGetUUID(handle))),
            ("serial", lambda: text(pynvml.nvmlDeviceGetSerial(handle))),
            ("minor_number", lambda: pynvml.nvmlDeviceGetMinorNumber(handle)),
            ("pci_address", lambda: text(pynvml.nvmlDeviceGetPciInfo(handle).busId)),
            ("pci_device_id", lambda: "0x%08X" % pynvml.nvmlDeviceGetPciInfo(handle).pciDeviceId),
            ("architecture", lambda: ARCHITECTURES.get(pynvml.nvmlDeviceGetArchitecture(handle), "Unknown")),
            ("compute_capability", lambda: compute_capability(handle)),
            ("vbios", lambda: text(pynvml.nvmlDeviceGetVbiosVersion(handle))),
            ("gsp_firmware", lambda: text(pynvml.nvmlDeviceGetGspFirmwareVersion(handle))),
            ("persistence", lambda: bool(pynvml.nvmlDeviceGetPersistenceMode(handle))),
            ("compute_mode", lambda: COMPUTE_MODES.get(pynvml.nvmlDeviceGetComputeMode(handle), "Unknown")),
            ("virtualization", lambda: VIRTUALIZATION.get(pynvml.nvmlDeviceGetVirtualizationMode(handle), "Unknown")),
            ("mig", lambda: mig(handle)),
            ("memory", lambda: memory(handle)),
            ("ecc", lambda: ecc(handle)),
            ("remapped_rows", lambda: remapped_rows(handle)),
            ("retired_pages", lambda: retired_pages(handle)),
            ("repairs", lambda: repairs(handle)),
            ("clocks", lambda: clocks(handle)),
            ("power", lambda: power(handle)),
            ("temperature", lambda: temperature(handle)),
            ("performance_state", lambda: pynvml.nvmlDeviceGetPerformanceState(handle)),
            ("throttle_reasons", lambda: throttle_reasons(handle)),
            ("recovery_action", lambda: recovery_action(handle)),
            ("processes", lambda: len(pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))),
            ("numa_node", lambda: pynvml.nvmlDeviceGetNumaNodeId(handle)),
            ("cpu_affinity", lambda: cpu_affinity(handle)),
            ("pcie", lambda: pcie(handle)),
            ("fabric", lambda: fabric(handle)),
            ("nvlinks", lambda: nvlinks(handle)),
            ("p2p", lambda: pairs(handle, others, p2p_status(0))),
            ("p2p_nvlink", lambda: pairs(handle, others, p2p_status(2))),
            ("topology", lambda: pairs(handle, others, ancestor)),
        )
    )
    facts["index"] = index
    return facts


def recovery_action(handle: Any) -> str:
    action = field(handle, pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
    return RECOVERY_ACTIONS.get(action, str(action))


def cuda_version() -> str:
    number = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return "%d.%d" % (number // 1000, number % 1000 // 10)


def collect() -> Dict[str, Any]:
    """The whole dictionary of this module's docstring. Never raises for what the driver says."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"init_error": error_name(error), "errors": [error_name(error)]}
    facts = group(
        (
            ("driver_version", lambda: text(pynvml.nvmlSystemGetDriverVersion())),
            ("nvml_version", lambda: text(pynvml.nvmlSystemGetNVMLVersion())),
            ("cuda_driver_version", cuda_version),
            ("device_count", pynvml.nvmlDeviceGetCount),
        )
    )
    count = facts["device_count"]
    found = {index: guarded(partial(pynvml.nvmlDeviceGetHandleByIndex, index)) for index in range(_number(count))}
    lost = {index: handle["error"] for index, handle in found.items() if isinstance(handle, dict)}
    handles = {index: handle for index, handle in found.items() if index not in lost}
    facts["errors"] = ["GPU%d: %s" % (index, lost[index]) for index in sorted(lost)]
    facts["devices"] = [
        {"index": index, "handle_error": lost[index]}
        if index in lost
        else device(handles[index], index, {other: handles[other] for other in sorted(handles) if other != index})
        for index in sorted(found)
    ]
    return facts


def _number(count: Any) -> int:
    """The device count, or 0 where it is an error: there is then nothing to ask."""
    return count if isinstance(count, int) else 0
