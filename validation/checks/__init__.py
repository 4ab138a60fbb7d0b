"""The checks, in the one explicit list: one that is not in it does not exist. A test compares it with the modules."""

from __future__ import annotations

from validation.checks.base import Check
from validation.checks.burnin import BurnInCopy, BurnInGemm
from validation.checks.burnin_speed import BurnInBandwidth, BurnInPeers, BurnInSpeed, BurnInThrottle
from validation.checks.driver import DriverLoaded, DriverVersion, LibraryMatch
from validation.checks.errors import EccUncorrected, RecoveryAction, RowRemap, Throttle
from validation.checks.fabric import FabricManager, FabricState
from validation.checks.host import EvidenceRoot
from validation.checks.kernel import FallenOffBus, KernelSxid, KernelXid
from validation.checks.links import NvlinkActive, NvlinkRate, PcieWidth
from validation.checks.network import EfaCount
from validation.checks.presence import GpuCount, GpuLost, GpuMemory, GpuName, GpuPciBus
from validation.checks.software import CudaToolkit, KernelModule
from validation.checks.topology import NumaAffinity, NumaNodes, P2pStatus, TopologyPairs

CHECKS: tuple[Check, ...] = (
    EvidenceRoot(),
    DriverLoaded(),
    DriverVersion(),
    LibraryMatch(),
    KernelModule(),
    CudaToolkit(),
    GpuCount(),
    GpuName(),
    GpuLost(),
    GpuPciBus(),
    GpuMemory(),
    NvlinkActive(),
    NvlinkRate(),
    PcieWidth(),
    TopologyPairs(),
    P2pStatus(),
    NumaNodes(),
    NumaAffinity(),
    FabricState(),
    FabricManager(),
    KernelXid(),
    KernelSxid(),
    FallenOffBus(),
    EccUncorrected(),
    RowRemap(),
    RecoveryAction(),
    Throttle(),
    EfaCount(),
    BurnInGemm(),
    BurnInCopy(),
    BurnInSpeed(),
    BurnInPeers(),
    BurnInBandwidth(),
    BurnInThrottle(),
)
