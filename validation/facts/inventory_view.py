"""Which questions an inventory can answer: a text of one tool carries some fields of a GPU and not the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass

from validation.facts.gpu import DriverFault, Gpu, GpuInventory
from validation.facts.missing import ABSENT, Missing, Reason
from validation.verdict import Verdict

_LISTS_ALL = ("nvml", "nvidia-smi-q-x", "nvidia-smi-q", "nvidia-smi-csv", "nvidia-smi-l")
_Reads = Callable[[Gpu], tuple[object, ...]]

# The fields each check reads, by its id. A check that is not here reads what every inventory has.
_FIELDS: Mapping[str, _Reads] = {
    "gpu.name": lambda gpu: (gpu.name,),
    "gpu.pci_bus": lambda gpu: (gpu.pci_address,),
    "gpu.memory": lambda gpu: (gpu.memory_total_mib,),
    "gpu.recovery_action": lambda gpu: (gpu.recovery_action,),
    "gpu.throttle": lambda gpu: (gpu.throttle_reasons,),
    "nvlink.links_active": lambda gpu: (gpu.nvlinks,),
    "nvlink.rate": lambda gpu: (gpu.nvlinks,),
    "tool.nvlink": lambda gpu: (gpu.nvlinks,),
    "pcie.width": lambda gpu: (gpu.pcie.width,),
    "fabric.state": lambda gpu: (gpu.fabric.state,),
    "ecc.uncorrected": lambda gpu: (gpu.ecc.volatile_uncorrected, gpu.ecc.sram_threshold_exceeded),
    "numa.affinity": lambda gpu: (gpu.pci_address,),
}
_MIG_HINT = "Turn MIG off to read it, before the GPU is sliced."
_ROOT_HINT = "Run the tool as root."


def carries(check_id: str, inventory: GpuInventory) -> bool:
    """Whether the inventory's source prints what the check reads, for at least one GPU."""
    if check_id == "gpu.count":
        return inventory.source in _LISTS_ALL and not inventory.omitted
    if check_id in ("driver.loaded", "driver.version", "driver.library_match"):
        return inventory.driver_version != ABSENT
    if check_id == "gpu.lost":
        return bool(inventory.lost) or any(_answers(gpu) for gpu in inventory.gpus)
    if check_id == "memory.row_remap":
        return any(_repair_is_there(gpu) for gpu in inventory.gpus)
    reads = _FIELDS.get(check_id)
    return reads is None or _any(inventory, reads)


def _any(inventory: GpuInventory, reads: _Reads) -> bool:
    return any(value != ABSENT for gpu in inventory.gpus for value in reads(gpu))


def _answers(gpu: Gpu) -> bool:
    """Whether the text holds a value that only a GPU which answers can give: lists of names go on naming a lost one."""
    live = (gpu.memory_used_mib, gpu.temperature_c, gpu.power_draw_w, gpu.ecc.volatile_uncorrected)
    return any(not isinstance(value, Missing) for value in live)


def _repair_is_there(gpu: Gpu) -> bool:
    """Whether the text has the state of the way in which this board repairs its memory, or says that it cannot tell."""
    rows, pages = gpu.remapped_rows, gpu.retired_pages
    return ABSENT not in (rows.pending, rows.failure) or pages.pending != ABSENT


def judges_faults(check_id: str, fault: DriverFault) -> bool:
    """Whether the check speaks about a driver that says it cannot work."""
    speaks = {"gpu-lost": ("driver.loaded", "gpu.lost"), "library-mismatch": ("driver.loaded", "driver.library_match")}
    return check_id in speaks.get(fault.kind, ("driver.loaded",))


def unread(inventory: GpuInventory) -> Iterator[tuple[str, Verdict, str, str]]:
    """Subject, verdict, message and remedy for fields the driver refused or could not read, whoever would need them.

    A refusal is UNKNOWN, an error in place of a value FAIL. With MIG on, row remapping prints N/A: not looked at.
    """
    for gpu in inventory.gpus:
        for name, value in _missing(gpu):
            if value.reason is Reason.COULD_NOT_LOOK:
                yield gpu.label, Verdict.UNKNOWN, f"{name}: {value}", _ROOT_HINT
            elif value.reason is Reason.FAULT:
                yield gpu.label, Verdict.FAIL, f"{name}: {value}", "Reboot once; if it repeats, replace the host."
        pending = gpu.remapped_rows.pending
        if gpu.mig_enabled is True and isinstance(pending, Missing) and pending.reason is Reason.NOT_APPLICABLE:
            message = "row remapping cannot be read while MIG is on: its state is not known"
            yield gpu.label, Verdict.UNKNOWN, message, _MIG_HINT


def _missing(value: object, prefix: str = "") -> Iterator[tuple[str, Missing]]:
    """Every field of a GPU that is Missing for a reason of its own, with its dotted name."""
    if not is_dataclass(value) or isinstance(value, type):
        return
    for item in fields(value):
        found = getattr(value, item.name)
        if isinstance(found, Missing):
            if found != ABSENT:
                yield f"{prefix}{item.name}", found
        elif is_dataclass(found):
            yield from _missing(found, f"{prefix}{item.name}.")
