"""``nvidia-smi -q -x``: the GPU inventory from its XML, DTD v11 to v13 (drivers 515 to 595)."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from profiles.errors import ParseError
from validation.facts import driver_fault
from validation.facts.fields import RawGpu, gpu, lost_gpus, parts_of
from validation.facts.gpu import GpuInventory
from validation.facts.missing import ABSENT, Missing, sentinel
from validation.facts.text import clean, integer, word

TOOL = "nvidia-smi -q -x"
_ROOT = "nvidia_smi_log"

# Our key: where each DTD generation keeps it, newest first. Several that are there at once are parts of one sum only
# where the key is a count of ECC errors.
_PATHS = {
    "name": ("product_name",),
    "uuid": ("uuid",),
    "serial": ("serial",),
    "pci_address": ("pci/pci_bus_id",),
    "brand": ("product_brand",),
    "architecture": ("product_architecture",),
    "memory_total_mib": ("fb_memory_usage/total",),
    "memory_used_mib": ("fb_memory_usage/used",),
    "vbios": ("vbios_version",),
    "gsp_firmware": ("gsp_firmware_version",),
    "persistence": ("persistence_mode",),
    "mig_enabled": ("mig_mode/current_mig",),
    "mig_pending": ("mig_mode/pending_mig",),
    "compute_mode": ("compute_mode",),
    "virtualization": ("gpu_virtualization_mode/virtualization_mode",),
    "vgpu_license": ("vgpu_software_licensed_product/license_status", "grid_licensed_product/license_status"),
    "ecc.enabled": ("ecc_mode/current_ecc",),
    "ecc.enabled_next": ("ecc_mode/pending_ecc",),
    "ecc.sram_threshold_exceeded": ("ecc_errors/aggregate/sram_threshold_exceeded",),
    "remapped_rows.correctable": ("remapped_rows/remapped_row_corr",),
    "remapped_rows.uncorrectable": ("remapped_rows/remapped_row_unc",),
    "remapped_rows.pending": ("remapped_rows/remapped_row_pending",),
    "remapped_rows.failure": ("remapped_rows/remapped_row_failure",),
    "retired_pages.single_bit": ("retired_pages/multiple_single_bit_retirement/retired_count",),
    "retired_pages.double_bit": ("retired_pages/double_bit_retirement/retired_count",),
    "retired_pages.pending": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
    "repairs.channel_pending": ("ecc_errors/channel_repair_pending",),
    "repairs.tpc_pending": ("ecc_errors/tpc_repair_pending",),
    "repairs.unrepairable_memory": ("ecc_errors/unrepairable_memory",),
    "fabric.state": ("fabric/state",),
    "fabric.status": ("fabric/status",),
    "fabric.clique_id": ("fabric/cliqueId",),
    "fabric.cluster_uuid": ("fabric/clusterUuid",),
    "pcie.generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie.generation_max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie.width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie.width_max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "pcie.replays": ("pci/replay_counter",),
    "temperature_c": ("temperature/gpu_temp",),
    "tlimit_margin_c": ("temperature/gpu_temp_tlimit",),
    "slowdown_c": ("temperature/gpu_temp_slow_threshold",),
    "power_draw_w": (
        "gpu_power_readings/instant_power_draw",
        "gpu_power_readings/power_draw",
        "power_readings/power_draw",
    ),
    "power_limit_w": ("gpu_power_readings/current_power_limit", "power_readings/power_limit"),
    "power_limit_default_w": ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
    "sm_clock_mhz": ("clocks/sm_clock",),
    "sm_clock_max_mhz": ("max_clocks/sm_clock",),
    "memory_clock_mhz": ("clocks/mem_clock",),
    "recovery_action": ("gpu_recovery_action",),
    "reset_required": ("gpu_reset_status/reset_required",),
    "drain_and_reset": ("gpu_reset_status/drain_and_reset_recommended",),
}
_CORRECTED = ("sram_correctable", "dram_correctable")
_UNCORRECTED = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
_SUMS = {
    f"ecc.{scope}_{kind}": (f"ecc_errors/{scope}/{total}/total", tuple(f"ecc_errors/{scope}/{part}" for part in parts))
    for scope in ("volatile", "aggregate")
    for kind, total, parts in (("corrected", "single_bit", _CORRECTED), ("uncorrected", "double_bit", _UNCORRECTED))
}
_SLICE_ERRORS = "mig_devices/mig_device/ecc_error_count/volatile_count/sram_uncorrectable"
_DEEPEST = max(
    path.count("/")
    for paths in (*_PATHS.values(), *((total, *parts) for total, parts in _SUMS.values()))
    for path in paths
)
_REASON = re.compile(r"^clocks_(?:event|throttle)_reason_(.+)$")


def parse(text: str) -> GpuInventory:
    """The GPUs of the document, with the ones that an error text before it says are lost.

    Raises ParseError where the text is not one whole document: cut off, not this tool's, or with entities of its own.
    """
    content = clean(text)
    start = min((found for found in (content.find("<?xml"), content.find(f"<{_ROOT}")) if found >= 0), default=-1)
    if start < 0:
        fault = driver_fault.first(content, TOOL)
        raise ParseError(TOOL, 1, f"no XML; the tool said: {fault.text}" if fault else "no XML document in the output")
    end = content.rfind(f"</{_ROOT}>")
    body = content[start : end + len(_ROOT) + 3] if end >= 0 else content[start:]
    root = _tree(body, content[:start].count("\n"))
    if root.tag != _ROOT:
        raise ParseError(TOOL, 1, f"the document is <{root.tag}>, not <{_ROOT}>")
    around = content[:start] + content[end + len(_ROOT) + 3 :]
    gpus = tuple(gpu(_raw(index, element)) for index, element in enumerate(root.findall("gpu")))
    faults = driver_fault.find(around, TOOL)
    named = [fault.gpu or fault.text for fault in faults if fault.kind == "gpu-lost"]
    return GpuInventory(
        source="nvidia-smi-q-x",
        gpus=gpus,
        driver_version=word(root.findtext("driver_version")),
        cuda_driver_version=word(root.findtext("cuda_version")),
        attached=integer(root.findtext("attached_gpus"), TOOL, "attached_gpus"),
        lost=lost_gpus(gpus, named),
        warned=tuple(fault.gpu or fault.text for fault in faults if fault.kind == "inforom-corrupt"),
    )


def _tree(text: str, lines_before: int) -> Element:
    """The element tree. Entity declarations are refused before they can expand; no external file is read."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise ParseError(
            TOOL, lines_before + parser.CurrentLineNumber, "declares XML entities, which nvidia-smi never does"
        )

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
        return builder.close()
    except expat.ExpatError as error:
        reason = f"not a whole XML document: {expat.ErrorString(error.code)}"
        raise ParseError(TOOL, lines_before + error.lineno, reason) from error


