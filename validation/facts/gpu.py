"""The GPU facts every source is read into: NVML, ``nvidia-smi -q -x``, ``-q``, ``--query-gpu``, ``-L``.

A field that a source does not carry is ``ABSENT``; a field the driver answered with a sentinel is a
:class:`~validation.facts.missing.Missing` with the reason. PCI addresses are normalised to ``dddd:bb:dd.f`` in lower
case, with a domain of four digits or more (``0000:53:00.0``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from validation.facts.missing import ABSENT, Missing

T = TypeVar("T")


@dataclass(frozen=True)
class NvLink:
    """One NVLink of a GPU. ``rate_gbps`` is GB/s per direction as the driver prints it (26.562 on Hopper)."""

    index: int
    active: bool | Missing
    rate_gbps: float | Missing = ABSENT


@dataclass(frozen=True)
class Ecc:
    """ECC mode and error counts since driver load (volatile) and over the board's life (aggregate)."""

    enabled: bool | Missing = ABSENT
    volatile_corrected: int | Missing = ABSENT
    volatile_uncorrected: int | Missing = ABSENT
    aggregate_corrected: int | Missing = ABSENT
    aggregate_uncorrected: int | Missing = ABSENT
    sram_threshold_exceeded: bool | Missing = ABSENT
    enabled_next: bool | Missing = ABSENT  # the mode after the next reset


@dataclass(frozen=True)
class RemappedRows:
    """Row remapping (Ampere and newer): counts, and whether a remap is pending or has failed."""

    correctable: int | Missing = ABSENT
    uncorrectable: int | Missing = ABSENT
    pending: bool | Missing = ABSENT
    failure: bool | Missing = ABSENT


@dataclass(frozen=True)
class RetiredPages:
    """Page retirement (Volta and Turing): counts by cause, and whether a retirement is pending."""

    single_bit: int | Missing = ABSENT
    double_bit: int | Missing = ABSENT
    pending: bool | Missing = ABSENT


@dataclass(frozen=True)
class Repairs:
    """What the driver says is broken on the board, or waits for a reset to be repaired. True is bad in every field.

    Memory channels and TPCs from driver 570 on; ``inforom_corrupt``: the board's own record of itself fails its check.
    """

    channel_pending: bool | Missing = ABSENT
    tpc_pending: bool | Missing = ABSENT
    unrepairable_memory: bool | Missing = ABSENT
    inforom_corrupt: bool | Missing = ABSENT


@dataclass(frozen=True)
class Fabric:
    """The NVLink fabric block. ``health`` holds the driver's own words by key (``route_unhealthy``: ``False``)."""

    state: str | Missing = ABSENT
    status: str | Missing = ABSENT
    clique_id: int | Missing = ABSENT
    cluster_uuid: str | Missing = ABSENT
    health_summary: str | Missing = ABSENT
    health: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PcieLink:
    """The GPU's PCIe link as it is now and as the board allows. Generation 1 while idle is power saving."""

    generation: int | Missing = ABSENT
    generation_max: int | Missing = ABSENT
    width: int | Missing = ABSENT
    width_max: int | Missing = ABSENT
    replays: int | Missing = ABSENT


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``index`` is the driver's; memory in MiB, power in W, temperature in degrees C, clocks in MHz."""

    index: int
    name: str | Missing = ABSENT
    uuid: str | Missing = ABSENT
    serial: str | Missing = ABSENT
    pci_address: str | Missing = ABSENT
    brand: str | Missing = ABSENT  # the product line as the driver names it: GeForce, Quadro, Tesla, NVIDIA
    architecture: str | Missing = ABSENT
    memory_total_mib: float | Missing = ABSENT
    memory_used_mib: float | Missing = ABSENT
    vbios: str | Missing = ABSENT
    gsp_firmware: str | Missing = ABSENT
    persistence: bool | Missing = ABSENT
    mig_enabled: bool | Missing = ABSENT
    mig_pending: bool | Missing = ABSENT
    compute_mode: str | Missing = ABSENT
    virtualization: str | Missing = ABSENT
    vgpu_license: str | Missing = ABSENT
    ecc: Ecc = field(default_factory=Ecc)
    remapped_rows: RemappedRows = field(default_factory=RemappedRows)
    retired_pages: RetiredPages = field(default_factory=RetiredPages)
    repairs: Repairs = field(default_factory=Repairs)
    fabric: Fabric = field(default_factory=Fabric)
    pcie: PcieLink = field(default_factory=PcieLink)
    nvlinks: tuple[NvLink, ...] | Missing = ABSENT
    temperature_c: float | Missing = ABSENT
    tlimit_margin_c: float | Missing = ABSENT  # degrees left to the slowdown, where the driver prints T.Limit
    slowdown_c: float | Missing = ABSENT
    power_draw_w: float | Missing = ABSENT
    power_limit_w: float | Missing = ABSENT
    power_limit_default_w: float | Missing = ABSENT
    sm_clock_mhz: float | Missing = ABSENT
    sm_clock_max_mhz: float | Missing = ABSENT
    memory_clock_mhz: float | Missing = ABSENT
    throttle_reasons: frozenset[str] | Missing = ABSENT  # NVML's names: gpu_idle, sw_power_cap, hw_slowdown, ...
    recovery_action: str | Missing = ABSENT  # the driver's own verdict: None, Reset, Reboot, Drain P2P, ...
    processes: int | Missing = ABSENT

    @property
    def label(self) -> str:
        return f"GPU{self.index}"


@dataclass(frozen=True)
class GpuInventory:
    """The GPUs one source sees. ``lost`` holds the addresses or indices of GPUs that the driver lists but lost.

    ``silent`` are the tools that were asked for the same GPUs and gave no answer that could be read, each with why.
    ``warned`` are the GPUs of whose infoROM nvidia-smi warned, by address where it names one.
    """

    source: str  # evidence item name
    gpus: tuple[Gpu, ...]
    driver_version: str | Missing = ABSENT
    cuda_driver_version: str | Missing = ABSENT  # the newest CUDA the driver can run: not the installed toolkit
    attached: int | Missing = ABSENT  # the driver's own count
    lost: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()  # what the text itself says it left out: an abridged paste, GPUs not shown


@dataclass(frozen=True)
class DriverFault:
    """The driver or its library said that it cannot work at all, in words that name the fault.

    ``kind``: ``library-mismatch``, ``not-loaded``, ``no-access`` (the library may not talk to the driver, as in a
    container that lost its devices), ``no-library``, ``no-devices``, ``gpu-lost``, ``fabric-not-ready`` (CUDA 802),
    ``no-matrix`` (``nvidia-smi topo`` gave up without a cause), ``inforom-corrupt`` (a warning beside the output).
    """

    source: str
    kind: str
    text: str
    gpu: str = ""


def known(value: T | Missing) -> T | None:
    """The value, or None where it is missing. Only for display: a check must decide by the reason."""
    return None if isinstance(value, Missing) else value
