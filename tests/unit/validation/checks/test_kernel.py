"""The kernel log: rows for pass, fail and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.kernel import FallenOffBus, KernelSxid, KernelXid
from validation.checks.xid import sxids, xids
from validation.facts.gpu import GpuInventory
from validation.facts.host import KernelEvent, KernelLog
from validation.verdict import FaultClass, Verdict

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


GPU3 = "0000:86:00.0"


def xid(code: int, line: int = 40, address: str | None = GPU3, **more: Any) -> KernelEvent:
    return KernelEvent("xid", line, f"NVRM: Xid (PCI:0000:86:00): {code}", code, address, **more)


def sxid(code: int, *, fatal: bool | None = None) -> KernelEvent:
    return KernelEvent("sxid", 12, f"SXid (PCI:0000:cb:00.0): {code}", code, "0000:cb:00.0", fatal)


def log(*events: KernelEvent) -> Callable[[Host], Host]:
    return lambda h: h.log(*events)


def off_bus(address: str | None) -> KernelEvent:
    return KernelEvent("fallen-off-bus", 5, "NVRM: GPU has fallen off the bus.", None, address)


REBOOTED = "the host has been started again since"
NOTHING = "in 900 lines of the kernel log"
WRAPPED = ["UNKNOWN host: could not look: the kernel log no longer begins at boot, so what was said first is lost"]
ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (KernelXid, "p5.48xlarge", lambda h: h, [f"PASS host: no Xid of concern {NOTHING}"]),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(79)),
        ["FAIL GPU3: Xid 79: GPU no longer answers on PCIe (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(KernelEvent("xid", 40, "NVRM: Xid (PCI:0000:86:00): abc", None, GPU3)),
        ["UNKNOWN host: an error whose number cannot be read (log line 40): NVRM: Xid (PCI:0000:86:00): abc"],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        log(KernelEvent("sxid", 12, "SXid (PCI:0000:cb:00.0) ?")),
        ["UNKNOWN host: an error whose number cannot be read (log line 12): SXid (PCI:0000:cb:00.0) ?"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        lambda h: log(xid(79))(h.drop(GpuInventory)),
        ["FAIL 0000:86:00.0: Xid 79: GPU no longer answers on PCIe (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(48, address=None)),
        ["FAIL host: Xid 48: uncorrectable (double-bit) ECC error (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(13, process="python"), xid(13, 41), xid(45, 42)),
        [
            (
                "WARN GPU3: Xid 13, 2 times, from python: graphics engine exception, normally caused by a program "
                "(log line 40)"
            )
        ],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(45)),
        ["WARN GPU3: Xid 45: channel removed: a process was killed, or it follows an earlier Xid (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(63)),
        ["WARN GPU3: Xid 63: a row remap or page retirement was recorded (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(145, fatal=True)),
        ["FAIL GPU3: Xid 145: NVLink5 RLW units; Fatal (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(145, fatal=False)),
        ["WARN GPU3: Xid 145: NVLink5 RLW units; Nonfatal (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(145)),
        ["FAIL GPU3: Xid 145: NVLink5 RLW units (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(*(xid(145, fatal=False, detail=f"RLW link {link}") for link in (3, 3, 9))),
        ["WARN GPU3: Xid 145, 3 times: NVLink5 RLW units; Nonfatal (RLW link 3, RLW link 9) (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(45, cause=149), xid(45, 41, cause=149)),
        [
            (
                "FAIL GPU3: Xid 45, 2 times: channel removed after Xid 149, which is not in this log: NVLink5 NETIR "
                "(log line 40)"
            )
        ],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(149, fatal=False), xid(45, 41, cause=149)),
        ["WARN GPU3: Xid 149: NVLink5 NETIR; Nonfatal (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(45, cause=13)),
        [
            (
                "WARN GPU3: Xid 45: channel removed after Xid 13, which is not in this log: graphics engine exception, "
                "normally caused by a program (log line 40)"
            )
        ],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(154, action="GPU Reset Required"), xid(154, 44, action="Node Reboot Required")),
        ["FAIL GPU3: Xid 154: the driver asks for: Node Reboot Required (log line 44)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(154, action="GPU Reset Required"), xid(154, 44, action="None")),
        [f"PASS host: no Xid of concern {NOTHING}"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(79, cured=REBOOTED), xid(13, 41, cured=REBOOTED)),
        [
            f"WARN GPU3: Xid 79: GPU no longer answers on PCIe (log line 40); {REBOOTED}",
            "WARN GPU3: Xid 13: graphics engine exception, normally caused by a program (log line 41); " + REBOOTED,
        ],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(79, cured=REBOOTED), xid(79, 41)),
        [
            f"WARN GPU3: Xid 79: GPU no longer answers on PCIe (log line 40); {REBOOTED}",
            "FAIL GPU3: Xid 79: GPU no longer answers on PCIe (log line 41)",
        ],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        log(KernelEvent("sxid", 12, "x", 11001, "0000:cb:00.0", fatal=True, cured=REBOOTED)),
        [f"WARN 0000:cb:00.0: SXid 11001: ingress invalid command; Fatal (log line 12); {REBOOTED}"],
    ),
    (
        FallenOffBus,
        "p5.48xlarge",
        log(KernelEvent("fallen-off-bus", 5, "off", None, GPU3, cured=REBOOTED)),
        [f"WARN GPU3: fell off the bus (log line 5): off; {REBOOTED}"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(147, fatal=True)),
        ["FAIL GPU3: Xid 147: NVLink5 TREX unit; Fatal (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(154, action="GPU Reset Required")),
        ["FAIL GPU3: Xid 154: the driver asks for: GPU Reset Required (log line 40)"],
    ),
    (KernelXid, "p5.48xlarge", log(xid(154, action="None")), [f"PASS host: no Xid of concern {NOTHING}"]),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(154)),
        ["FAIL GPU3: Xid 154: the recovery action changed, to what cannot be read (log line 40)"],
    ),
    (KernelXid, "p5.48xlarge", log(xid(106), xid(162)), [f"PASS host: no Xid of concern {NOTHING}"]),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(999)),
        ["WARN GPU3: Xid 999: a number that is not in the table; see NVIDIA's catalog (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((), 0)),
        ["UNKNOWN host: the kernel log is empty: nothing was looked at"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        lambda h: h.drop(KernelLog, "dmesg: permission denied"),
        ["UNKNOWN host: could not look: dmesg: permission denied"],
    ),
    (KernelSxid, "p5.48xlarge", lambda h: h, [f"PASS host: no SXid of concern {NOTHING}"]),
    (
        KernelSxid,
        "p5.48xlarge",
        log(sxid(11001, fatal=True)),
        ["FAIL 0000:cb:00.0: SXid 11001: ingress invalid command; Fatal (log line 12)"],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        log(sxid(11001, fatal=False)),
        ["WARN 0000:cb:00.0: SXid 11001: ingress invalid command; Non-fatal (log line 12)"],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        log(sxid(11012, fatal=True)),
        ["FAIL 0000:cb:00.0: SXid 11012: single-bit ECC error, corrected by the switch; Fatal (log line 12)"],
    ),
    (KernelSxid, "p5.48xlarge", log(sxid(11012, fatal=False)), [f"PASS host: no SXid of concern {NOTHING}"]),
    (
        KernelSxid,
        "p5.48xlarge",
        log(sxid(99999)),
        ["WARN 0000:cb:00.0: SXid 99999: a number that is not in the table (log line 12)"],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        log(sxid(99999, fatal=True)),
        ["FAIL 0000:cb:00.0: SXid 99999: not in the table; Fatal (log line 12)"],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((), 0)),
        ["UNKNOWN host: the kernel log is empty: nothing was looked at"],
    ),
    (KernelSxid, "p5.48xlarge", lambda h: h.drop(KernelLog), ["UNKNOWN host: could not look: tool: not found"]),
    (FallenOffBus, "p5.48xlarge", lambda h: h, [f"PASS host: no GPU off the bus {NOTHING}"]),
    (
        FallenOffBus,
        "p5.48xlarge",
        log(off_bus(GPU3)),
        ["FAIL GPU3: fell off the bus (log line 5): NVRM: GPU has fallen off the bus."],
    ),
    (
        FallenOffBus,
        "p5.48xlarge",
        log(off_bus(None)),
        ["FAIL host: fell off the bus (log line 5): NVRM: GPU has fallen off the bus."],
    ),
    (
        FallenOffBus,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((), 0)),
        ["UNKNOWN host: the kernel log is empty: nothing was looked at"],
    ),
    (FallenOffBus, "p5.48xlarge", lambda h: h.drop(KernelLog), ["UNKNOWN host: could not look: tool: not found"]),
    (KernelXid, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
    (KernelSxid, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
    (FallenOffBus, "p5.48xlarge", lambda h: h.put(KernelLog((), 900, from_boot=False)), WRAPPED),
    (
        KernelXid,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((xid(79),), 900, from_boot=False)),
        [*WRAPPED, "FAIL GPU3: Xid 79: GPU no longer answers on PCIe (log line 40)"],
    ),
    (
        KernelSxid,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((sxid(11001, fatal=True),), 900, from_boot=False)),
        [*WRAPPED, "FAIL 0000:cb:00.0: SXid 11001: ingress invalid command; Fatal (log line 12)"],
    ),
    (
        FallenOffBus,
        "p5.48xlarge",
        lambda h: h.put(KernelLog((off_bus(GPU3),), 900, from_boot=False)),
        [*WRAPPED, "FAIL GPU3: fell off the bus (log line 5): NVRM: GPU has fallen off the bus."],
    ),
]


def action(word: str, host: str) -> KernelEvent:
    return xid(154, action=word, host=host)


ROWS += [
    (
        KernelXid,
        "p5.48xlarge",
        log(action("Node Reboot Required", "a"), action("None", "b")),
        ["FAIL GPU3: Xid 154: the driver asks for: Node Reboot Required (log line 40 of a)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(45, host="a"), xid(31, host="b")),
        [
            "WARN GPU3: Xid 45: channel removed: a process was killed, or it follows an earlier Xid (log line 40 of a)",
            "WARN GPU3: Xid 31: GPU memory page fault, normally caused by a program (log line 40 of b)",
        ],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(79, times=3)),
        ["FAIL GPU3: Xid 79, 3 times: GPU no longer answers on PCIe (log line 40)"],
    ),
    (
        KernelXid,
        "p5.48xlarge",
        log(xid(14)),
        ["WARN GPU3: Xid 14: the line ends with this number, and may have been cut within it (log line 40)"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_kernel_log(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


@pytest.mark.parametrize(
    ("code", "effect", "fault_class"),
    [
        (13, Verdict.WARN, FaultClass.SOFTWARE),
        (31, Verdict.WARN, FaultClass.SOFTWARE),
        (43, Verdict.WARN, FaultClass.SOFTWARE),
        (48, Verdict.FAIL, FaultClass.REBOOT_ONCE),
        (63, Verdict.WARN, FaultClass.REBOOT_ONCE),
        (64, Verdict.FAIL, FaultClass.REPLACE_NOW),
        (74, Verdict.FAIL, FaultClass.REBOOT_ONCE),
        (79, Verdict.FAIL, FaultClass.REPLACE_NOW),
        (94, Verdict.FAIL, FaultClass.REBOOT_ONCE),
        (95, Verdict.FAIL, FaultClass.REBOOT_ONCE),
        (119, Verdict.FAIL, FaultClass.REBOOT_ONCE),
        (120, Verdict.FAIL, FaultClass.REBOOT_ONCE),
    ],
)
def test_the_table_says_what_a_number_means_for_a_fresh_host(
    code: int, effect: Verdict, fault_class: FaultClass
) -> None:
    assert (xids()[code].effect, xids()[code].fault_class) == (effect, fault_class)


def test_the_tables_hold_every_number_with_a_meaning_and_a_source() -> None:
    assert sorted(xids()) == list(range(1, 177))
    assert len(sxids()) == 262
    for row in (*xids().values(), *sxids().values()):
        assert row.meaning, row.code
        assert row.source, row.code
