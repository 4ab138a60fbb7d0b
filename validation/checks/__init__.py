"""The checks, in the one explicit list: one that is not in it does not exist. A test compares it with the modules."""

from __future__ import annotations

from validation.checks.base import Check
from validation.checks.burnin import BurnInCopy, BurnInGemm
from validation.checks.burnin_links import BurnInPcie
from validation.checks.burnin_speed import BurnInBandwidth, BurnInPeers, BurnInSpeed, BurnInThrottle
from validation.checks.compat import CudaDriver, GpuSupport
from validation.checks.components import ContainerToolkit, Dcgm, EfaInstaller, Nccl, OfiNccl
from validation.checks.containers import ContainerGpus
from validation.checks.counters import EccCorrected, NvlinkErrors, PcieReplays
from validation.checks.driver import DriverLoaded, DriverVersion, LibraryMatch
from validation.checks.efa_stack import EfaStack
from validation.checks.errors import EccUncorrected, RecoveryAction, RowRemap, Throttle
from validation.checks.fabric import FabricManager, FabricManagerVersion, FabricState
from validation.checks.host import EvidenceRoot, InstanceType
from validation.checks.host_state import ClockHeld, Dimms, DiskSpace, HostMemory, Nouveau, StuckProcesses
from validation.checks.kernel import FallenOffBus, KernelSxid, KernelXid
from validation.checks.known_units import KnownBadUnit
from validation.checks.limits import MaxClock, PowerLimit, Temperature
from validation.checks.links import NvlinkActive, NvlinkRate, PcieWidth
from validation.checks.machine import Architecture, Cpus, EfaDevices, InstanceStore, KernelRelease
from validation.checks.network import EfaAffinity, EfaCount, ErdmaDevices, PeerMemory
from validation.checks.pci import AcsOff, DeadFunctions, Iommu, PcieGeneration
from validation.checks.presence import GpuCount, GpuLost, GpuMemory, GpuName, GpuPciBus, GpuReadable
from validation.checks.rdma_counters import RdmaFlaps
from validation.checks.repairs import GpuRepair, Inforom
from validation.checks.settings import (
    EccMode,
    Firmware,
    Identity,
    Idle,
    Mig,
    Persistence,
    VgpuLicense,
)
from validation.checks.software import CudaToolkit, KernelModule
from validation.checks.tool_kernel import KernelEvents, PcieLimited
from validation.checks.topology import NumaAffinity, NumaNodes, P2pStatus, TopologyPairs

CHECKS: tuple[Check, ...] = (
    EvidenceRoot(),
    InstanceType(),
    Architecture(),
    KernelRelease(),
    ClockHeld(),
    StuckProcesses(),
    Cpus(),
    HostMemory(),
    Dimms(),
    DriverLoaded(),
    DriverVersion(),
    LibraryMatch(),
    Nouveau(),
    KernelModule(),
    CudaToolkit(),
    CudaDriver(),
    GpuSupport(),
    Nccl(),
    Dcgm(),
    ContainerToolkit(),
    ContainerGpus(),
    GpuCount(),
    GpuName(),
    GpuLost(),
    GpuReadable(),
    GpuPciBus(),
    GpuMemory(),
    Identity(),
    KnownBadUnit(),
    Firmware(),
    Mig(),
    Persistence(),
    VgpuLicense(),
    PowerLimit(),
    MaxClock(),
    Idle(),
    Temperature(),
    Throttle(),
    NvlinkActive(),
    NvlinkRate(),
    NvlinkErrors(),
    PcieWidth(),
    PcieGeneration(),
    PcieReplays(),
    DeadFunctions(),
    AcsOff(),
    Iommu(),
    TopologyPairs(),
    P2pStatus(),
    NumaNodes(),
    NumaAffinity(),
    FabricState(),
    FabricManager(),
    FabricManagerVersion(),
    KernelXid(),
    KernelSxid(),
    FallenOffBus(),
    PcieLimited(),
    KernelEvents(),
    EccMode(),
    EccUncorrected(),
    EccCorrected(),
    RowRemap(),
    GpuRepair(),
    Inforom(),
    RecoveryAction(),
    EfaCount(),
    EfaDevices(),
    EfaAffinity(),
    EfaInstaller(),
    OfiNccl(),
    EfaStack(),
    PeerMemory(),
    RdmaFlaps(),
    ErdmaDevices(),
    InstanceStore(),
    DiskSpace(),
    BurnInGemm(),
    BurnInCopy(),
    BurnInSpeed(),
    BurnInPeers(),
    BurnInBandwidth(),
    BurnInPcie(),
    BurnInThrottle(),
)
