"""What good looks like: the typed form of the catalogue files and of the expectation they become.

Every value carries where it comes from. A file lists its sources once (``sources: {golden: {text, date}}``) and each
value names one of them. What a machine lacks by design is written out (``none: true`` with a source); what no source
tells is left out, and a check that needs it is UNKNOWN, or a warning if the profile lists the check as advisory.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

T = TypeVar("T")

BurnInLevel = Literal["none", "quick"]
BURN_IN_LEVELS: tuple[str, ...] = get_args(BurnInLevel)


class Model(BaseModel):
    """Frozen, and unknown keys are errors: a misspelt expectation must not be a missing one."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Source(Model):
    """Where a value was read: ``text`` names the publication and version, ``date`` when it was read or published."""

    text: str
    date: dt.date


class Expected(Model, Generic[T]):
    """A value and the key of its source."""

    value: T
    source: str


class Range(Model):
    """A number's floor and ceiling, in the unit of the field's name. A floor without a ceiling is not a range."""

    floor: float
    ceiling: float
    source: str

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if not 0 <= self.floor <= self.ceiling:
            raise ValueError(f"floor {self.floor} must lie between 0 and the ceiling {self.ceiling}")
        return self


class GpuModel(Model):
    """``names``: the exact product strings that NVML prints for this board, newest driver first."""

    board: str  # key of shared board limits, e.g. H100-SXM5-80GB
    names: Expected[tuple[str, ...]]
    count: Expected[int]
    memory_mib: Range
    ecc: Expected[bool] | None = None
    memory_repair: Expected[Literal["remapped-rows", "retired-pages", "none"]]
    power_limit_w: Expected[float] | None = None
    sm_clock_max_mhz: Expected[float] | None = None


class Links(Model):
    """``nvlinks``: active links per GPU, 0 by design where there are none. ``pairs``: what ``topo -m`` prints.

    ``pairs`` is one cell for all pairs (``NV18``, ``PHB``), a full matrix row by row (``X`` on the diagonal), or None
    where no capture exists. ``p2p``: what ``topo -p2p r`` prints for every pair; None where not seen.
    """

    nvlinks: Expected[int] | None = None
    nvlink_rate_gbps: Expected[float] | None = None
    pairs: Expected[str | tuple[tuple[str, ...], ...]] | None = None
    p2p: Expected[str] | None = None
    pcie_width: Expected[int] | None = None
    pcie_generation: Expected[int] | None = None
    fabric: Expected[Literal["none", "hgx", "nvl72"]] | None = None  # hgx: Completed, clique 0 and zero UUID are right


class Numa(Model):
    """``nodes``: NUMA nodes with CPUs. ``gpu_nodes``: node of each GPU by index, or "not exposed" by the platform."""

    nodes: Expected[int] | None = None
    distance: Expected[int] | None = None
    gpu_nodes: Expected[tuple[int, ...] | Literal["not exposed"]] | None = None


class NetworkCards(Model):
    """EFA layout of the type: ``cards`` network cards, of which these indices can carry an EFA; 0 EFA means none.

    ``efa_nodes``: how many EFAs are on NUMA node 0, 1, ... when the instance has all of them.
    """

    cards: Expected[int] | None = None
    efa_max: Expected[int]
    efa_cards: Expected[tuple[int, ...]]
    efa_nodes: Expected[tuple[int, ...]] | None = None
    enis_per_card: Expected[int] | None = None


class Storage(Model):
    """Instance store disks (count and decimal GB each) and the EBS ceiling of the instance itself."""

    instance_store_count: Expected[int] | None = None
    instance_store_gb: Expected[int] | None = None
    ebs_iops_max: Expected[int] | None = None
    ebs_throughput_mbps_max: Expected[float] | None = None  # MB/s


class Needs(Model):
    """Software the machine needs: Fabric Manager only where there is NVSwitch; the kernel modules it can run.

    ``fabric_manager`` is None where no source tells who runs the NVSwitches: the machine's own PCI bus then tells.
    """

    fabric_manager: Expected[bool] | None = None
    kernel_modules: Expected[tuple[Literal["open", "proprietary"], ...]]
    min_driver: Expected[str] | None = None


class BurnIn(Model):
    """Floors and ceilings per GPU. GB/s decimal and TFLOPS; None where no source gives a number."""

    h2d_gbps: Range | None = None
    d2h_gbps: Range | None = None
    gemm_fp16_tflops: Range | None = None
    gemm_fp32_tflops: Range | None = None


