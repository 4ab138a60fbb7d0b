"""The probe's NVML document (its shape: the docstring of validation/probe/nvml.py) as an inventory and a P2P matrix."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from profiles.errors import ParseError
from validation.facts.gpu import (
    DriverFault,
    Ecc,
    Fabric,
    Gpu,
    GpuInventory,
    NvLink,
    PcieLink,
    RemappedRows,
    Repairs,
    RetiredPages,
)
from validation.facts.host import P2pMatrix
from validation.facts.missing import ABSENT, Missing, Reason, nvml_missing
from validation.facts.text import clean, pci_value, word

TOOL = "nvml"
T = TypeVar("T", bool, int, float, str)

# What nvmlInit's refusal means for the whole host; every other refusal leaves it unknown why.
_INIT_FAULTS = {
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "library-mismatch",
    "NVML_ERROR_DRIVER_NOT_LOADED": "not-loaded",
    "NVML_ERROR_GPU_IS_LOST": "gpu-lost",
}


def _no_number(word: str) -> object:
    """NaN and Infinity are no values: every comparison with NaN is false, so no check could fail it."""
    raise ValueError(f"{word} in place of a number")


class Document:
    """The document, checked for its outline: either ``init_error``, or a device for every counted index."""

    def __init__(self, text: str) -> None:
        try:
            data = json.loads(clean(text), parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise ParseError(TOOL, 0, f"not JSON: {error}") from error
        if not isinstance(data, dict):
            raise ParseError(TOOL, 0, "not a JSON object")
        self.data: Mapping[str, Any] = data
        self.init_error = str(data["init_error"]) if data.get("init_error") else ""
        self.devices: list[Mapping[str, Any]] = []
        if self.init_error:
            return
        count, devices = data.get("device_count"), data.get("devices")
        if isinstance(count, dict) and devices == []:
            raise ParseError(TOOL, 0, f"device_count: {count.get('error')}")
        if isinstance(count, bool) or not isinstance(count, int) or not isinstance(devices, list):
            raise ParseError(TOOL, 0, "no device_count or no devices")
        indices = [device.get("index") if isinstance(device, dict) else None for device in devices]
        # The number first: it is the host's word, and a list of that length may not fit into memory.
        if count != len(devices) or indices != list(range(len(devices))):
            raise ParseError(TOOL, 0, f"{count} devices counted, but the list holds the indices {indices}")
        self.devices = devices


def fault(text: str) -> DriverFault | None:
    """The fault that nvmlInit named, or None where it started or gave a reason that names no fault."""
    error = Document(text).init_error
    kind = _INIT_FAULTS.get(error)
    return DriverFault("nvml", kind, error) if kind else None


def parse(text: str) -> GpuInventory:
    """The GPUs that gave a handle; the others are in ``lost``. Raises ParseError where NVML could not start."""
    document = Document(text)
    if document.init_error:
        raise ParseError(TOOL, 0, f"NVML could not start: {document.init_error}")
    gpus, lost = [], []
    for device in document.devices:
        refusal = device.get("handle_error")
        if refusal is None:
            gpus.append(_gpu(device))
            continue
        value = nvml_missing(str(refusal))
        if value.reason is not Reason.FAULT:
            raise ParseError(TOOL, 0, f"GPU{device['index']} gives no handle: {refusal}")
        lost.append(f"GPU{device['index']}")
    fallen = [gpu.label for gpu in gpus if isinstance(gpu.name, Missing) and gpu.name.reason is Reason.FAULT]
    return GpuInventory(
        source="nvml",
        gpus=tuple(gpus),
        driver_version=_text(document.data, "driver_version", "host"),
        cuda_driver_version=_text(document.data, "cuda_driver_version", "host"),
        attached=len(document.devices),
        lost=(*lost, *fallen),
    )


def p2p(text: str) -> P2pMatrix:
    """The read status of every ordered pair. Raises ParseError where one pair could not be asked."""
    document = Document(text)
    if document.init_error:
        raise ParseError(TOOL, 0, f"NVML could not start: {document.init_error}")
    gpus = tuple(int(device["index"]) for device in document.devices if "handle_error" not in device)
    status = {}
    for device in document.devices:
        one, row = int(device["index"]), device.get("p2p")
        if one not in gpus:
            continue
        for two in gpus:
            if two == one:
                continue
            cell = row.get(str(two)) if isinstance(row, dict) else None
            if not isinstance(cell, str):
                raise ParseError(TOOL, 0, f"GPU{one} to GPU{two}: no P2P status ({cell!r})")
            status[one, two] = cell
    return P2pMatrix(capability="r", gpus=gpus, status=status)


def _value(group: Mapping[str, Any], key: str, kind: tuple[type[Any], ...], where: str) -> Any | Missing:
    """The value, the Missing of its error, or ABSENT; raises ParseError where it is of another type."""
    found = group.get(key)
    if found is None:
        return ABSENT
    if isinstance(found, dict) and set(found) == {"error"}:
        return nvml_missing(str(found["error"]))
    if not isinstance(found, kind) or (isinstance(found, bool) and bool not in kind):
        raise ParseError(TOOL, 0, f"{where} {key}: {found!r} is not {' or '.join(k.__name__ for k in kind)}")
    return found


def _text(group: Mapping[str, Any], key: str, where: str) -> str | Missing:
    found = _value(group, key, (str,), where)
    return found if isinstance(found, Missing) else word(found)


def _group(device: Mapping[str, Any], key: str, keys: tuple[str, ...], where: str) -> Mapping[str, Any]:
    """The group's values by key; where the group is one error, that error for each of the keys."""
    found = device.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ParseError(TOOL, 0, f"{where} {key}: {found!r} is not an object")
    return dict.fromkeys(keys, found) if set(found) == {"error"} else found


