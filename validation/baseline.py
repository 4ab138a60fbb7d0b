"""Drafts a profile from the facts of one host that is believed good. Pure; a person reviews what comes out.

Every value names the host as its source. What could not be read is left out and named in a comment, so that the check
that needs it is UNKNOWN until somebody finds the value. Limits that one host cannot tell (burn-in) are left out too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from profiles.errors import ConfigError, LookError
from validation.facts.gpu import Gpu, GpuInventory, known
from validation.facts.host import (
    BlockDevices,
    DriverModule,
    EfaNics,
    HostInfo,
    NumaMap,
    P2pMatrix,
    Topology,
    Unit,
)
from validation.facts.missing import Missing
from validation.facts.store import FactGapError, Facts

T = TypeVar("T")
SOURCE = "recorded"
TYPE_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,62}$")
_MEMORY_SHARE = 0.02  # the total differs a little from driver to driver
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}
_ZERO = re.compile(r"^[0-]*$")


@dataclass(frozen=True)
class Origin:
    """Where a draft comes from: the host, the day (ISO date), and the shipped board that its GPUs are, if any."""

    host: str
    date: str
    board: str = ""


def board_names(facts: Facts) -> tuple[str, ...]:
    """The product names on the host, each once. Raises LookError where they cannot be read."""
    inventory = _need(facts, GpuInventory)
    names = sorted({str(known(gpu.name) or "") for gpu in inventory.gpus})
    if not inventory.gpus or "" in names or inventory.lost:
        raise LookError("the GPUs of the host could not all be read, so it is no baseline")
    return tuple(names)


def draft(facts: Facts, instance_type: str, origin: Origin) -> str:
    """The profile as YAML, ``reviewed: false``.

    Raises LookError where what a profile must have could not be read, ConfigError for a machine that no profile can
    describe (several kinds of GPU).
    """
    names = board_names(facts)
    if len(names) > 1:
        raise ConfigError(f"the host has several kinds of GPU ({', '.join(names)}); a profile describes one kind")
    info = _need(facts, HostInfo)
    text = f"recorded from {origin.host} on {origin.date}, to be reviewed"
    lines = [
        f"# A draft from one host, {origin.host}, on {origin.date}. Look at every value, correct it or give its true",
        "# source, then set `reviewed: true`: until then the gate stays shut for this type.",
        "schema: kiln/profile/v1",
        "provider: local",
        f"instance_type: {instance_type}",
        "reviewed: false",
        f"architecture: {_ARCHITECTURES.get(info.architecture, info.architecture)}",
        "sources:",
        f"  {SOURCE}: {{text: {json.dumps(text)}, date: {origin.date}}}",
    ]
    left: list[str] = []
    for part in (_size, _gpu, _links, _numa, _network, _storage, _needs):
        lines += part(facts, origin, left)
    lines += [
        "# burn_in: a floor and a ceiling for each number are left out, since one host's speed is no limit. Without",
        "# them `--burn-in` is UNKNOWN: take them from the board's data sheet and from several good hosts.",
    ]
    lines += [f"# left out: {reason}" for reason in left]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    return f"{{value: {json.dumps(value)}, source: {SOURCE}}}"


def _need(facts: Facts, kind: type[T]) -> T:
    try:
        return facts.need(kind)
    except FactGapError as error:
        raise LookError(f"no baseline without it: {error}") from error


def _same(gpus: Sequence[Gpu], read: Callable[[Gpu], T | Missing]) -> T | None:
    """The value that all GPUs have; None where they differ or one has none."""
    values = [read(gpu) for gpu in gpus]
    first = values[0]
    return None if isinstance(first, Missing) or any(value != first for value in values) else first


def _field(key: str, value: object | None, left: list[str], where: str) -> Iterator[str]:
    if value is None:
        left.append(f"{where}.{key}: the host does not tell it, or not the same of every GPU")
    else:
        yield f"  {key}: {_value(value)}"


def _size(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:  # noqa: ARG001 - the parts have one shape
    if NumaMap in facts:
        count = sum(len(cpus) for cpus in facts.need(NumaMap).cpus.values())
        if count:
            yield f"vcpus: {_value(count)}"


def _gpu(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:
    gpus = facts.need(GpuInventory).gpus
    yield "gpu:"
    if origin.board:
        yield f"  board: {origin.board}  # its names, memory, power and clocks: profiles/boards/{origin.board}.yaml"
        yield f"  count: {_value(len(gpus))}"
        return
    name = str(gpus[0].name)
    yield f"  board: {re.sub(r'[^A-Za-z0-9]+', '-', name.removeprefix('NVIDIA ')).strip('-')}"
    yield f"  names: {_value([name])}"
    yield f"  count: {_value(len(gpus))}"
    totals = [total for gpu in gpus if (total := known(gpu.memory_total_mib)) is not None]
    if len(totals) != len(gpus):
        raise LookError("no baseline without it: the memory total of every GPU")
    floor, ceiling = int(min(totals) * (1 - _MEMORY_SHARE)), int(max(totals) * (1 + _MEMORY_SHARE))
    yield f"  memory_mib: {{floor: {floor}, ceiling: {ceiling}, source: {SOURCE}}}  # what it prints, and 2 % each way"
    yield from _field("ecc", _same(gpus, lambda gpu: gpu.ecc.enabled), left, "gpu")
    yield f"  memory_repair: {_value(_repair(gpus))}"
    yield from _field("power_limit_w", _same(gpus, lambda gpu: gpu.power_limit_default_w), left, "gpu")
    yield from _field("sm_clock_max_mhz", _same(gpus, lambda gpu: gpu.sm_clock_max_mhz), left, "gpu")


def _repair(gpus: Sequence[Gpu]) -> str:
    if _same(gpus, lambda gpu: gpu.remapped_rows.pending) is not None:
        return "remapped-rows"
    return "retired-pages" if _same(gpus, lambda gpu: gpu.retired_pages.pending) is not None else "none"


def _links(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:  # noqa: ARG001
    gpus = facts.need(GpuInventory).gpus
    nvlinks = _same(gpus, _active)
    yield "links:"
    yield from _field("nvlinks", nvlinks, left, "links")
    if nvlinks:
        yield from _field("nvlink_rate_gbps", _rate(gpus), left, "links")
    if len(gpus) > 1:
        yield from _field("pairs", _pairs(facts), left, "links")
        yield from _field("p2p", _p2p(facts), left, "links")
    yield from _field("pcie_width", _same(gpus, lambda gpu: gpu.pcie.width), left, "links")
    yield from _field("pcie_generation", _same(gpus, lambda gpu: gpu.pcie.generation_max), left, "links")
    yield f"  fabric: {_value(_fabric(gpus[0]))}"


def _active(gpu: Gpu) -> int | Missing:
    if isinstance(gpu.nvlinks, Missing):
        return 0 if _fabric(gpu) == "none" else gpu.nvlinks
    return sum(1 for link in gpu.nvlinks if link.active is True)


def _rate(gpus: Sequence[Gpu]) -> float | None:
    rates = {
        link.rate_gbps
        for gpu in gpus
        if not isinstance(gpu.nvlinks, Missing)
        for link in gpu.nvlinks
        if link.active is True and not isinstance(link.rate_gbps, Missing)
    }
    return rates.pop() if len(rates) == 1 else None


def _pairs(facts: Facts) -> object | None:
    if Topology not in facts:
        return None
    topology = facts.need(Topology)
    cells = set(topology.links.values())
    if len(cells) == 1:
        return cells.pop()
    return [[topology.links[a, b] if a != b else "X" for b in topology.gpus] for a in topology.gpus] if cells else None


def _p2p(facts: Facts) -> str | None:
    if P2pMatrix not in facts:
        return None
    words = {word for (a, b), word in facts.need(P2pMatrix).status.items() if a != b}
    return words.pop() if len(words) == 1 else None


def _fabric(gpu: Gpu) -> str:
    if isinstance(gpu.fabric.state, Missing):
        return "none"
    cluster = known(gpu.fabric.cluster_uuid) or ""
    return "hgx" if _ZERO.match(cluster) and not known(gpu.fabric.clique_id) else "nvl72"


def _numa(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:  # noqa: ARG001
    if NumaMap not in facts:
        left.append(f"numa: {facts.gap(NumaMap).reason}")
        yield "numa: {}"
        return
    found = facts.need(NumaMap)
    yield "numa:"
    yield f"  nodes: {_value(len(found.cpu_nodes))}"
    far = {
        value for (a, b), value in found.distances.items() if a != b and a in found.cpu_nodes and b in found.cpu_nodes
    }
    if len(far) == 1:
        yield f"  distance: {_value(far.pop())}"
    nodes = [found.gpu_node.get(str(gpu.pci_address)) for gpu in facts.need(GpuInventory).gpus]
    told = [node for node in nodes if isinstance(node, int)]
    yield f"  gpu_nodes: {_value(told if len(told) == len(nodes) else 'not exposed')}"


def _network(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:  # noqa: ARG001
    count = len(facts.need(EfaNics).nics) if EfaNics in facts else 0
    yield "network:"
    yield f"  efa_max: {_value(count)}  # as many as were attached; the type may carry more"
    yield f"  efa_cards: {_value(list(range(count)))}"


def _storage(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:  # noqa: ARG001
    if BlockDevices not in facts:
        left.append(f"storage: {facts.gap(BlockDevices).reason}")
        yield "storage: {}"
        return
    disks = facts.need(BlockDevices).instance_store
    sizes = {size for disk in disks if isinstance(size := disk.size_bytes, int)}
    yield "storage:"
    yield f"  instance_store_count: {_value(len(disks))}"
    if len(sizes) == 1:
        yield f"  instance_store_gb: {_value(round(sizes.pop() / 10**9))}"


def _needs(facts: Facts, origin: Origin, left: list[str]) -> Iterator[str]:  # noqa: ARG001
    unit = facts.need(Unit) if Unit in facts else None
    module = "open" if _need(facts, DriverModule).open else "proprietary"
    yield "needs:"
    yield f"  fabric_manager: {_value(unit is not None and unit.active == 'active')}"
    yield f"  kernel_modules: {_value([module])}"


def board_of(names: Sequence[str], boards: Mapping[str, Any]) -> str:
    """The shipped board that has exactly this one product name; empty where none or several have.

    >>> board_of(["NVIDIA L4"], {"L4": ["NVIDIA L4"], "L40S": ["NVIDIA L40S"]})
    'L4'
    """
    found = [board for board, its_names in boards.items() if len(names) == 1 and names[0] in its_names]
    return found[0] if len(found) == 1 else ""
