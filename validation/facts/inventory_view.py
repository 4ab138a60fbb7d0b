"""Which questions an inventory can answer: a text of one tool carries some fields of a GPU and not the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from validation.facts.gpu import DriverFault, Gpu, GpuInventory
from validation.facts.missing import ABSENT, Missing, Reason
from validation.verdict import Verdict

T = TypeVar("T")
_FULL = ("nvml", "nvidia-smi-q-x", "nvidia-smi-q")
_LISTS_ALL = (*_FULL, "nvidia-smi-csv", "nvidia-smi-l", "nvidia-smi")
_FRAME = {"index", "gpus", "source", "omitted", "lost", "silent", "warned"}
_NAMES = {"name", "uuid", "serial", "pci_address"}
_Reads = Callable[[Gpu], tuple[object, ...]]

# What a check must find in a text to be able to judge it, by its id: one of these fields, for one GPU at least. A check
# that is not here is traced: it concerns a text if it reads a field, other than a name, that the text carries.
_FIELDS: Mapping[str, _Reads] = {
    "gpu.name": lambda gpu: (gpu.name,),
    "gpu.pci_bus": lambda gpu: (gpu.pci_address,),
    "gpu.memory": lambda gpu: (gpu.memory_total_mib,),
    "gpu.firmware": lambda gpu: (gpu.vbios,),
    "gpu.recovery_action": lambda gpu: (gpu.recovery_action,),
    "gpu.temperature": lambda gpu: (gpu.tlimit_margin_c, gpu.slowdown_c),
    "gpu.throttle": lambda gpu: (gpu.throttle_reasons,),
    "gpu.vgpu_license": lambda gpu: (gpu.vgpu_license,),
    "nvlink.links_active": lambda gpu: (gpu.nvlinks,),
    "nvlink.rate": lambda gpu: (gpu.nvlinks,),
    "tool.nvlink": lambda gpu: (gpu.nvlinks,),
    "pcie.width": lambda gpu: (gpu.pcie.width,),
    "fabric.state": lambda gpu: (gpu.fabric.state,),
    "ecc.mode": lambda gpu: (gpu.ecc.enabled,),
    "ecc.uncorrected": lambda gpu: (
        gpu.ecc.volatile_uncorrected,
        gpu.ecc.aggregate_uncorrected,
        gpu.ecc.sram_threshold_exceeded,
    ),
    "numa.affinity": lambda gpu: (gpu.pci_address,),
}
_TRACED_MAX = 64  # GPUs: more than any machine has; each costs a class of its own
_MIG_HINT = "Turn MIG off to read it, before the GPU is sliced."
_ROOT_HINT = "Run the tool as root."


def carries(check_id: str, inventory: GpuInventory, trace: Callable[[GpuInventory], object] | None) -> bool:
    """Whether the inventory's source prints what the check reads, for at least one GPU.

    ``trace`` runs the check on an inventory; None where it cannot be run without a profile.
    """
    special = _SPECIAL.get(check_id)
    if special is not None:
        return special(inventory)
    reads = _FIELDS.get(check_id)
    if reads is not None:
        return any(value != ABSENT for gpu in inventory.gpus for value in reads(gpu))
    if trace is None:
        return inventory.source in _FULL
    log: list[tuple[str, object]] = []
    trace(_traced(replace(inventory, gpus=inventory.gpus[:_TRACED_MAX]), log))
    passed_over = _FRAME if inventory.source in _LISTS_ALL else _FRAME | _NAMES
    return any(value != ABSENT and name not in passed_over for name, value in log)


def _versions(inventory: GpuInventory) -> bool:
    return inventory.driver_version != ABSENT


_SPECIAL: Mapping[str, Callable[[GpuInventory], bool]] = {
    "gpu.count": lambda inventory: inventory.source in _LISTS_ALL and not inventory.omitted,
    "gpu.lost": lambda inventory: bool(inventory.lost) or any(_answers(gpu) for gpu in inventory.gpus),
    "gpu.readable": lambda inventory: any(_faulty(gpu) for gpu in inventory.gpus),
    "gpu.inforom": lambda inventory: (
        bool(inventory.warned) or any(gpu.repairs.inforom_corrupt != ABSENT for gpu in inventory.gpus)
    ),
    "gpu.uuid": lambda inventory: inventory.source in (*_FULL, "nvidia-smi-csv") and _has_uuids(inventory),
    "driver.loaded": _versions,
    "driver.version": _versions,
    "driver.library_match": _versions,
    "software.gpu_support": lambda inventory: all(gpu.architecture != ABSENT for gpu in inventory.gpus),
    "memory.row_remap": lambda inventory: any(_repair_is_there(gpu) for gpu in inventory.gpus),
}


def _has_uuids(inventory: GpuInventory) -> bool:
    return all(gpu.uuid != ABSENT for gpu in inventory.gpus)


def _answers(gpu: Gpu) -> bool:
    """Whether the text holds a value that only a GPU which answers can give: lists of names go on naming a lost one."""
    live = (gpu.memory_used_mib, gpu.temperature_c, gpu.power_draw_w, gpu.ecc.volatile_uncorrected)
    return any(not isinstance(value, Missing) for value in live)


def _repair_is_there(gpu: Gpu) -> bool:
    """Whether the text has the state of the way in which this board repairs its memory, or says that it cannot tell."""
    rows, pages = gpu.remapped_rows, gpu.retired_pages
    return ABSENT not in (rows.pending, rows.failure) or pages.pending != ABSENT


def _traced(value: T, log: list[tuple[str, object]]) -> T:
    """The same fact, which writes down every field that is read from it, nested facts and GPUs too."""
    kind = type(value)
    names = {item.name for item in fields(value)}  # type: ignore[arg-type]

    def read(self: object, name: str) -> object:
        found = kind.__getattribute__(self, name)
        if name not in names:
            return found
        if is_dataclass(found) and not isinstance(found, (type, Missing)):
            return _traced(found, log)
        if isinstance(found, tuple) and any(isinstance(item, Gpu) for item in found):
            return tuple(_traced(item, log) for item in found)
        log.append((name, found))
        return found

    spy: T = object.__new__(type(kind.__name__, (kind,), {"__getattribute__": read, "__hash__": kind.__hash__}))
    for name in names:
        object.__setattr__(spy, name, getattr(value, name))
    return spy


def judges_faults(check_id: str, fault: DriverFault) -> bool:
    """Whether the check speaks about a driver that says it cannot work."""
    speaks = {
        "gpu-lost": ("driver.loaded", "gpu.lost"),
        "library-mismatch": ("driver.loaded", "driver.library_match"),
        "inforom-corrupt": ("gpu.inforom",),
    }
    return check_id in speaks.get(fault.kind, ("driver.loaded",))


def unread(inventory: GpuInventory) -> Iterator[tuple[str, Verdict, str, str]]:
    """Subject, verdict, message and remedy for fields the driver refused, whoever would need them.

    An error in place of a value is gpu.readable's to judge. With MIG on, row remapping prints N/A: not looked at.
    """
    for gpu in inventory.gpus:
        for name, value in _missing(gpu):
            if value.reason is Reason.COULD_NOT_LOOK:
                yield gpu.label, Verdict.UNKNOWN, f"{name}: {value}", _ROOT_HINT
        pending = gpu.remapped_rows.pending
        if gpu.mig_enabled is True and isinstance(pending, Missing) and pending.reason is Reason.NOT_APPLICABLE:
            message = "row remapping cannot be read while MIG is on: its state is not known"
            yield gpu.label, Verdict.UNKNOWN, message, _MIG_HINT


def _faulty(gpu: Gpu) -> bool:
    return any(value.reason is Reason.FAULT for _, value in _missing(gpu))


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
