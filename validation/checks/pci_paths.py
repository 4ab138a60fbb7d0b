"""Which bridges lie between two devices of one PCIe switch, as drivers/pci/p2pdma.c of Linux 4.20 walks them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from validation.facts.host import PciBus, PciDevice

Buses = tuple[int, int]  # the first and the last bus behind a bridge
_NETWORK = "02"


def peers(bus: PciBus) -> list[tuple[PciDevice, PciDevice]]:
    """Every pair of a GPU with another GPU or with a network card: who may speak to each other without the CPU."""
    gpus = bus.nvidia_gpus
    cards = [device for device in bus.devices if str(device.class_id).startswith(_NETWORK)]
    return [*combinations(gpus, 2), *((gpu, card) for gpu in gpus for card in cards)]


def between(bridges: Mapping[str, Buses], one: str, two: str) -> list[str]:
    """The bridges on the way from one address to the other below the bridge that both have above them.

    None where they have none in common: between root ports the way leads through the CPU in any case.
    """
    mine, theirs = list(_above(bridges, one)), list(_above(bridges, two))
    if not set(mine) & set(theirs):
        return []
    return sorted(set(mine) ^ set(theirs))


def _above(bridges: Mapping[str, Buses], address: str) -> Iterable[str]:
    domain, bus = _place(address)
    return (bridge for bridge, (first, last) in bridges.items() if _place(bridge)[0] == domain and first <= bus <= last)


def _place(address: str) -> tuple[str, int]:
    domain, bus, _ = address.split(":")
    return domain, int(bus, 16)