class _Group:
    """Typed access to one group of one device."""

    def __init__(self, device: Mapping[str, Any], key: str, *keys: str) -> None:
        self.where = f"GPU{device.get('index')} {key}"
        self.values = _group(device, key, keys, f"GPU{device.get('index')}")

    def integer(self, key: str) -> int | Missing:
        found: int | Missing = _value(self.values, key, (int,), self.where)
        return found

    def number(self, key: str) -> float | Missing:
        found = _value(self.values, key, (int, float), self.where)
        return found if isinstance(found, Missing) else float(found)

    def flag(self, key: str) -> bool | Missing:
        found: bool | Missing = _value(self.values, key, (bool,), self.where)
        return found

    def text(self, key: str) -> str | Missing:
        return _text(self.values, key, self.where)


def _gpu(device: Mapping[str, Any]) -> Gpu:
    index = int(device["index"])
    where = f"GPU{index}"
    memory = _Group(device, "memory", "total_mib", "used_mib")
    clocks = _Group(device, "clocks", "sm_mhz", "sm_max_mhz", "memory_mhz")
    power = _Group(device, "power", "draw_w", "limit_w", "limit_default_w")
    heat = _Group(device, "temperature", "gpu_c", "tlimit_margin_c", "slowdown_c")
    mig = _Group(device, "mig", "enabled", "pending")
    address = _text(device, "pci_address", where)
    reasons = _value(device, "throttle_reasons", (list,), where)
    return Gpu(
        index=index,
        name=_text(device, "name", where),
        uuid=_text(device, "uuid", where),
        serial=_text(device, "serial", where),
        pci_address=address if isinstance(address, Missing) else pci_value(address, TOOL, f"{where} pci_address"),
        architecture=_text(device, "architecture", where),
        memory_total_mib=memory.number("total_mib"),
        memory_used_mib=memory.number("used_mib"),
        vbios=_text(device, "vbios", where),
        gsp_firmware=_text(device, "gsp_firmware", where),
        persistence=_value(device, "persistence", (bool,), where),
        mig_enabled=mig.flag("enabled"),
        mig_pending=mig.flag("pending"),
        compute_mode=_text(device, "compute_mode", where),
        virtualization=_text(device, "virtualization", where),
        ecc=_ecc(device),
        remapped_rows=_remapped_rows(device),
        retired_pages=_retired_pages(device),
        repairs=_repairs(device),
        fabric=_fabric(device),
        pcie=_pcie(device),
        nvlinks=_nvlinks(device),
        temperature_c=heat.number("gpu_c"),
        tlimit_margin_c=heat.number("tlimit_margin_c"),
        slowdown_c=heat.number("slowdown_c"),
        power_draw_w=power.number("draw_w"),
        power_limit_w=power.number("limit_w"),
        power_limit_default_w=power.number("limit_default_w"),
        sm_clock_mhz=clocks.number("sm_mhz"),
        sm_clock_max_mhz=clocks.number("sm_max_mhz"),
        memory_clock_mhz=clocks.number("memory_mhz"),
        throttle_reasons=reasons if isinstance(reasons, Missing) else frozenset(str(reason) for reason in reasons),
        recovery_action=_text(device, "recovery_action", where),
        processes=_value(device, "processes", (int,), where),
    )


