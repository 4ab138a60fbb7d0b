"""Evidence to facts: every fact either read whole, or a gap that says why not.

Rules that hold for every item: an outcome other than ``ok``, a text cut off by the probe's limit, and a tool that ended
with another status than 0 are gaps. Exceptions are in the functions below, each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from profiles.errors import ParseError
from validation.evidence import Bundle, Item, Outcome
from validation.facts import (
    burnin,
    components,
    cuda_toolkit,
    driver_fault,
    fi_info,
    host_info,
    host_state,
    kernel_log,
    kernel_module,
    lsblk,
    lspci,
    merge,
    nvlink,
    nvlink_errors,
    nvml,
    rdma,
    rdma_counters,
    smi_xml,
    sysfs,
    systemctl,
    topo,
    topo_p2p,
)
from validation.facts.burnin import BurnInResult
from validation.facts.components import Components
from validation.facts.gpu import DriverFault, GpuInventory
from validation.facts.host import (
    BlockDevices,
    CudaToolkits,
    DriverModule,
    EfaModule,
    EfaNics,
    HostInfo,
    KernelLog,
    NumaMap,
    P2pMatrix,
    PciBus,
    RdmaDevices,
    Topology,
    Unit,
)
from validation.facts.host_state import AcsControls, Clock, Filesystems, HostState, Processes
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.nvlink_errors import NvLinkErrors
from validation.facts.rdma_counters import RdmaCounters
from validation.facts.store import Facts, Gap

T = TypeVar("T")
Rule = Callable[[Bundle], object]
_SMI = ("nvidia-smi-q-x", "topo-m", "topo-p2p-r", "nvlink-s")


class _GapError(Exception):
    """A fact cannot be read; carries the gap that says why."""

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(reason)
        self.gap = Gap(reason, evidence)


def assemble(bundle: Bundle) -> Facts:
    """All facts of one host. A bundle without its end marker gives none: nothing in it can be trusted to be whole."""
    if not bundle.complete:
        gap = Gap("the evidence is incomplete: the probe's end marker did not arrive")
        return Facts({}, dict.fromkeys(RULES, gap))
    values: dict[type, object] = {}
    gaps: dict[type, Gap] = {}
    for kind, rule in RULES.items():
        fact = _read(lambda rule=rule: rule(bundle), _EVIDENCE[kind])  # type: ignore[misc]
        if isinstance(fact, Gap):
            gaps[kind] = fact
        else:
            values[kind] = fact
    return Facts(values, gaps)


def _read(rule: Callable[[], T | None], evidence: str) -> T | Gap:
    """What the rule reads, or the gap that says why it could not."""
    try:
        fact = rule()
    except _GapError as error:
        return error.gap
    except ParseError as error:
        return Gap(f"could not be read: {error}", evidence)
    except Exception as error:  # noqa: BLE001 - what breaks a parser was not read: a gap, with its cause
        return Gap(f"could not be read: {type(error).__name__}: {str(error)[:200]}", evidence)
    return Gap("the evidence shows none", evidence) if fact is None else fact


def _each(bundle: Bundle, *ways: tuple[str, Callable[[str], T], bool]) -> tuple[list[T], list[Gap]]:
    """The fact from every item it can be read from, and why it could not be from the others.

    A way is the item's name, its parser, and whether a status other than 0 is no obstacle. Raises one gap with all the
    reasons where no item has it.
    """
    tried = [
        _read(lambda way=way: way[1](_text(bundle, way[0], any_status=way[2])), way[0])  # type: ignore[misc]
        for way in ways
    ]
    found = [fact for fact in tried if not isinstance(fact, Gap)]
    gaps = [gap for gap in tried if isinstance(gap, Gap)]
    if not found:
        raise _GapError("; ".join(gap.reason for gap in gaps), ways[0][0])
    return found, gaps


def _item(bundle: Bundle, name: str) -> Item:
    item = bundle.items.get(name)
    if item is None:
        raise _GapError(f"evidence item '{name}' was not gathered", name)
    return item


def _said(item: Item) -> str:
    """Why a tool failed, on one line: where the driver names a fault that line, else its last words."""
    fault = driver_fault.first(f"{item.stdout[:4096]}\n{item.stderr}", item.name)
    text = (item.error or item.stderr or item.stdout).strip()
    last = text.splitlines()[-1][:200] if text else "it said nothing"
    return fault.text[:200] if fault and not item.error else last


def _why_none(item: Item) -> str:
    """Why there is no output that may be parsed, for an outcome other than ``ok``."""
    if item.outcome is Outcome.ERROR:
        return _said(item)
    reason = {
        Outcome.NOT_FOUND: "not found",
        Outcome.TIMEOUT: f"no answer within {item.duration_s:.0f} s",
        Outcome.DENIED: "permission denied",
    }[item.outcome]
    return f"{reason} ({_said(item)})" if item.error else reason


def _text(bundle: Bundle, name: str, *, any_status: bool = False) -> str:
    """The item's text if it may be parsed as a whole, else raises the gap that says why not."""
    item = _item(bundle, name)
    if item.outcome is not Outcome.OK:
        raise _GapError(f"{item.source}: {_why_none(item)}", name)
    if item.truncated:
        raise _GapError(f"{item.source}: the output was cut off at the probe's limit", name)
    if item.rc not in (None, 0) and not any_status:
        raise _GapError(f"{item.source}: exit status {item.rc}: {_said(item)}", name)
    return item.stdout


