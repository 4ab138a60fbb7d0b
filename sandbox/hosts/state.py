"""The state of one simulated host: a healthy machine of its type, which faults then change.

Everything a tool prints is rendered from this state, so that all sources tell the same story.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import Literal

from sandbox.hosts.description import Board, Machine, Software, board, machine

NVML_GPU_IS_LOST = 15
NVML_LIBRARY_MISMATCH = 18
THROTTLE_IDLE = 0x1


@dataclass(frozen=True)
class Identity:
    """Who the host is. ``efa_count`` is the number of EFA interfaces that the stack asked for and got."""

    host_id: str
    name: str
    instance_type: str
    instance_id: str
    boot_id: str
    efa_count: int = 0


@dataclass
class MemoryErrors:
    """ECC error counts of one GPU: since driver load (volatile) and over the board's life (aggregate)."""

    volatile_corrected: int = 0
    volatile_uncorrected: int = 0
    aggregate_corrected: int = 0
    aggregate_uncorrected: int = 0


@dataclass
class Repairs:
    """Remapped rows, or retired pages on boards that have those."""

    corrected: int = 0
    uncorrected: int = 0
    pending: bool = False
    failure: bool = False
    channel_pending: bool = False
    tpc_pending: bool = False


@dataclass
class Gpu:
    """One GPU. ``slot`` is its place in the description; its index is its place among the GPUs that are there."""

    slot: int
    board: Board
    address: str  # 0000:53:00.0
    uuid: str
    serial: str
    name: str
    device_id: str
    bus_name: str
    memory_mib: int
    numa: int | None
    module: int
    links: list[bool]  # one a NVLink: active?
    link_errors: dict[int, int] = field(default_factory=dict)  # CRC errors by link
    lost: bool = False
    errors: MemoryErrors = field(default_factory=MemoryErrors)
    repairs: Repairs = field(default_factory=Repairs)
    inforom_corrupt: bool = False
    throttle: int = THROTTLE_IDLE
    temperature_c: int = 0
    mig: bool = False  # partitioned: as many of the board's smallest MIG instances as it holds
    recovery: Literal["None", "Reset", "Reboot", "Drain and Reset"] = "None"
    burn_in: dict[str, str] = field(default_factory=dict)  # keys of the stub CUDA library, below gpu.N.burnin

    @property
    def bus_id(self) -> str:
        """The address as NVML prints it: ``00000000:53:00.0``, upper case."""
        return f"0000{self.address}".upper()

    @property
    def instances(self) -> list[str]:
        """The UUIDs of its MIG instances."""
        most = self.board.mig.most if self.mig and self.board.mig else 0
        return [f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{self.uuid}/{place}')}" for place in range(most)]


@dataclass
class Access:
    """How the host is reached."""

    listening: bool = True
    stalled: bool = False  # accepts connections and says nothing
    foreign_key: bool = False
    banner: str = ""  # what a login shell prints before anything else


@dataclass
class Host:
    """One simulated host."""

    identity: Identity
    machine: Machine
    gpus: list[Gpu]
    driver: str  # of the loaded kernel module
    library: str  # of the user-space libraries
    cuda_driver: str
    software: Software
    efa: list[str]  # addresses of the EFA functions on the bus
    fabric_manager: str = ""  # its version, where that is another than the driver's
    access: Access = field(default_factory=Access)
    kernel_lines: list[str] = field(default_factory=list)  # beyond the boot's own
    smi_hangs: bool = False
    memory_share: float = 1.0  # of the type's memory that came up
    disk_full: bool = False
    clock_held: bool = True
    dimm_errors: tuple[int, ...] = ()  # uncorrected, one a memory controller; a guest shows no controller
    dead_switch: bool = False
    has_python: bool = True
    has_sudo: bool = True
    cloud_init: Literal["done", "running"] = "done"

    @property
    def mismatch(self) -> bool:
        """The user-space library is not of the loaded kernel module's version: NVML refuses to start."""
        return self.driver != self.library

    def index_of(self, gpu: Gpu) -> int:
        return self.gpus.index(gpu)

    def pair(self, first: Gpu, second: Gpu) -> str:
        """The cell of ``topo -m`` in the row of ``first``: the driver counts the links of that GPU that are up.

        Behind a switch the two directions of a pair differ where only one of the GPUs has lost links.
        """
        cell = self.machine.pair(first.slot, second.slot)
        if not cell.startswith("NV"):
            return cell
        bonded = _bonded(self.machine, first, second)
        return f"NV{bonded}" if bonded else self.pcie_pair(first, second)

    def pcie_pair(self, first: Gpu, second: Gpu) -> str:
        """How two GPUs meet on PCIe, below NVLink."""
        if self.machine.pcie_pairs == "PHB":
            return "PHB"
        return "NODE" if first.numa == second.numa else "SYS"


def peers_of_links(described: Machine, slot: int) -> list[int | None]:
    """The slot at the other end of each NVLink of a GPU; None where that is a switch."""
    if isinstance(described.pairs, str):
        return [None] * (int(described.pairs[2:]) if described.pairs.startswith("NV") else 0)
    ends: list[int | None] = []
    for other, cell in enumerate(described.pairs[slot]):
        ends += [other] * (int(cell[2:]) if cell.startswith("NV") else 0)
    return ends


def _bonded(described: Machine, first: Gpu, second: Gpu) -> int:
    if first.mig or second.mig:
        return 0  # a partitioned GPU has no NVLink: the driver refuses to be asked for it
    ends = peers_of_links(described, first.slot)
    return sum(active for active, end in zip(first.links, ends, strict=True) if end in (None, second.slot))


def _digest(*parts: object) -> str:
    return hashlib.sha256("/".join(str(part) for part in parts).encode()).hexdigest()


def _gpu(identity: Identity, described: Machine, slot: int) -> Gpu:
    model = board(described.board)
    seed = _digest(identity.instance_id, "gpu", slot)
    numa = described.gpus.numa
    return Gpu(
        slot=slot,
        board=model,
        address=f"0000:{described.gpus.addresses[slot]}",
        uuid=f"GPU-{uuid.UUID(seed[:32])}",
        serial=f"165{int(seed[32:48], 16) % 10**10:010d}",
        name=model.name,
        device_id=model.device_id,
        bus_name=model.bus_name,
        memory_mib=model.memory.total_mib,
        numa=numa[slot] if numa else None,
        module=described.gpus.modules[slot] if described.gpus.modules else slot + 1,
        links=[True] * (model.nvlink.count if model.nvlink else 0),
        temperature_c=model.temperature.gpu_c + int(seed[48:50], 16) % 4,
        burn_in={name: str(value) for name, value in model.burn_in.model_dump().items()},
    )


def healthy(identity: Identity) -> Host:
    """A healthy, idle host of the identity's type. The same identity always gives the same serials and UUIDs.

    Raises:
        ConfigError: the sandbox has no such type.
    """
    described = machine(identity.instance_type)
    offered = described.efa.addresses if described.efa else ()
    return Host(
        identity=identity,
        machine=described,
        gpus=[_gpu(identity, described, slot) for slot in range(len(described.gpus.addresses))],
        driver=described.software.driver,
        library=described.software.driver,
        cuda_driver=described.software.cuda_driver,
        software=described.software,
        efa=[f"0000:{address}" for address in offered[: identity.efa_count]],
    )
