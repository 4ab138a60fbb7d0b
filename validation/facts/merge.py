"""Two sources on the same GPUs or buses: which one is believed, and when they contradict each other.

- A field that the first source gives no value for is taken from the second, if that has one; else the first stands.
- Where both give one, the graver stands for what a GPU counts and says against itself; an error in place of a value
  is graver than any value. Neither source hides what the other says is wrong.
- What a board is and how it is set does not change between two readings: where the sources differ on it, neither is
  believed.
- A GPU that only one source sees is lost: the machine is judged by the source that sees fewer.
- NVLinks: the source that counts fewer active links stands, since a link that drops between two reads is down.
- Two matrices that differ are no fact at all.
"""

from __future__ import annotations

import functools
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from profiles.errors import ParseError
from validation.facts.gpu import Gpu, GpuInventory, NvLink
from validation.facts.host import P2pMatrix, PciBus, PciDevice
from validation.facts.missing import ABSENT, Missing, Reason

T = TypeVar("T")
# Counts of errors and use, and yes/no fields where yes is bad: the larger of two stands.
_GRAVER = frozenset(
    {
        "channel_pending",
        "tpc_pending",
        "unrepairable_memory",
        "inforom_corrupt",
        "processes",
        "memory_used_mib",
        "temperature_c",
        "replays",
        "volatile_corrected",
        "volatile_uncorrected",
        "aggregate_corrected",
        "aggregate_uncorrected",
        "sram_threshold_exceeded",
        "correctable",
        "uncorrectable",
        "single_bit",
        "double_bit",
        "pending",
        "failure",
    }
)
# What must not fall, and yes/no fields where no is bad: the smaller of two stands.
_LESSER = frozenset({"enabled", "enabled_next", "persistence", "tlimit_margin_c", "power_limit_w", "width"})
# Words that mean "nothing is wrong"; any other word of the two stands.
_GOOD_WORDS = {"recovery_action": "none", "state": "completed", "status": "success", "health_summary": "healthy"}
_CONSTANT = frozenset({"name", "vbios", "mig_enabled", "mig_pending", "driver_version"})


def fill(first: T, second: T) -> T:
    """``first`` completed by ``second`` field by field, in nested facts too."""
    changes = {}
    for name in _names(type(first)):  # type: ignore[arg-type]
        mine, theirs = getattr(first, name), getattr(second, name)
        if isinstance(mine, Missing) or isinstance(theirs, Missing):
            changes[name] = _one_of(mine, theirs)
        elif type(mine) is type(theirs) and is_dataclass(mine):
            changes[name] = fill(mine, theirs)
        else:
            changes[name] = _of_both(name, mine, theirs)
    return type(first)(**changes)


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


def _one_of(mine: Any, theirs: Any) -> Any:
    """What stands where at least one of two has no value."""
    for value in (mine, theirs):
        if isinstance(value, Missing) and value.reason is Reason.FAULT:
            return value
    if mine == ABSENT or (isinstance(mine, Missing) and not isinstance(theirs, Missing)):
        return theirs
    return mine


def _of_both(name: str, mine: Any, theirs: Any) -> Any:
    """What stands where both have a value."""
    if name in _GRAVER:
        return max(mine, theirs)
    if name in _LESSER:
        return min(mine, theirs)
    if name in _CONSTANT and theirs not in ("", mine):  # /sys has no names of devices
        return Missing(Reason.COULD_NOT_LOOK, f"NVML says {mine}, nvidia-smi says {theirs}")
    if name == "throttle_reasons":
        return mine | theirs
    good = _GOOD_WORDS.get(name)
    return theirs if good is not None and str(mine).lower() == good else mine


def _same(one: Gpu, other: Gpu) -> bool:
    """By UUID and PCI address, as far as both have them; index is no identity: a lost GPU shifts it."""
    pairs = ((one.uuid, other.uuid), (one.pci_address, other.pci_address))
    told = [
        mine == theirs for mine, theirs in pairs if not isinstance(mine, Missing) and not isinstance(theirs, Missing)
    ]
    return bool(told) and all(told)


def inventories(first: GpuInventory, second: GpuInventory) -> GpuInventory:
    """One inventory of two sources that each list every GPU they see."""
    fewer, more = (second, first) if len(second.gpus) < len(first.gpus) else (first, second)
    unseen = [gpu for gpu in more.gpus if not any(_same(gpu, other) for other in fewer.gpus)]
    gpus = []
    for gpu in fewer.gpus:
        match = next((other for other in more.gpus if _same(gpu, other)), None)
        if match is None:
            raise ParseError("gpu inventory", 0, f"{fewer.source} lists {gpu.uuid}, which {more.source} does not")
        mine, theirs = (gpu, match) if fewer is first else (match, gpu)
        gpus.append(replace(fill(mine, theirs), index=gpu.index))
    named = [gpu.label if isinstance(gpu.pci_address, Missing) else gpu.pci_address for gpu in unseen]
    lost = first.lost or second.lost
    return replace(
        fill(first, second),
        gpus=tuple(gpus),
        lost=lost if len(lost) >= len(named) else tuple(dict.fromkeys((*lost, *named))),
        warned=(*first.warned, *second.warned),
    )


def links(inventory: GpuInventory, printed: GpuInventory) -> GpuInventory:
    """The inventory with the NVLinks of ``nvlink -s`` where it has none of its own, or where that counts fewer up."""
    gpus = []
    for gpu in inventory.gpus:
        other = next((one for one in printed.gpus if _same(gpu, one)), None)
        gpus.append(gpu if other is None else replace(gpu, nvlinks=_fewer(gpu, other)))
    return replace(inventory, gpus=tuple(gpus))


def _fewer(gpu: Gpu, other: Gpu) -> tuple[NvLink, ...] | Missing:
    mine, theirs = gpu.nvlinks, other.nvlinks
    if mine == ABSENT:
        return theirs
    if isinstance(mine, Missing) or isinstance(theirs, Missing):
        return mine
    return theirs if _up(other) < _up(gpu) else mine


def _up(gpu: Gpu) -> int:
    return 0 if isinstance(gpu.nvlinks, Missing) else sum(link.active is True for link in gpu.nvlinks)


def matrices(first: P2pMatrix, second: P2pMatrix) -> P2pMatrix:
    """The one matrix both sources print. Raises ParseError naming the first pair on which they differ."""
    if first.gpus != second.gpus:
        raise ParseError("p2p", 0, f"NVML lists GPUs {first.gpus}, nvidia-smi topo -p2p lists {second.gpus}")
    for (one, two), status in first.status.items():
        if second.status[one, two] != status:
            other = second.status[one, two]
            raise ParseError("p2p", 0, f"GPU{one} to GPU{two}: NVML says {status}, nvidia-smi topo -p2p says {other}")
    return first


def buses(listed: PciBus, files: PciBus) -> PciBus:
    """lspci's functions with the links that /sys has for them; dead where either source says so.

    Raises ParseError where lspci leaves out a function that /sys has: the listing is not whole.
    """
    left_out = {device.address for device in files.devices} - {device.address for device in listed.devices}
    if left_out:
        raise ParseError("pci bus", 0, f"lspci does not list {', '.join(sorted(left_out)[:4])}, which /sys has")
    known: dict[str, PciDevice] = {device.address: device for device in files.devices}
    devices = []
    for device in listed.devices:
        other = known.get(device.address)
        devices.append(device if other is None else replace(fill(device, other), dead=device.dead or other.dead))
    return PciBus(tuple(devices))