def _ecc(device: Mapping[str, Any]) -> Ecc:
    counts = ("volatile_corrected", "volatile_uncorrected", "aggregate_corrected", "aggregate_uncorrected")
    group = _Group(device, "ecc", "enabled", "pending", "sram_threshold_exceeded", *counts)
    return Ecc(
        enabled=group.flag("enabled"),
        enabled_next=group.flag("pending"),
        volatile_corrected=group.integer(counts[0]),
        volatile_uncorrected=group.integer(counts[1]),
        aggregate_corrected=group.integer(counts[2]),
        aggregate_uncorrected=group.integer(counts[3]),
        sram_threshold_exceeded=group.flag("sram_threshold_exceeded"),
    )


def _remapped_rows(device: Mapping[str, Any]) -> RemappedRows:
    group = _Group(device, "remapped_rows", "correctable", "uncorrectable", "pending", "failure")
    return RemappedRows(
        correctable=group.integer("correctable"),
        uncorrectable=group.integer("uncorrectable"),
        pending=group.flag("pending"),
        failure=group.flag("failure"),
    )


def _retired_pages(device: Mapping[str, Any]) -> RetiredPages:
    group = _Group(device, "retired_pages", "single_bit", "double_bit", "pending")
    return RetiredPages(group.integer("single_bit"), group.integer("double_bit"), group.flag("pending"))


def _repairs(device: Mapping[str, Any]) -> Repairs:
    names = ("channel_pending", "tpc_pending", "unrepairable_memory", "inforom_corrupt")
    group = _Group(device, "repairs", *names)
    return Repairs(*(group.flag(name) for name in names))


def _pcie(device: Mapping[str, Any]) -> PcieLink:
    group = _Group(device, "pcie", "generation", "generation_max", "width", "width_max", "replays")
    return PcieLink(
        generation=group.integer("generation"),
        generation_max=group.integer("generation_max"),
        width=group.integer("width"),
        width_max=group.integer("width_max"),
        replays=group.integer("replays"),
    )


def _fabric(device: Mapping[str, Any]) -> Fabric:
    keys = ("state", "status", "clique_id", "cluster_uuid", "health_summary")
    group = _Group(device, "fabric", *keys)
    health = group.values.get("health")
    words = health.items() if isinstance(health, dict) and set(health) != {"error"} else ()
    return Fabric(
        state=group.text("state"),
        status=group.text("status"),
        clique_id=group.integer("clique_id"),
        cluster_uuid=group.text("cluster_uuid"),
        health_summary=group.text("health_summary"),
        health=tuple((str(name), str(value)) for name, value in words if not isinstance(word(str(value)), Missing)),
    )


def _nvlinks(device: Mapping[str, Any]) -> tuple[NvLink, ...] | Missing:
    where = f"GPU{device['index']}"
    found = _value(device, "nvlinks", (list,), where)
    if isinstance(found, Missing):
        return found
    links = []
    for entry in found:
        if not isinstance(entry, dict) or not isinstance(entry.get("link"), int):
            raise ParseError(TOOL, 0, f"{where} nvlinks: {entry!r} is not a link")
        name = f"{where} link {entry['link']}"
        rate = _value(entry, "rate_mbps", (int, float), name)
        links.append(
            NvLink(
                index=entry["link"],
                active=_value(entry, "active", (bool,), name),
                rate_gbps=rate if isinstance(rate, Missing) else rate / 1000.0,
            )
        )
    if len({link.index for link in links}) != len(links):
        raise ParseError(TOOL, 0, f"{where} nvlinks: a link is listed twice")
    return tuple(links)
