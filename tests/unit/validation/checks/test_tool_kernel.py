"""The rest of the kernel log: rows for every verdict, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.tool_kernel import KernelEvents, PcieLimited
from validation.facts.host import KernelEvent, KernelLog

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


EMPTY = ["UNKNOWN host: the kernel log is empty: nothing was looked at"]
GONE = ["UNKNOWN host: could not look: tool: not found"]
NIC = "0000:4f:00.0"


def event(kind: str, text: str, *, fatal: bool | None = None, code: int | None = None) -> KernelEvent:
    return KernelEvent(kind, 9, text, code, NIC, fatal)


def log(*events: KernelEvent) -> Callable[[Host], Host]:
    return lambda h: h.log(*events)


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
        [f"WARN {NIC}: corrected PCIe errors, 2 times (kernel log line 9): AER: Corrected error"],
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
    (PcieLimited, "p5.48xlarge", lambda h: h.put(KernelLog((), 0)), EMPTY),
    (PcieLimited, "p5.48xlarge", lambda h: h.drop(KernelLog), GONE),
    (KernelEvents, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
    (PcieLimited, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_tool_kernel(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