class InstanceProfile(Model):
    """One instance type of one cloud, or of one's own machines (``local``).

    ``reviewed`` is false in a draft that ``kiln baseline record`` wrote: it keeps the gate shut until a person has
    looked at every value and set it to true.
    """

    schema_: Literal["kiln/profile/v1"] = Field(alias="schema")
    provider: Literal["aws", "alicloud", "local"]
    instance_type: str
    reviewed: bool = True
    architecture: Literal["x86_64", "arm64"]
    vcpus: Expected[int] | None = None
    memory_gib: Expected[float] | None = None
    sources: dict[str, Source]
    gpu: GpuModel
    links: Links
    numa: Numa
    network: NetworkCards
    storage: Storage
    needs: Needs
    burn_in: BurnIn = BurnIn()
    advisory: dict[str, str] = {}  # check id -> why it only warns on this type

    @model_validator(mode="after")
    def _sources_exist(self) -> InstanceProfile:
        named = set(_source_keys(self))
        missing = sorted(named - set(self.sources))
        if missing:
            raise ValueError(f"values name sources that the file does not list: {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _can_be_judged(self) -> InstanceProfile:
        """A profile that nothing could fail is none: no GPU, no name, any size of memory, a map of other GPUs."""
        gpu, pairs, nodes = self.gpu, self.links.pairs, self.numa.gpu_nodes
        count = gpu.count.value
        if count < 1 or not gpu.names.value or gpu.memory_mib.floor <= 0:
            raise ValueError("gpu: needs a count of 1 or more, a name, and a floor of memory above 0")
        if pairs and not isinstance(pairs.value, str) and [len(row) for row in pairs.value] != [count] * count:
            raise ValueError(f"links.pairs: not a matrix of {count} by {count} GPUs")
        if nodes and not isinstance(nodes.value, str) and len(nodes.value) != count:
            raise ValueError(f"numa.gpu_nodes: {len(nodes.value)} nodes for {count} GPUs")
        return self


def _source_keys(model: BaseModel) -> list[str]:
    keys: list[str] = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name == "source" and isinstance(value, str):
            keys.append(value)
        elif isinstance(value, BaseModel):
            keys.extend(_source_keys(value))
    return keys


class SoftwareProfile(Model):
    """What the image is meant to carry. None: not pinned, so not judged against a pin."""

    name: str
    driver: str | None = None  # exact version, or a branch such as "580"
    cuda: str | None = None  # toolkit version or its major.minor prefix
    kernel_module: Literal["open", "proprietary"] | None = None
    efa_installer: str | None = None
    aws_ofi_nccl: str | None = None
    nccl: str | None = None
    dcgm: str | None = None
    container_toolkit: str | None = None
    kernel: str | None = None
    source: str = ""
    date: dt.date | None = None

    @model_validator(mode="after")
    def _no_empty_pin(self) -> SoftwareProfile:
        empty = [name for name in PINS if getattr(self, name) == ""]
        if empty:
            raise ValueError(f"an empty pin pins nothing: leave out {', '.join(empty)}")
        return self

    @property
    def pins(self) -> tuple[str, ...]:
        """The names of what is pinned."""
        return tuple(name for name in PINS if getattr(self, name))


PINS = tuple(name for name in SoftwareProfile.model_fields if name not in ("name", "source", "date"))


class KnownBad(Model):
    """A GPU that was rejected for its hardware: where, when (UTC ISO time) and by which check.

    ``here``: this is the host that it was rejected on, so it is no replacement. ``whole_host``: the fault was not one
    GPU's, so that only most of the same GPUs together mean the same host again.
    """

    uuid: str
    serial: str = ""
    board: str = ""
    host: str
    instance_id: str = ""
    check: str
    date: str
    here: bool = False
    whole_host: bool = False


class Expectation(Model):
    """What one host must be: the profile of its type, overridden by what the stack asked for.

    ``profile`` is None for a type that the catalogue does not have; every check that needs it is then UNKNOWN.
    ``root`` is the directory below which evidence may have been read: "/" for a real host. ``burn_in`` is the level of
    the burn-in that was asked for; with "none" the burn-in checks do not apply. ``known_bad`` are the units that must
    not come back, ``known_bad_gap`` why they could not be read; neither is part of what the host must be, so they are
    in no digest: a unit rejected elsewhere voids no verdict and no burn-in here.
    """

    instance_type: str
    profile: InstanceProfile | None = None
    software: SoftwareProfile = SoftwareProfile(name="unpinned")
    efa_count: Annotated[int, Field(ge=0)] = 0
    mig: bool = False
    persistence: bool = True
    ecc: bool | None = None  # None: on where the board has it
    power_limit_w: float | None = None  # None: the board's own
    root: str = "/"
    burn_in: BurnInLevel = "none"
    known_bad: tuple[KnownBad, ...] = Field(default=(), exclude=True)
    known_bad_gap: str = Field(default="", exclude=True)

    def source_of(self, key: str) -> str:
        """The text of a profile source, for findings: ``profile p5.48xlarge (aws-k8s-tester golden, 2026-03-20)``."""
        if self.profile is None or key not in self.profile.sources:
            return key
        source = self.profile.sources[key]
        return f"profile {self.profile.instance_type} ({source.text}, {source.date})"
