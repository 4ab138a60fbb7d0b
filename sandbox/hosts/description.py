"""Machine descriptions: what one instance type shows when nothing is wrong, read from ``sandbox/machines``.

A machine file names its board; board files hold what belongs to the GPU model. Every file names the capture or the
publication that its numbers come from, and says what is modelled.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from profiles.errors import ConfigError, Problem, ProfileError
from profiles.models import Model
from profiles.yamlfile import LOADER

FOLDER = Path(__file__).resolve().parent.parent / "machines"
PciSlot = Annotated[str, Field(pattern=r"^[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
HexId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}$")]
Cell = Annotated[str, Field(pattern=r"^(X|NV\d+|PIX|PXB|PHB|NODE|SYS)$")]


class Inforom(Model):
    image: str
    oem: str
    ecc: str


class Memory(Model):
    total_mib: int
    reserved_mib: int
    bar1_mib: int


class Repair(Model):
    """How the board retires bad memory: remapped rows (Ampere and newer) or retired pages (Volta, Turing)."""

    kind: Literal["remapped-rows", "retired-pages"]
    banks: int = 0


class TLimit(Model):
    """Degrees C left to a limit, as boards from Ada and Hopper on print it."""

    now: int
    shutdown: int
    slowdown: int
    gpu_max: int
    memory_max: int | None = None


class Thresholds(Model):
    """Degrees C, as boards up to Ampere print them."""

    shutdown: int
    slowdown: int
    gpu_max: int
    memory_max: int | None = None


class Temperature(Model):
    gpu_c: int
    memory_c: int | None = None
    tlimit: TLimit | None = None
    thresholds: Thresholds | None = None

    @model_validator(mode="after")
    def _one_style(self) -> Temperature:
        if (self.tlimit is None) == (self.thresholds is None):
            raise ValueError("give tlimit or thresholds, not both and not neither")
        return self


class Power(Model):
    """Watts. ``average``: the board also prints an averaged draw."""

    idle_w: float
    average: bool
    limit_w: int
    min_w: int
    max_w: int


class Clocks(Model):
    """MHz."""

    graphics: int
    memory: int
    video: int


class ClockRange(Model):
    now: Clocks
    max: Clocks


class Pcie(Model):
    generation: int
    idle_generation: int
    width: int


class NvLinks(Model):
    """Links of one GPU; ``rate`` is the text the driver prints, GB/s per direction."""

    count: int
    rate: str
    version: int


class Speeds(Model):
    """What a burn-in measures on a good board in these machines; the stub CUDA library takes that long. Modelled."""

    h2d_gbps: float
    d2h_gbps: float
    fp16_tflops: float


class MigProfile(Model):
    """The smallest MIG instance of a board, and how many of them it holds. Memory in MiB."""

    name: str  # 1g.10gb
    most: int
    sms: int
    memory_mib: int
    bar1_mib: int


class Lookalike(Model):
    """Another board that fits the same socket: what the fault ``wrong-gpu`` puts in."""

    name: str
    device_id: HexId
    bus_name: str
    memory_mib: int


class Board(Model):
    """One GPU model."""

    schema_: Literal["kiln/board/v1"] = Field(alias="schema")
    source: str
    name: str
    brand: str
    architecture: Literal["Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper"]
    compute_capability: str
    device_id: HexId
    subsystem_id: HexId
    bus_name: str
    board_part: str
    gpu_part: str
    vbios: str
    inforom: Inforom
    memory: Memory
    repair: Repair
    sram_counters: Literal["split", "single"]  # parity and SEC-DED apart, or one sum
    mig: MigProfile | None = None
    temperature: Temperature
    power: Power
    clocks: ClockRange
    pstate: int
    pcie: Pcie
    nvlink: NvLinks | None = None
    burn_in: Speeds
    lookalike: Lookalike


class Gpus(Model):
    """``numa`` is empty where the platform does not expose the node; ``modules`` numbers the sockets of the board."""

    addresses: tuple[PciSlot, ...]
    numa: tuple[int, ...] = ()
    modules: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _same_length(self) -> Gpus:
        for name in ("numa", "modules"):
            if getattr(self, name) and len(getattr(self, name)) != len(self.addresses):
                raise ValueError(f"{name} has {len(getattr(self, name))} entries for {len(self.addresses)} GPUs")
        return self


class Numa(Model):
    cpus: tuple[str, ...]
    distance: int


class PciGroup(Model):
    """Devices of one kind on the bus."""

    device_id: HexId
    bus_name: str = "Elastic Fabric Adapter (EFA)"
    addresses: tuple[PciSlot, ...]


class InstanceStore(Model):
    count: int
    gb: int  # decimal, as the provider names the size


class Software(Model):
    """What the machine image carries. Defaults: the AWS deep-learning image of 2026-01 for Ubuntu 22.04, x86."""

    driver: str = "580.105.08"
    cuda_driver: str = "13.0"
    kernel_module: Literal["open", "proprietary"] = "open"
    toolkit: str = "13.0.88"
    toolkit_built: str = "Wed_Aug_20_01:58:59_PM_PDT_2025"
    kernel: str = "6.8.0-1044-aws"
    os_id: str = "ubuntu"
    os_version: str = "22.04"
    os_name: str = "Ubuntu 22.04.5 LTS"
    efa_driver: str = "2.17.3"
    efa_installer: str = "1.45.0"
    libfabric: str = "2.3.1amzn1.0"
    aws_ofi_nccl: str = "1.17.2"
    nccl: str = "2.28.3"
    dcgm: str = "4.4.2"
    container_toolkit: str = "1.18.0"


class Machine(Model):
    """One instance type, healthy and idle."""

    schema_: Literal["kiln/machine/v1"] = Field(alias="schema")
    source: str
    instance_type: str
    board: str
    gpus: Gpus
    pcie_width: int
    pairs: Cell | tuple[tuple[Cell, ...], ...] = "PHB"  # topo -m: one cell for all pairs, or row by row
    pcie_pairs: Literal["by-numa", "PHB"] = "PHB"  # what lies below NVLink: NODE within a NUMA node, SYS across
    p2p: Literal["OK", "CNS"] = "OK"
    fabric: bool
    numa: Numa
    switches: PciGroup | None = None
    efa: PciGroup | None = None
    instance_store: InstanceStore | None = None
    software: Software = Software()

    @model_validator(mode="after")
    def _square(self) -> Machine:
        count = len(self.gpus.addresses)
        if not isinstance(self.pairs, str) and any(len(row) != count for row in (self.pairs, *self.pairs)):
            raise ValueError(f"pairs is not a matrix of {count} rows and columns")
        return self

    def pair(self, first: int, second: int) -> str:
        """The cell of ``topo -m`` for two GPUs of a healthy machine."""
        if first == second:
            return "X"
        return self.pairs if isinstance(self.pairs, str) else self.pairs[first][second]


def _load(path: Path) -> object:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 - a safe loader
    except (OSError, yaml.YAMLError) as error:
        raise ProfileError(f"{path}: {error}") from error


def _problems(error: ValidationError) -> list[Problem]:
    return [
        Problem(".".join(str(part) for part in issue["loc"]) or "file", repr(issue.get("input"))[:80], issue["msg"])
        for issue in error.errors()
    ]


def types() -> tuple[str, ...]:
    """The instance types that can be simulated, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@functools.cache
def machine(instance_type: str) -> Machine:
    """The description of one instance type.

    Raises:
        ConfigError: the sandbox has no such type.
        ProfileError: its file is wrong; names the file and the keys.
    """
    if instance_type not in types():
        raise ConfigError(
            f"the sandbox cannot simulate instance type {instance_type!r}",
            remedy=f"use one of {', '.join(types())}, or add sandbox/machines/{instance_type}.yaml",
        )
    path = FOLDER / f"{instance_type}.yaml"
    try:
        return Machine.model_validate(_load(path))
    except ValidationError as error:
        raise ProfileError(f"{path} is not a machine description", _problems(error)) from error


@functools.cache
def board(name: str) -> Board:
    """The description of one GPU board.

    Raises:
        ProfileError: the file is missing or wrong; names the file and the keys.
    """
    path = FOLDER / "boards" / f"{name}.yaml"
    try:
        return Board.model_validate(_load(path))
    except ValidationError as error:
        raise ProfileError(f"{path} is not a board description", _problems(error)) from error
