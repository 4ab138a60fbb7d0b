"""A healthy host of any type of the catalogue, as facts, to break one thing of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from profiles.expectation import expect
from profiles.models import Expectation, InstanceProfile
from validation.checks.base import Check
from validation.facts.components import Components
from validation.facts.gpu import (
    Ecc,
    Fabric,
    Gpu,
    GpuInventory,
    NvLink,
    PcieLink,
    RemappedRows,
    RetiredPages,
)
from validation.facts.host import (
    BlockDevice,
    BlockDevices,
    CudaToolkits,
    DriverModule,
    EfaModule,
    EfaNics,
    HostInfo,
    KernelEvent,
    KernelLog,
    NumaMap,
    P2pMatrix,
    PciBus,
    PciDevice,
    RdmaDevice,
    RdmaDevices,
    Topology,
    Unit,
)
from validation.facts.host_state import (
    AcsControls,
    Clock,
    Filesystem,
    Filesystems,
    HostState,
    Mount,
    Processes,
)
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.nvlink_errors import LinkErrors, NvLinkErrors
from validation.facts.rdma_counters import PortCounters, RdmaCounters
from validation.facts.store import Facts, Gap
from validation.judge import judge_facts

NOT_APPLICABLE = Missing(Reason.NOT_APPLICABLE, "N/A")
DRIVER = "580.105.08"
ARCHITECTURES = {
    "V100": "Volta",
    "T4": "Turing",
    "T4g": "Turing",
    "A100": "Ampere",
    "A10G": "Ampere",
    "L4": "Ada Lovelace",
    "L40S": "Ada Lovelace",
    "H100": "Hopper",
    "H200": "Hopper",
    "H20": "Hopper",
    "A10": "Ampere",
    "L20": "Ada Lovelace",
}


class Host:
    """Facts of a healthy host. Each method changes one thing and returns the host, so that a row is one expression."""

    def __init__(self, instance_type: str, **asked: Any) -> None:
        self.expected: Expectation = expect(instance_type, **asked)
        assert self.expected.profile is not None
        self.profile: InstanceProfile = self.expected.profile
        self.gpus = [healthy_gpu(self.profile, index) for index in range(self.profile.gpu.count.value)]
        self.inventory: dict[str, Any] = {"driver_version": DRIVER}
        self.values: dict[type, object] = {}
        self.gaps: dict[type, Gap] = {}
        module = "open" if "open" in self.profile.needs.kernel_modules.value else "proprietary"
        self.put(
            HostInfo(
                "ip-10-0-0-1", "ubuntu", "22.04", "6.8.0-1044-aws", self.profile.architecture, "boot-1", "i-1", "/"
            ),
            DriverModule(DRIVER, module == "open"),
            CudaToolkits({"nvcc": "12.9.86" if self.profile.gpu.board.startswith("V100") else "13.0.88"}),
            PciBus(
                tuple(pci_device(address(index)) for index in range(len(self.gpus)))
                + tuple(efa_device(index) for index in range(self.expected.efa_count))
            ),
            topology(self.profile),
            p2p(self.profile),
            numa(self.profile, self.expected.efa_count),
            unit(needed=needs_manager(self.profile)),
            KernelLog((), 900),
            EfaNics(tuple(f"rdmap{n}s0" for n in range(self.expected.efa_count)), "fi_info"),
            EfaModule(loaded=True),
            rdma(self.expected.efa_count),
            RdmaCounters(tuple(PortCounters(f"rdmap{n}s0", {"rx_drops": 0}) for n in range(self.expected.efa_count))),
            disks(self.profile),
            host_state(self.profile),
            Filesystems((Filesystem("/", 100 * 2**20, 60 * 2**20), Filesystem("/boot/efi", 106832, 1024))),
            Clock(synchronised=True),
            Processes(312, 0),
            AcsControls({}),
            components(fabric_manager=needs_manager(self.profile)),
            link_errors(self.gpus),
        )

    def put(self, *facts: object) -> Host:
        self.values.update({type(fact): fact for fact in facts})
        return self

    def drop(self, kind: type, reason: str = "tool: not found", evidence: str = "item") -> Host:
        self.values.pop(kind, None)
        self.gaps[kind] = Gap(reason, evidence)
        return self

    def gpu(self, index: int, **changes: Any) -> Host:
        self.gpus[index] = replace(self.gpus[index], **changes)
        return self

    def every(self, **changes: Any) -> Host:
        self.gpus = [replace(gpu, **changes) for gpu in self.gpus]
        return self

    def without(self, index: int) -> Host:
        del self.gpus[index]
        return self

    def only(self, count: int) -> Host:
        self.gpus = self.gpus[:count]
        return self

    def driver(self, **changes: Any) -> Host:
        self.inventory.update(changes)
        return self

    def software(self, **changes: Any) -> Host:
        """Change what is installed: ``software(nccl=("2.18.1",))``."""
        installed = self.values[Components]
        assert isinstance(installed, Components)
        return self.put(replace(installed, **changes))

    def pinning(self, **pins: str) -> Host:
        """Pin versions: ``pinning(nccl="2.28")``."""
        return self.expecting(software=self.expected.software.model_copy(update=pins))

    def state(self, **changes: Any) -> Host:
        """Change the host around the GPUs: ``state(memory_kib=1)``."""
        now = self.values[HostState]
        assert isinstance(now, HostState)
        return self.put(replace(now, **changes))

    def log(self, *events: KernelEvent) -> Host:
        return self.put(KernelLog(events, 900))

    def profiled(self, **changes: Any) -> Host:
        """Change the profile itself: ``profiled(links={"pairs": None})``."""
        parts = {key: getattr(self.profile, key).model_copy(update=value) for key, value in changes.items()}
        self.profile = self.profile.model_copy(update=parts)
        return self.expecting(profile=self.profile)

    def expecting(self, **changes: Any) -> Host:
        self.expected = self.expected.model_copy(update=changes)
        return self

    def facts(self) -> Facts:
        values = dict(self.values)
        if GpuInventory not in self.gaps and GpuInventory not in values:
            values[GpuInventory] = GpuInventory("nvml", tuple(self.gpus), **self.inventory)
        return Facts(values, self.gaps)

    def says(self, check: Check) -> list[str]:
        """What the judge makes of one check: ``VERDICT subject: message`` for every finding."""
        findings = judge_facts(self.facts(), self.expected, "host", [check])
        return [f"{f.verdict.value} {f.subject.removeprefix('host/')}: {f.message}" for f in findings]


@pytest.fixture
def host() -> Callable[..., Host]:
    return Host


def healthy_gpu(profile: InstanceProfile, index: int) -> Gpu:
    board, links = profile.gpu, profile.links
    count = links.nvlinks.value if links.nvlinks else 4 * is_linked(profile)
    rate = links.nvlink_rate_gbps.value if links.nvlink_rate_gbps else 0.0
    rows = board.memory_repair.value == "remapped-rows"
    nothing = RemappedRows(NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE)
    pages = RetiredPages(NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE)
    return Gpu(
        index=index,
        name=board.names.value[0],
        uuid=f"GPU-{index}",
        serial=f"165{index}",
        pci_address=address(index),
        memory_total_mib=(board.memory_mib.floor + board.memory_mib.ceiling) // 2,
        memory_used_mib=1.0,
        vbios="96.00.89.00.01",
        gsp_firmware=DRIVER,
        persistence=True,
        mig_enabled=False,
        mig_pending=False,
        compute_mode="Default",
        ecc=Ecc(True, 0, 0, 0, 0, False),
        remapped_rows=RemappedRows(0, 0, False, False) if rows else nothing,
        retired_pages=pages if rows else RetiredPages(0, 0, False),
        fabric=healthy_fabric(links.fabric.value if links.fabric else "none"),
        pcie=PcieLink(1, 5, links.pcie_width.value if links.pcie_width else 16, 16, 0),
        nvlinks=tuple(NvLink(link, True, rate) for link in range(count)) if count else NOT_APPLICABLE,
        architecture=ARCHITECTURES.get(board.board.split("-")[0], "Blackwell"),
        temperature_c=31.0,
        tlimit_margin_c=55.0,
        power_limit_w=board.power_limit_w.value if board.power_limit_w else 300.0,
        power_limit_default_w=board.power_limit_w.value if board.power_limit_w else 300.0,
        sm_clock_max_mhz=board.sm_clock_max_mhz.value if board.sm_clock_max_mhz else NOT_APPLICABLE,
        throttle_reasons=frozenset({"gpu_idle"}),
        recovery_action="None",
        processes=0,
        virtualization="VGPU" if is_slice(profile) else ABSENT,
        vgpu_license="Licensed (Expiry: N/A)" if is_slice(profile) else ABSENT,
    )


def is_linked(profile: InstanceProfile) -> bool:
    """Several modules on one board, whose number of links no source gives."""
    modules = profile.gpu.board.startswith(("V100-SXM", "A100-SXM", "H20"))
    return modules and profile.links.nvlinks is None and profile.gpu.count.value > 1


def is_slice(profile: InstanceProfile) -> bool:
    """A virtual GPU: its name ends with its share, as in ``NVIDIA L4-3Q``."""
    return profile.gpu.names.value[0].endswith("Q")


def healthy_fabric(kind: str) -> Fabric:
    if kind == "none":
        return Fabric(NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE)
    zero = "00000000-0000-0000-0000-000000000000"
    if kind == "hgx":
        return Fabric("Completed", "Success", 0, zero, NOT_APPLICABLE, (("bandwidth", "N/A"),))
    health = (("bandwidth", "Full"), ("route_unhealthy", "False"), ("incorrect_configuration", "None"))
    return Fabric("Completed", "Success", 32766, zero[:-1] + "7", "Healthy", health)


def address(index: int) -> str:
    return f"0000:{0x53 + 0x11 * index:02x}:00.0"


def pci_device(where: str, *, dead: bool = False, class_id: str = "0302") -> PciDevice:
    return PciDevice(where, class_id, "10de", "2330", "3D controller", dead)


def efa_device(index: int) -> PciDevice:
    return PciDevice(f"0000:a{index // 16}:{index % 16:02x}.0", "0200", "1d0f", "efa2", "Elastic Fabric Adapter (EFA)")


def components(*, fabric_manager: bool) -> Components:
    """What a healthy image carries: as in the software profile of a deep-learning image."""
    return Components(
        fabric_manager=DRIVER if fabric_manager else ABSENT,
        efa_installer="1.45.0",
        libfabric="2.3.1amzn1.0",
        aws_ofi_nccl="1.17.2",
        nccl=("2.28.3",),
        container_toolkit="1.18.0",
        dcgm="4.4.2",
        peermem=ABSENT,
    )


def link_errors(gpus: Sequence[Gpu]) -> NvLinkErrors:
    counters = [
        LinkErrors(gpu.index, link.index, "CRC Errors", 0)
        for gpu in gpus
        for link in (() if isinstance(gpu.nvlinks, Missing) else gpu.nvlinks)
    ]
    without = tuple((gpu.index, gpu.nvlinks) for gpu in gpus if isinstance(gpu.nvlinks, Missing))
    return NvLinkErrors(tuple(gpu.index for gpu in gpus), tuple(counters), without)


def topology(profile: InstanceProfile) -> Topology:
    gpus = tuple(range(profile.gpu.count.value))
    wanted = profile.links.pairs.value if profile.links.pairs else "PHB"
    cells = {(a, b): wanted if isinstance(wanted, str) else wanted[a][b] for a in gpus for b in gpus if a != b}
    return Topology(gpus, cells, dict.fromkeys(gpus, frozenset({0})), dict(numa_nodes(profile)))


def p2p(profile: InstanceProfile) -> P2pMatrix:
    gpus = tuple(range(profile.gpu.count.value))
    word = profile.links.p2p.value if profile.links.p2p else "OK"
    return P2pMatrix("r", gpus, {(a, b): "X" if a == b else word for a in gpus for b in gpus})


def numa_nodes(profile: InstanceProfile) -> Sequence[tuple[int, int | Missing]]:
    nodes = profile.numa.gpu_nodes.value if profile.numa.gpu_nodes else "not exposed"
    if isinstance(nodes, str):
        return [(index, Missing(Reason.NOT_APPLICABLE, "0-1")) for index in range(profile.gpu.count.value)]
    return list(enumerate(nodes))


def numa(profile: InstanceProfile, efa_count: int) -> NumaMap:
    count = profile.numa.nodes.value if profile.numa.nodes else 1
    far = profile.numa.distance.value if profile.numa.distance else 10
    return NumaMap(
        cpus={
            node: frozenset(range(node, profile.vcpus.value if profile.vcpus else 8, count)) for node in range(count)
        },
        distances={(a, b): 10 if a == b else far for a in range(count) for b in range(count)},
        gpu_node={
            **{address(index): node for index, node in numa_nodes(profile)},
            **{efa_device(index).address: index * count // efa_count for index in range(efa_count)},
        },
    )


def needs_manager(profile: InstanceProfile) -> bool:
    """Where the profile leaves it to the PCI bus: the bus of these hosts has no NVSwitch."""
    return profile.needs.fabric_manager is not None and profile.needs.fabric_manager.value


def host_state(profile: InstanceProfile) -> HostState:
    whole = profile.memory_gib.value if profile.memory_gib else 64.0
    return HostState(
        memory_kib=int(whole * 0.97 * 2**20),
        swap_kib=0,
        command_line="",
        virtual=True,
        modules=frozenset({"nvidia", "nvidia_uvm"}),
        mounts=(Mount("/", "ext4", read_only=False), Mount("/boot/efi", "vfat", read_only=False)),
        runtimes={"/etc/docker/daemon.json": True},
    )


def unit(*, needed: bool) -> Unit:
    name = "nvidia-fabricmanager.service"
    if needed:
        return Unit(name, "loaded", "active", "running", "enabled")
    return Unit(name, "not-found", "inactive", "dead")


def rdma(count: int) -> RdmaDevices:
    return RdmaDevices(
        tuple(
            RdmaDevice(f"rdmap{n}s0", "0x1d0f", "PORT_ACTIVE", "Unspecified", firmware="0.0.0.0") for n in range(count)
        )
    )


def disks(profile: InstanceProfile) -> BlockDevices:
    count = profile.storage.instance_store_count.value if profile.storage.instance_store_count else 0
    size = (profile.storage.instance_store_gb.value if profile.storage.instance_store_gb else 0) * 10**9
    root = BlockDevice("nvme0n1", "disk", 200 * 2**30, "Amazon Elastic Block Store", "vol1")
    model = "Amazon EC2 NVMe Instance Storage"
    return BlockDevices((root, *(BlockDevice(f"nvme{n + 1}n1", "disk", size, model, f"AWS{n}") for n in range(count))))
