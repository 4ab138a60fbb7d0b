"""The rest of the kernel log: rows for every verdict, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.tool_kernel import _GRAVE, _MEANINGS, _SLIGHT, KernelEvents, PcieLimited
from validation.facts.gpu import GpuInventory
from validation.facts.host import KernelEvent, KernelLog
from validation.facts.kernel_kinds import names

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


EMPTY = ["UNKNOWN host: the kernel log is empty: nothing was looked at"]
GONE = ["UNKNOWN host: could not look: tool: not found"]
NIC = "0000:4f:00.0"


def event(
    kind: str, text: str, *, fatal: bool | None = None, code: int | None = None, cured: str | None = None
) -> KernelEvent:
    return KernelEvent(kind, 9, text, code, NIC, fatal, cured=cured)


GPU0 = "0000:53:00.0"  # of the healthy p5.48xlarge, whose driver answers
REBOOTED = "the host has been started again since"


def at(kind: str, text: str, address: str | None, **more: Any) -> KernelEvent:
    return KernelEvent(kind, 9, text, pci_address=address, **more)


def alone(*events: KernelEvent) -> Callable[[Host], Host]:
    """A log without the inventory: what is known of a host whose driver does not answer."""
    return lambda h: h.log(*events).drop(GpuInventory)


def limited(device: str, lanes: int = 8, driver: str = "mlx5_core", could: str = "32.0") -> KernelEvent:
    text = (
        f"{driver} {device}: 126.024 Gb/s available PCIe bandwidth, limited by {could} GT/s PCIe x{lanes} link at "
        f"0000:4e:01.0 (capable of 504.112 Gb/s with {could} GT/s PCIe x16 link)"
    )
    return at("pcie-limited", text, device)


FULL = at("pcie-full", "mlx5_core 0000:18:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)", None)


def log(*events: KernelEvent) -> Callable[[Host], Host]:
    return lambda h: h.log(*events)


SLIGHT = "PCIe errors that were corrected, or that no line calls grave"
WRAPPED = ["UNKNOWN host: could not look: the kernel log no longer begins at boot, so what was said first is lost"]
ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (
        KernelEvents,
        "p5.48xlarge",
        lambda h: h,
        ["PASS host: no other message of concern in 900 lines of the kernel log"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(event("read-only-fs", "Remounting filesystem read-only")),
        [f"FAIL {NIC}: a filesystem went read-only after errors (kernel log line 9): Remounting filesystem read-only"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(event("aer", "AER: Corrected error"), event("aer", "AER: Corrected error")),
        [f"WARN {NIC}: {SLIGHT}, 2 lines (kernel log line 9): AER: Corrected error"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(event("aer", "AER: Uncorrected", fatal=True)),
        [f"FAIL {NIC}: an uncorrected PCIe error (kernel log line 9): AER: Uncorrected"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(event("gsp-timeout", "waiting for RPC"), event("xid", "Xid", code=119)),
        ["PASS host: no other message of concern in 900 lines of the kernel log"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(event("soft-lockup", "soft lockup"), event("hung-task", "blocked for more than 120 seconds")),
        [
            f"FAIL {NIC}: a CPU was stuck (kernel log line 9): soft lockup",
            f"WARN {NIC}: a task waited for minutes (kernel log line 9): blocked for more than 120 seconds",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(event("read-only-fs", "went read-only", cured=REBOOTED), event("oom", "killed", cured=REBOOTED)),
        [
            f"WARN {NIC}: a filesystem went read-only after errors (kernel log line 9): went read-only; {REBOOTED}",
            f"WARN {NIC}: a process was killed for want of memory (kernel log line 9): killed; {REBOOTED}",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("io-error", "nvme nvme2: timeout", None, device="nvme2"), at("io-error", "x", None, device="sda")),
        [
            "FAIL nvme2: a disk failed to read or write (kernel log line 9): nvme nvme2: timeout",
            "FAIL sda: a disk failed to read or write (kernel log line 9): x",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        alone(at("gpu-init", "RmInitAdapter failed!", GPU0)),
        [f"FAIL {GPU0}: the driver could not start a GPU (kernel log line 9): RmInitAdapter failed!"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("gpu-init", "RmInitAdapter failed!", GPU0), at("gpu-init", "failed", "0000:01:00.0")),
        [
            (
                f"WARN {GPU0}: the driver could not start a GPU (kernel log line 9): RmInitAdapter failed!; "
                "the driver answers now"
            ),
            "FAIL 0000:01:00.0: the driver could not start a GPU (kernel log line 9): failed",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("api-mismatch", "API mismatch", None)),
        [
            (
                "WARN host: a program's driver library has another version than the kernel module (kernel log line 9): "
                "API mismatch; the driver answers now"
            ),
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        alone(at("fallen-off-bus", "off", GPU0), at("gpu-probe", "probe routine failed", None)),
        ["PASS host: no other message of concern in 900 lines of the kernel log"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        alone(at("gpu-probe", "probe routine failed", None)),
        ["FAIL host: the driver could not start a GPU (kernel log line 9): probe routine failed"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        alone(at("module-rejected", "refused", None, fatal=True), at("module-rejected", "rejected", None, fatal=False)),
        [
            "FAIL host: the kernel refused the NVIDIA driver for its signature (kernel log line 9): refused",
            (
                "WARN host: the kernel refused a module for its signature, and does not say which (kernel log line 9): "
                "rejected"
            ),
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("machine-check", "UE", None, fatal=True, device="MC0"), at("machine-check", "CE", None, fatal=False)),
        [
            "FAIL MC0: an error of memory or CPU that the hardware could not correct (kernel log line 9): UE",
            "WARN host: the hardware corrected errors (kernel log line 9): CE",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((), 900, unlisted=("nvme nvme1: odd", "efa 0: odd", "NVRM: odd", "NVRM: new"))),
        [
            (
                "PASS host: no other message of concern in 900 lines of the kernel log; 4 kinds of driver lines on no "
                "list: 'nvme nvme1: odd'; 'efa 0: odd'; 'NVRM: odd'; and 1 more"
            ),
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((event("oom", "Killed process 9"),), 900, unlisted=("NVRM: odd",))),
        [
            f"WARN {NIC}: a process was killed for want of memory (kernel log line 9): Killed process 9",
            "PASS host: 1 kind of driver lines on no list: 'NVRM: odd'",
        ],
    ),
    (KernelEvents, "p5.48xlarge", lambda h: h.put(KernelLog((), 0)), EMPTY),
    (KernelEvents, "p5.48xlarge", lambda h: h.drop(KernelLog), GONE),
    (
        PcieLimited,
        "p5.48xlarge",
        lambda h: h,
        ["PASS host: no network card below its PCIe width in 900 lines of the kernel log"],
    ),
    (
        PcieLimited,
        "p5.48xlarge",
        log(
            event(
                "pcie-limited",
                f"mlx5_core {NIC}: 126.024 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at "
                f"0000:4e:01.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)",
            )
        ),
        [f"FAIL {NIC}: mlx5_core trained at x8 at 16.0 GT/s of x16 at 16.0 GT/s (kernel log line 9)"],
    ),
    (
        PcieLimited,
        "p5.48xlarge",
        log(limited("0000:4f:00.0"), limited("0000:4f:00.1")),
        [
            "FAIL 0000:4f:00.0: mlx5_core trained at x8 at 32.0 GT/s of x16 at 32.0 GT/s (kernel log line 9)",
            "FAIL 0000:4f:00.1: mlx5_core trained at x8 at 32.0 GT/s of x16 at 32.0 GT/s (kernel log line 9)",
        ],
    ),
    (
        PcieLimited,
        "p5.48xlarge",
        log(limited("0000:4f:00.0"), limited("0000:5f:00.0")),
        [
            (
                "WARN 0000:4f:00.0: runs at x8 at 32.0 GT/s of x16 at 32.0 GT/s; "
                "by design where every device of its kind does"
            ),
            (
                "WARN 0000:5f:00.0: runs at x8 at 32.0 GT/s of x16 at 32.0 GT/s; "
                "by design where every device of its kind does"
            ),
        ],
    ),
    (
        PcieLimited,
        "p5.48xlarge",
        log(limited("0000:4f:00.0"), limited("0000:5f:00.0"), FULL),
        [
            "FAIL 0000:4f:00.0: mlx5_core trained at x8 at 32.0 GT/s of x16 at 32.0 GT/s (kernel log line 9)",
            "FAIL 0000:5f:00.0: mlx5_core trained at x8 at 32.0 GT/s of x16 at 32.0 GT/s (kernel log line 9)",
        ],
    ),
    (PcieLimited, "p5.48xlarge", lambda h: h.put(KernelLog((), 0)), EMPTY),
    (PcieLimited, "p5.48xlarge", lambda h: h.drop(KernelLog), GONE),
    (KernelEvents, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
    (PcieLimited, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
]


PROBE = "nvidia: probe of 0000:99:00.0 failed with error -1"
BOUND = "NVRM: GPU 0000:99:00.0 is already bound to vfio-pci."
STARTED = "the driver could not start a GPU"
LIMITED = "mlx5_core: available PCIe bandwidth, limited by"
CONFLICT = "the NVIDIA driver did not take a GPU: another driver holds it, or this driver does not support it"
ROWS += [
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("driver-conflict", BOUND, "0000:99:00.0")),
        [f"FAIL 0000:99:00.0: {CONFLICT} (kernel log line 9): {BOUND}"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        lambda h: h.log(at("gpu-init", "x", GPU0)).driver(lost=(GPU0,)),
        [f"FAIL {GPU0}: {STARTED} (kernel log line 9): x"],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("gpu-init", "x", GPU0), at("gpu-probe", PROBE, "0000:99:00.0")),
        [
            f"WARN {GPU0}: {STARTED} (kernel log line 9): x; the driver answers now",
            f"FAIL 0000:99:00.0: {STARTED} (kernel log line 9): {PROBE}",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        alone(at("driver-conflict", "x", None, cured=REBOOTED), at("gpu-probe", PROBE, "0000:99:00.0")),
        [
            f"WARN host: {CONFLICT} (kernel log line 9): x; {REBOOTED}",
            f"FAIL 0000:99:00.0: {STARTED} (kernel log line 9): {PROBE}",
        ],
    ),
    (
        KernelEvents,
        "p5.48xlarge",
        log(at("gsp-timeout", "x", NIC, host="a"), event("xid", "y", code=119)),
        [f"FAIL {NIC}: the GPU's system processor does not answer (kernel log line 9 of a): x"],
    ),
    (
        PcieLimited,
        "p5.48xlarge",
        log(at("pcie-limited", LIMITED, NIC)),
        [f"WARN {NIC}: a link below its capability, in words that cannot be read: {LIMITED}"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_tool_kernel(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


def test_every_kind_of_line_has_a_meaning_or_a_check_of_its_own() -> None:
    told_elsewhere = {"fallen-off-bus", "pcie-limited", "pcie-full"}
    assert set(names()) | {"driver-unknown", "bar-unassigned"} == {*_MEANINGS, *_SLIGHT, *_GRAVE} | told_elsewhere