def _parsed(name: str, parse: Callable[[str], T]) -> Callable[[Bundle], T]:
    return lambda bundle: parse(_text(bundle, name))


def _absent(bundle: Bundle, name: str) -> bool:
    """Whether the item was looked for and is not there: a fact of its own for files that say yes by existing."""
    item = bundle.items.get(name)
    return item is not None and item.outcome is Outcome.NOT_FOUND


def gpu_inventory(bundle: Bundle) -> GpuInventory:
    """NVML's GPUs, with what it lacks from ``nvidia-smi -q -x``; the XML alone where NVML cannot be used.

    nvidia-smi ends with a status other than 0 when one of several GPUs is lost, and still prints the others. A GPU that
    it calls lost is lost although NVML listed it, and a tool that hangs, breaks or ends with a status of its own is
    told: one source does not excuse the other.
    """
    sources, gaps = _each(bundle, ("nvml", nvml.parse, True), ("nvidia-smi-q-x", smi_xml.parse, True))
    whole = sources[0] if len(sources) == 1 else merge.inventories(*sources)
    whole = replace(whole, lost=whole.lost or _called_lost(bundle))
    whole = replace(whole, silent=tuple(_silent(bundle, whole, gaps)))
    if len(sources) == 1 and sources[0].source != "nvml":
        _all_listed(whole)
    printed = _read(lambda: nvlink.parse(_text(bundle, "nvlink-s")), "nvlink-s")
    # Without it NVML's own links stand; where there are none either, the field says so.
    return whole if isinstance(printed, Gap) else merge.links(whole, printed)


def _called_lost(bundle: Bundle) -> tuple[str, ...]:
    """The GPUs that nvidia-smi says are lost, by what it names: an address, an index, else its own words."""
    items = [bundle.items[name] for name in _SMI if name in bundle.items]
    faults = [fault for item in items for fault in driver_fault.find(f"{item.stdout[:4096]}\n{item.stderr}", item.name)]
    return tuple(dict.fromkeys(fault.gpu or fault.text for fault in faults if fault.kind == "gpu-lost"))


def _silent(bundle: Bundle, inventory: GpuInventory, gaps: list[Gap]) -> Iterator[str]:
    """The tools that are there and gave no answer that could be read, or ended with a status that nothing explains."""
    if inventory.lost:  # which is why nvidia-smi prints no document, or ends with 15
        return
    yield from (gap.reason for gap in gaps if gap.evidence in bundle.items and not _absent(bundle, gap.evidence))
    smi = bundle.items.get("nvidia-smi-q-x")
    if smi is not None and smi.outcome is Outcome.OK and smi.rc and not (gaps or inventory.warned):
        yield f"{smi.source}: exit status {smi.rc}"


def _all_listed(inventory: GpuInventory) -> None:
    attached = inventory.attached
    if isinstance(attached, Missing) or len(inventory.gpus) + len(inventory.lost) < attached:
        shown = len(inventory.gpus)
        raise _GapError(
            f"nvidia-smi -q -x: {attached} GPUs attached, {shown} shown, no word on the rest", "nvidia-smi-q-x"
        )


def any_driver_fault(bundle: Bundle) -> DriverFault | None:
    """The fault in the driver's own words: NVML's start-up error first, then any nvidia-smi output."""
    found = _read(lambda: nvml.fault(_text(bundle, "nvml", any_status=True)), "nvml")
    if not isinstance(found, Gap):
        return found
    for name in _SMI:
        item = bundle.items.get(name)
        fault = driver_fault.first(f"{item.stdout[:4096]}\n{item.stderr}", name) if item else None
        if fault and fault.kind not in driver_fault.PARTIAL:
            return fault
    if _absent(bundle, "driver-module"):
        return DriverFault("driver-module", "not-loaded", "/proc/driver/nvidia/version does not exist")
    return None


def p2p_matrix(bundle: Bundle) -> P2pMatrix:
    """NVML's and nvidia-smi's matrix, which must agree where both can be read."""
    found, _ = _each(bundle, ("nvml", nvml.p2p, True), ("topo-p2p-r", topo_p2p.parse, False))
    return found[0] if len(found) == 1 else merge.matrices(*found)


def pci_bus(bundle: Bundle) -> PciBus:
    """lspci's functions with the links of /sys; /sys alone where lspci is not installed."""
    if _absent(bundle, "lspci"):
        return sysfs.parse_pci(_text(bundle, "sysfs-pcie"))
    listed = lspci.parse(_text(bundle, "lspci"))
    files = _read(lambda: sysfs.parse_pci(_text(bundle, "sysfs-pcie")), "sysfs-pcie")
    # Without /sys the link fields stay ABSENT, and say so.
    return listed if isinstance(files, Gap) else merge.buses(listed, files)


