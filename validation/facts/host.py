"""The facts about the host around the GPUs: topology, links, kernel log, buses, NICs, disks, software."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from validation.facts.missing import ABSENT, Missing

Pair = tuple[int, int]


@dataclass(frozen=True)
class Topology:
    """``nvidia-smi topo -m``. ``links[(0, 1)]`` is ``NV18``, ``PHB``, ``SYS``, ...; every ordered pair is there.

    ``numa[0]`` is the NUMA node printed for GPU0; Missing where the platform prints a range (``0-1``) or nothing.
    ``nic_links`` maps (GPU index, NIC column) to the cell; NIC columns are kept by position, with their label beside.
    """

    gpus: tuple[int, ...]
    links: Mapping[Pair, str]
    cpu_affinity: Mapping[int, frozenset[int] | Missing]
    numa: Mapping[int, int | Missing]
    nics: tuple[str, ...] = ()
    nic_links: Mapping[Pair, str] | Missing = ABSENT


@dataclass(frozen=True)
class P2pMatrix:
    """``nvidia-smi topo -p2p CAPABILITY``: status per ordered pair: OK, CNS, GNS, TNS, NS, DR, U."""

    capability: str  # r, w, n, a, p or several of them; "" where the text does not tell
    gpus: tuple[int, ...]
    status: Mapping[Pair, str]


@dataclass(frozen=True)
class KernelEvent:
    """One line of the kernel log that means something; ``text`` is its message, without clock and host.

    ``kind``: ``xid``, ``sxid``, or one of validation/facts/kernel_kinds.py. ``code`` is the (S)Xid number, None where
    the line has the form of one and its number cannot be read.
    ``fatal`` is the line's own word (Fatal/Nonfatal, uncorrected/corrected) where it has one. ``action`` is what Xid
    154 asks for, ``cause`` the Xid that a line says it follows, ``detail`` the unit and link of an NVLink error, and
    ``registers`` the words in its brackets: intrinfo, errorstatus and more.
    ``device`` is a disk, a filesystem or a NIC that the line names without a PCI address.
    ``cured`` says what happened after it that may have mended it: the host was started again, or the driver loaded.
    ``host`` is the name that stands before the line, of a log that several hosts may have written; ``times`` is how
    often syslog saw the message in a row.
    """

    kind: str
    line: int
    text: str
    code: int | None = None
    pci_address: str | None = None
    fatal: bool | None = None
    action: str | None = None
    process: str | None = None
    cause: int | None = None
    detail: str | None = None
    device: str | None = None
    cured: str | None = None
    registers: tuple[int, ...] = ()
    host: str = ""
    times: int = 1


@dataclass(frozen=True)
class KernelLog:
    """The kernel log since boot: its events, and how many lines were read. Zero lines read is not a clean log.

    ``from_boot`` is false where the first lines are no longer there: what was said early cannot be seen. ``unlisted``
    are lines of drivers of GPUs, network cards and storage that no list has, neither of faults nor of what is routine.
    """

    events: tuple[KernelEvent, ...]
    lines: int
    from_boot: bool = True
    unlisted: tuple[str, ...] = ()

    def place(self, event: KernelEvent) -> str:
        """Where an event stands: its line, and its host where the log is of several."""
        several = len({one.host for one in self.events}) > 1
        return f"log line {event.line}{f' of {event.host}' if several and event.host else ''}"


@dataclass(frozen=True)
class Acs:
    """PCIe Access Control Services of one function: the names of the services that are switched on (ACSCtl)."""

    on: frozenset[str]

    @property
    def redirects(self) -> bool:
        """Whether packets between devices below one switch go up to the root first, as the kernel's p2pdma.c tells."""
        return not self.on.isdisjoint(("ReqRedir", "CmpltRedir", "EgressCtrl"))


@dataclass(frozen=True)
class PciDevice:
    """One function on the PCI bus. ``dead``: configuration space reads all ones (``rev ff``).

    A class or vendor that is printed by name only is known where a check asks for it, and ABSENT otherwise.
    ``port``: what the function is on PCI Express: Endpoint, Root Port, Upstream Port, Downstream Port, ...
    ``buses``: the first and the last bus behind a bridge. ``driver``: the kernel driver that holds the function.
    """

    address: str
    class_id: str | Missing  # four hex digits: 0302
    vendor_id: str | Missing
    device_id: str | Missing
    name: str
    dead: bool = False
    link_speed_gts: float | Missing = ABSENT
    link_speed_max_gts: float | Missing = ABSENT
    link_width: int | Missing = ABSENT
    link_width_max: int | Missing = ABSENT
    port: str | Missing = ABSENT
    buses: tuple[int, int] | Missing = ABSENT
    acs: Acs | Missing = ABSENT
    driver: str | Missing = ABSENT


