"""The driver: rows for pass, fail and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.driver import DriverLoaded, DriverVersion, LibraryMatch
from validation.facts.gpu import DriverFault, GpuInventory
from validation.facts.host import DriverModule, KernelEvent
from validation.facts.missing import Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


def broken(kind: str, text: str) -> Callable[[Host], Host]:
    return lambda h: h.drop(GpuInventory, "NVML cannot be used", "nvml").put(DriverFault("nvml", kind, text))


def pinned(h: Host, driver: str) -> Host:
    return h.expecting(software=h.expected.software.model_copy(update={"name": "mine", "driver": driver}))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (DriverLoaded, "p5.48xlarge", lambda h: h, ["PASS host: driver 580.105.08 answers for 8 GPUs"]),
    (
        DriverLoaded,
        "p5.48xlarge",
        broken("library-mismatch", MISMATCH),
        [f"FAIL host: kernel module and user-space library have different versions: {MISMATCH}"],
    ),
    (
        DriverLoaded,
        "p5.48xlarge",
        broken("not-loaded", "Driver Not Loaded"),
        ["FAIL host: the kernel module is not loaded: Driver Not Loaded"],
    ),
    (
        DriverLoaded,
        "p5.48xlarge",
        broken("no-devices", "No devices were found"),
        ["FAIL host: the driver finds no GPU: No devices were found"],
    ),
    (
        DriverLoaded,
        "p5.48xlarge",
        broken("fabric-not-ready", "CUDA error 802"),
        ["FAIL host: CUDA cannot start: the NVLink fabric is not initialised (error 802): CUDA error 802"],
    ),
    (
        DriverLoaded,
        "p5.48xlarge",
        broken("no-matrix", "Failed to display"),
        ["UNKNOWN host: nvidia-smi could not ask about every pair, as where a GPU is lost: Failed to display"],
    ),
    (DriverLoaded, "p5.48xlarge", broken("new-kind", "words"), ["FAIL host: new-kind: words"]),
    (
        DriverLoaded,
        "p5.48xlarge",
        lambda h: h.drop(GpuInventory, "nvidia-smi -q -x: not found"),
        ["UNKNOWN host: could not look: nvidia-smi -q -x: not found"],
    ),
    (
        DriverLoaded,
        "p5.48xlarge",
        lambda h: h.driver(driver_version=Missing(Reason.ABSENT)),
        ["UNKNOWN host: driver version: absent"],
    ),
    (DriverVersion, "p5.48xlarge", lambda h: h, ["PASS host: driver 580.105.08, no version is pinned"]),
    (DriverVersion, "p5.48xlarge", lambda h: pinned(h, "580.105.08"), ["PASS host: driver 580.105.08, as pinned"]),
    (DriverVersion, "p5.48xlarge", lambda h: pinned(h, "580"), ["PASS host: driver 580.105.08, as pinned"]),
    (
        DriverVersion,
        "p5.48xlarge",
        lambda h: pinned(h, "580.10"),
        ["FAIL host: driver 580.105.08 runs, 580.10 is pinned"],
    ),
    (
        DriverVersion,
        "p5.48xlarge",
        lambda h: pinned(h, "570.148.08"),
        ["FAIL host: driver 580.105.08 runs, 570.148.08 is pinned"],
    ),
    (
        DriverVersion,
        "p5.48xlarge",
        lambda h: h.driver(driver_version="520.61.05"),
        ["WARN host: driver 520.61.05 is older than the first one known to run this board"],
    ),
    (
        DriverVersion,
        "p5.48xlarge",
        lambda h: h.driver(driver_version="580.beta"),
        ["UNKNOWN host: driver version '580.beta' is not one to compare"],
    ),
    (
        DriverVersion,
        "p5.48xlarge",
        lambda h: h.driver(driver_version=Missing(Reason.NOT_APPLICABLE, "N/A")),
        ["UNKNOWN host: driver version: not applicable (N/A)"],
    ),
    (DriverVersion, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (LibraryMatch, "p5.48xlarge", lambda h: h, ["PASS host: kernel module and library are both 580.105.08"]),
    (
        LibraryMatch,
        "p5.48xlarge",
        lambda h: h.put(DriverModule("580.95.05", True)),
        ["FAIL host: kernel module 580.95.05, library 580.105.08"],
    ),
    (
        LibraryMatch,
        "p5.48xlarge",
        broken("library-mismatch", MISMATCH),
        [f"FAIL host: {MISMATCH} (loaded kernel module: 580.105.08)"],
    ),
    (
        LibraryMatch,
        "p5.48xlarge",
        lambda h: broken("library-mismatch", MISMATCH)(h.drop(DriverModule)),
        [f"FAIL host: {MISMATCH} (loaded kernel module: unknown)"],
    ),
    (
        LibraryMatch,
        "p5.48xlarge",
        lambda h: h.log(KernelEvent("api-mismatch", 7, "NVRM: API mismatch")),
        [
            (
                "WARN host: the kernel log has an API mismatch since boot, although both are 580.105.08 "
                "now: NVRM: API mismatch"
            )
        ],
    ),
    (
        LibraryMatch,
        "p5.48xlarge",
        lambda h: h.driver(driver_version=Missing(Reason.ABSENT)),
        ["UNKNOWN host: driver version of the library: absent"],
    ),
    (
        LibraryMatch,
        "p5.48xlarge",
        lambda h: h.drop(DriverModule, "/proc/driver/nvidia/version: not found"),
        ["UNKNOWN host: could not look: /proc/driver/nvidia/version: not found"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_driver(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