def _texts(element: Element) -> dict[str, str]:
    """The text of every element below, by its path from here, as ``findtext`` gives it; the first where there are two.

    Half a thousand searches, each from the top, took longer than to parse the document.
    """
    found: dict[str, str] = {}

    def walk(parent: Element, above: str, deeper: int) -> None:
        for child in parent:
            path = above + child.tag
            found.setdefault(path, child.text or "")
            if deeper:
                walk(child, path + "/", deeper - 1)

    walk(element, "", _DEEPEST)
    return found


def _raw(index: int, element: Element) -> RawGpu:
    values: dict[str, tuple[str, ...]] = {}
    texts = _texts(element)
    for key, paths in _PATHS.items():
        found = [texts[path] for path in paths if path in texts]
        if found:
            # A newer path may be there and say N/A beside an older one that has the value.
            values[key] = (next((printed for printed in found if sentinel(printed) is None), found[0]),)
    for key, (total, parts) in _SUMS.items():
        whole = texts.get(total)
        printed = {path.rpartition("/")[2]: texts[path] for path in parts if path in texts}
        values[key] = parts_of(printed) if whole is None else (whole,)
    slices = element.findall(_SLICE_ERRORS)
    if slices:
        values["ecc.slices"] = tuple(count.text or "" for count in slices)
    if "pci_address" not in values:
        values["pci_address"] = (element.get("id", ""),)
    reasons = element.find("clocks_event_reasons")
    if reasons is None:
        reasons = element.find("clocks_throttle_reasons")
    _whole_sections(values, element)
    return RawGpu(
        tool=TOOL,
        index=index,
        values=values,
        throttle={match[1]: child.text or "" for child in _children(reasons) if (match := _REASON.match(child.tag))},
        health={child.tag: child.text or "" for child in _children(element.find("fabric/health"))},
        processes=_processes(element.find("processes")),
    )


def _whole_sections(values: dict[str, tuple[str, ...]], element: Element) -> None:
    """A section printed as one word (``<remapped_rows>N/A</remapped_rows>``) gives that word to each of its fields."""
    for key, paths in (*_PATHS.items(), *((key, parts) for key, (_, parts) in _SUMS.items())):
        if values.get(key):
            continue
        section = element.find(paths[0].partition("/")[0])
        if section is not None and len(section) == 0 and (section.text or "").strip():
            values[key] = (section.text or "",)


def _children(element: Element | None) -> list[Element]:
    return [] if element is None else list(element)


def _processes(element: Element | None) -> int | Missing:
    """How many processes are listed, of any type; the section may hold one word instead."""
    if element is None:
        return ABSENT
    listed = element.findall("process_info")
    if listed or not (element.text or "").strip():
        return len(listed)
    value = word(element.text)
    return value if isinstance(value, Missing) else 0