@dataclass(frozen=True)
class PciBus:
    devices: tuple[PciDevice, ...]

    @property
    def nvidia_gpus(self) -> tuple[PciDevice, ...]:
        """VGA (0300) and 3D (0302) controllers of vendor 10de: not audio functions, not NVSwitches (0680)."""
        return tuple(d for d in self.devices if d.vendor_id == "10de" and d.class_id in ("0300", "0302"))


@dataclass(frozen=True)
class NumaMap:
    """NUMA nodes from sysfs. ``gpu_node`` maps a PCI address to its node; Missing where the kernel says -1."""

    cpus: Mapping[int, frozenset[int]]
    distances: Mapping[Pair, int]
    gpu_node: Mapping[str, int | Missing]

    @property
    def cpu_nodes(self) -> tuple[int, ...]:
        """Nodes that have CPUs; memory-only nodes (HBM, GPU memory) are not counted."""
        return tuple(sorted(node for node, cpus in self.cpus.items() if cpus))


@dataclass(frozen=True)
class EfaNics:
    """EFA NICs as libfabric sees them: one entry a NIC, however many records each has.

    ``others``: the providers that are not EFA. Where there are some, EFA may never have been asked for.
    """

    nics: tuple[str, ...]
    source: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class RdmaDevice:
    """One port of a device: ``mlx5_0`` is its port 1, ``mlx5_0/2`` its port 2.

    ``link_layer``: InfiniBand, Ethernet, Unspecified (EFA). ``physical``: LinkUp, Polling, Disabled, ...; the rate is
    in Gbit/s.
    ``netdev_up`` is the state of the network interface, which is not the port's: an interface can be down by choice.
    """

    name: str
    vendor_id: str | Missing = ABSENT
    state: str | Missing = ABSENT
    link_layer: str | Missing = ABSENT
    rate_gbit_s: float | Missing = ABSENT
    firmware: str | Missing = ABSENT
    physical: str | Missing = ABSENT
    netdev: str | Missing = ABSENT
    netdev_up: bool | Missing = ABSENT

    def is_active(self) -> bool:
        """Whether the port's own state says so: ACTIVE, PORT_ACTIVE, Active."""
        return str(self.state).upper() in ("ACTIVE", "PORT_ACTIVE")


@dataclass(frozen=True)
class RdmaDevices:
    devices: tuple[RdmaDevice, ...]


@dataclass(frozen=True)
class BlockDevice:
    """One block device: ``kind`` is disk, part, loop, lvm, raid0, ...; size in bytes."""

    name: str
    kind: str
    size_bytes: int | Missing = ABSENT
    model: str = ""
    serial: str = ""
    mountpoints: tuple[str, ...] = ()


@dataclass(frozen=True)
class BlockDevices:
    devices: tuple[BlockDevice, ...]

    @property
    def instance_store(self) -> tuple[BlockDevice, ...]:
        """Local NVMe disks, told by model: the index says nothing, EBS and instance store mix freely."""
        return tuple(d for d in self.devices if d.kind == "disk" and "instance storage" in d.model.lower())


@dataclass(frozen=True)
class CudaToolkits:
    """Installed CUDA toolkits: full versions by where they were found (``nvcc``, ``/usr/local/cuda-12.6``)."""

    versions: Mapping[str, str]


@dataclass(frozen=True)
class Unit:
    """A systemd unit as ``systemctl show`` prints it: LoadState, ActiveState, SubState, UnitFileState."""

    name: str
    load: str
    active: str
    sub: str
    enabled: str = ""


@dataclass(frozen=True)
class DriverModule:
    """The loaded NVIDIA kernel module, from /proc/driver/nvidia/version. ``open``: the open kernel module."""

    version: str
    open: bool


@dataclass(frozen=True)
class EfaModule:
    """The EFA kernel module: loaded or not, and its version where the module says it."""

    loaded: bool
    version: str | Missing = ABSENT


@dataclass(frozen=True)
class HostInfo:
    """Who the host says it is. ``root`` is the KILN_ROOT in effect ("/" on a real host)."""

    hostname: str
    os_id: str
    os_version: str
    kernel: str
    architecture: str
    boot_id: str
    instance_id: str | Missing
    root: str
    instance_type: str | Missing = ABSENT  # what the machine says of itself, where its provider writes it there
    image: str | Missing = ABSENT  # the id of the image it was made from, as cloud-init keeps it
