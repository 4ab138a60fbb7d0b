"""``nvidia-smi --query-gpu``: the fields in common use, one column each, with the header the tool prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.hosts.state import Gpu, Host

NOT_AVAILABLE = "[N/A]"


@dataclass(frozen=True)
class Row:
    """What one row is made of: the host, the GPU's index, the GPU."""

    host: Host
    index: int
    gpu: Gpu


Column = str | Callable[[Row], object]  # a text that every row has, or how to find the cell


def _remapped(pick: Callable[[Gpu], object]) -> Column:
    return lambda row: (
        pick(row.gpu) if row.gpu.board.repair.kind == "remapped-rows" and not row.gpu.mig else NOT_AVAILABLE
    )


def _mig(row: Row) -> object:
    return ("Enabled" if row.gpu.mig else "Disabled") if row.gpu.board.mig else NOT_AVAILABLE


def _utilization(row: Row) -> object:
    return NOT_AVAILABLE if row.gpu.mig else "0"


def _retired(pick: Callable[[Gpu], object]) -> Column:
    return lambda row: pick(row.gpu) if row.gpu.board.repair.kind == "retired-pages" else NOT_AVAILABLE


def _throttle(bit: int) -> Column:
    return lambda row: "Active" if row.gpu.throttle & bit else "Not Active"


# name -> (unit as the header prints it, cell)
FIELDS: dict[str, tuple[str, Column]] = {
    "timestamp": ("", "2026/08/21 08:54:01.000"),
    "driver_version": ("", lambda row: row.host.driver),
    "count": ("", lambda row: len(row.host.gpus)),
    "index": ("", lambda row: row.index),
    "name": ("", lambda row: row.gpu.name),
    "gpu_name": ("", lambda row: row.gpu.name),
    "uuid": ("", lambda row: row.gpu.uuid),
    "gpu_uuid": ("", lambda row: row.gpu.uuid),
    "serial": ("", lambda row: row.gpu.serial),
    "pci.bus_id": ("", lambda row: row.gpu.bus_id),
    "gpu_bus_id": ("", lambda row: row.gpu.bus_id),
    "pci.device_id": ("", lambda row: f"0x{row.gpu.device_id.upper()}10DE"),
    "vbios_version": ("", lambda row: row.gpu.board.vbios),
    "compute_cap": ("", lambda row: row.gpu.board.compute_capability),
    "compute_mode": ("", "Default"),
    "persistence_mode": ("", "Enabled"),
    "pstate": ("", lambda row: f"P{row.gpu.board.pstate}"),
    "mig.mode.current": ("", _mig),
    "mig.mode.pending": ("", _mig),
    "memory.total": ("MiB", lambda row: row.gpu.memory_mib),
    "memory.reserved": ("MiB", lambda row: row.gpu.board.memory.reserved_mib),
    "memory.used": ("MiB", "0"),
    "memory.free": ("MiB", lambda row: row.gpu.memory_mib - row.gpu.board.memory.reserved_mib),
    "utilization.gpu": ("%", _utilization),
    "utilization.memory": ("%", _utilization),
    "temperature.gpu": ("", lambda row: row.gpu.temperature_c),
    "temperature.memory": ("", lambda row: row.gpu.board.temperature.memory_c or "N/A"),
    "power.draw": ("W", lambda row: f"{row.gpu.board.power.idle_w:.2f}"),
    "power.limit": ("W", lambda row: f"{row.gpu.board.power.limit_w:.2f}"),
    "clocks.sm": ("MHz", lambda row: row.gpu.board.clocks.now.graphics),
    "clocks.mem": ("MHz", lambda row: row.gpu.board.clocks.now.memory),
    "clocks.max.sm": ("MHz", lambda row: row.gpu.board.clocks.max.graphics),
    "clocks.max.mem": ("MHz", lambda row: row.gpu.board.clocks.max.memory),
    "pcie.link.gen.current": ("", lambda row: row.gpu.board.pcie.idle_generation),
    "pcie.link.gen.max": ("", lambda row: row.gpu.board.pcie.generation),
    "pcie.link.width.current": ("", lambda row: row.host.machine.pcie_width),
    "pcie.link.width.max": ("", lambda row: row.gpu.board.pcie.width),
    "ecc.mode.current": ("", "Enabled"),
    "ecc.errors.corrected.volatile.total": ("", lambda row: row.gpu.errors.volatile_corrected),
    "ecc.errors.uncorrected.volatile.total": ("", lambda row: row.gpu.errors.volatile_uncorrected),
    "ecc.errors.corrected.aggregate.total": ("", lambda row: row.gpu.errors.aggregate_corrected),
    "ecc.errors.uncorrected.aggregate.total": ("", lambda row: row.gpu.errors.aggregate_uncorrected),
    "remapped_rows.correctable": ("", _remapped(lambda g: g.repairs.corrected)),
    "remapped_rows.uncorrectable": ("", _remapped(lambda g: g.repairs.uncorrected)),
    "remapped_rows.pending": ("", _remapped(lambda g: "Yes" if g.repairs.pending else "No")),
    "remapped_rows.failure": ("", _remapped(lambda g: "Yes" if g.repairs.failure else "No")),
    "retired_pages.single_bit_ecc.count": ("", _retired(lambda g: g.repairs.corrected)),
    "retired_pages.double_bit.count": ("", _retired(lambda g: g.repairs.uncorrected)),
    "retired_pages.pending": ("", _retired(lambda g: "Yes" if g.repairs.pending else "No")),
    "clocks_event_reasons.active": ("", lambda row: f"0x{row.gpu.throttle:016X}"),
    "clocks_event_reasons.hw_slowdown": ("", _throttle(0x8)),
    "clocks_event_reasons.hw_thermal_slowdown": ("", _throttle(0x40)),
    "clocks_event_reasons.sw_thermal_slowdown": ("", _throttle(0x20)),
    "gpu_recovery_action": ("", lambda row: row.gpu.recovery),
    "fabric.state": ("", lambda row: "Completed" if row.host.machine.fabric else "N/A"),
    "fabric.status": ("", lambda row: "Success" if row.host.machine.fabric else "N/A"),
}


def fields(host: Host) -> dict[str, tuple[str, list[str]]]:
    """Header and cells of every field, with units; the stub tool takes them off where ``nounits`` is asked for."""
    columns: dict[str, tuple[str, list[str]]] = {}
    for name, (unit, cell) in FIELDS.items():
        cells = []
        for index, gpu in enumerate(host.gpus):
            text = cell if isinstance(cell, str) else str(cell(Row(host, index, gpu)))
            cells.append(f"{text} {unit}" if unit and not text.startswith("[") else text)
        columns[name] = (f"{name} [{unit}]" if unit else name, cells)
    return columns