def efa_nics(bundle: Bundle) -> EfaNics:
    """fi_info's NICs; without fi_info, the Amazon devices of ibv_devinfo.

    fi_info ends with a status other than 0 where there is no EFA, and says it on stdout or stderr by version.
    """
    item = _item(bundle, "fi-info")
    if item.outcome is Outcome.NOT_FOUND and not _absent(bundle, "ibv-devinfo"):
        devices = rdma_devices(bundle).devices
        return EfaNics(tuple(d.name for d in devices if d.vendor_id == rdma.AMAZON), source="ibv-devinfo")
    text = _text(bundle, "fi-info", any_status=True)
    return fi_info.parse(f"{text}\n{item.stderr}" if item.rc else text)


def rdma_devices(bundle: Bundle) -> RdmaDevices:
    item = _item(bundle, "ibv-devinfo")
    text = _text(bundle, "ibv-devinfo", any_status=True)
    return rdma.parse_ibv_devinfo(f"{text}\n{item.stderr}" if item.rc else text)


def efa_module(bundle: Bundle) -> EfaModule:
    """The module's directory in /sys is there exactly while it is loaded."""
    return (
        EfaModule(loaded=False)
        if _absent(bundle, "efa-module")
        else kernel_module.parse_efa(_text(bundle, "efa-module"))
    )


def cuda_toolkits(bundle: Bundle) -> CudaToolkits:
    """nvcc and the version files together: nvcc is often not on a plain session's PATH, which is no missing toolkit."""
    versions: dict[str, str] = {}
    for name, parse in (("nvcc", cuda_toolkit.parse), ("cuda-version-files", cuda_toolkit.parse_files)):
        if not _absent(bundle, name):
            versions.update(parse(_text(bundle, name)).versions)
    return CudaToolkits(versions)


def component_versions(bundle: Bundle) -> Components:
    """Each version for itself. How these tools end says nothing: the text has the version, or cannot be read."""

    def version(item: str, parse: Callable[[str], object]) -> object:
        if _absent(bundle, item):
            return ABSENT
        found = _read(lambda: parse(_text(bundle, item, any_status=True)), item)
        return Missing(Reason.COULD_NOT_LOOK, found.reason) if isinstance(found, Gap) else found

    found = {field: version(*way) for field, way in components.FIELDS.items()}
    return Components(**found)  # type: ignore[arg-type]


def filesystems(bundle: Bundle) -> Filesystems:
    """df ends with 1 where one of many mounts, another user's for one, cannot be asked: the others stand."""
    return host_state.parse_df(_text(bundle, "df", any_status=True))


def host(bundle: Bundle) -> HostInfo:
    return host_info.parse(
        bundle.host,
        bundle.root,
        os_release=_text(bundle, "os-release"),
        kernel=_text(bundle, "kernel"),
        boot_id=_text(bundle, "boot-id"),
        instance=None if _absent(bundle, "instance") else _text(bundle, "instance"),
    )


RULES: Mapping[type, Rule] = {
    HostInfo: host,
    GpuInventory: gpu_inventory,
    DriverFault: any_driver_fault,
    DriverModule: _parsed("driver-module", kernel_module.parse),
    CudaToolkits: cuda_toolkits,
    Topology: _parsed("topo-m", topo.parse),
    P2pMatrix: p2p_matrix,
    NumaMap: _parsed("sysfs-numa", sysfs.parse_numa),
    PciBus: pci_bus,
    KernelLog: _parsed("kernel-log", kernel_log.parse_whole),
    Unit: _parsed("fabricmanager", systemctl.parse),
    EfaNics: efa_nics,
    EfaModule: efa_module,
    RdmaDevices: rdma_devices,
    RdmaCounters: _parsed("rdma-counters", rdma_counters.parse),
    BlockDevices: _parsed("lsblk", lsblk.parse),
    NvLinkErrors: _parsed("nvlink-e", nvlink_errors.parse),
    Components: component_versions,
    HostState: _parsed("host-state", host_state.parse_state),
    Filesystems: filesystems,
    Clock: _parsed("timedatectl", host_state.parse_clock),
    Processes: _parsed("processes", host_state.parse_processes),
    AcsControls: _parsed("acs", host_state.parse_acs),
    BurnInResult: _parsed("burn-in", burnin.parse),
}
_EVIDENCE: Mapping[type, str] = {
    HostInfo: "os-release",
    GpuInventory: "nvml",
    DriverFault: "nvml",
    DriverModule: "driver-module",
    CudaToolkits: "cuda-version-files",
    Topology: "topo-m",
    P2pMatrix: "topo-p2p-r",
    NumaMap: "sysfs-numa",
    PciBus: "lspci",
    KernelLog: "kernel-log",
    Unit: "fabricmanager",
    EfaNics: "fi-info",
    EfaModule: "efa-module",
    RdmaDevices: "ibv-devinfo",
    RdmaCounters: "rdma-counters",
    BlockDevices: "lsblk",
    NvLinkErrors: "nvlink-e",
    Components: "efa-packages",
    HostState: "host-state",
    Filesystems: "df",
    Clock: "timedatectl",
    Processes: "processes",
    AcsControls: "acs",
    BurnInResult: "burn-in",
}
