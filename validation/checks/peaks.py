"""The physical limits of boards: a result above them is no measurement, whatever the tool that printed it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """The physical limits of a board by the product name it prints: GB/s of memory, dense FP16 TFLOPS, NVLink GB/s."""

    name: str
    memory_gbps: float
    fp16_tflops: float
    nvlink_gbps: float


# Data-sheet peaks, collected 2026-08; NVLink: links times the rate one of them prints, one direction.
PEAKS = (
    Peak("A100-SXM4-40GB", 1555, 312, 12 * 25),
    Peak("A100-SXM4-80GB", 2039, 312, 12 * 25),
    Peak("A800-SXM4-80GB", 2039, 312, 8 * 25),
    Peak("H100 80GB HBM3", 3350, 989, 18 * 26.562),
    Peak("H800", 3350, 989, 8 * 26.562),
    Peak("H200", 4800, 989, 18 * 26.562),
    Peak("B200", 8000, 2250, 18 * 53.125),
    Peak("V100-SXM2-16GB", 900, 125, 6 * 25.781),
    Peak("V100-SXM2-32GB", 900, 125, 6 * 25.781),
    Peak("L40S", 864, 362, 0),
    Peak("L4", 300, 121, 0),
    Peak("T4", 320, 65, 0),
)
# What no board reaches that was announced by 2026-08 (Rubin: NVLink 6 and HBM4, one direction), for other boards.
ANY_NVLINK_GBPS = 1800.0
ANY_MEMORY_GBPS = 22_000.0
ANY_FP16_TFLOPS = 10_000.0
# A board may clock higher than its data sheet reckons with: H100's 989 TFLOPS are those of 132 x 4096 operations at
# 1830 MHz, and nvidia-smi -q -x of one prints 1980 as its highest (capture of 2026-08), 8 % more.
CLOCKED = 1.1
# One direction: 32 GT/s x 16 / 8 x 128/130 (Gen5), and NVLink-C2C of Grace (GH200: 900 both) and of Vera (1800 both).
PCIE_GEN5_GBPS = 63.0
C2C_GBPS = 450.0
ANY_HOST_GBPS = 900.0


def peak_of(name: str) -> Peak | None:
    """The limits of exactly this board: NVIDIA L4 is neither an L40S nor the vGPU profile L4-3Q."""
    bare = name.removeprefix("NVIDIA ").removeprefix("Tesla ")
    return next((peak for peak in PEAKS if peak.name == bare), None)


def peak_of_all(names: Iterable[str]) -> Peak | None:
    """The limits of the one board that all of them are; None where there are several kinds, none, or one not known."""
    boards = set(names)
    return peak_of(boards.pop()) if len(boards) == 1 else None


def host_link_gbps(names: Iterable[str]) -> float:
    """What the link between CPU and GPU can carry in one direction, at most, for boards of these names.

    A board that is not known may share its memory with the CPU (GB10, Jetson), or be newer than this table.
    """
    boards = list(names)
    if boards and all(peak_of(name) for name in boards):
        return PCIE_GEN5_GBPS
    graces = all(any(part in name for part in ("GH200", "GB200", "GB300")) for name in boards)
    return C2C_GBPS if boards and graces else ANY_HOST_GBPS
