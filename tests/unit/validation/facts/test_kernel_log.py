"""The kernel log: Xids in every shape, SXids apart, what has no number, and what means nothing."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import kernel_log
from validation.facts.host import KernelEvent


def event(line: str) -> KernelEvent:
    events = kernel_log.parse(line).events
    assert len(events) == 1, events
    return events[0]


SHAPES = (
    "NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:b3:00.0): 79, GPU has fallen off the bus.",
    "NVRM: Xid (0000:b3:00): 79, pid=1896",
    "NVRM: Xid (PCI:0000:b3:00): 79",
    "[  312.332145] NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=a, text",
    "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:B3:00): 79, pid=1",
    "Feb 23 16:24:18 host kernel: NVRM: Xid (PCI:0000:b3:00): 79, pid=1",
    "2025-02-23T16:24:18.123456+00:00 host kernel: [  312.3] NVRM: Xid (PCI:0000:b3:00): 79, pid=1",
    "<3>[  312.332145] NVRM: Xid (PCI:00000000:b3:00): 79",
    "NVRM: Xid (PCI:0000:b3:00 GPU-I:05): 79, pid=7, name=a",
    "NVRM: Xid (PCI:0000:b3:00 GPU-I:01 GPU-CI:02): 79, pid=7, name=a",
)


@pytest.mark.parametrize("line", SHAPES)
def test_an_xid_is_read_in_every_shape(line: str) -> None:
    found = event(line)
    assert (found.kind, found.code, found.pci_address) == ("xid", 79, "0000:b3:00.0")


@pytest.mark.parametrize("where", ["PCI:...", "0x0100", "PCI:0001:00"])
def test_an_xid_whose_device_cannot_be_read_keeps_its_number(where: str) -> None:
    found = event(f"NVRM: Xid ({where}): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x1 0x2)")
    assert (found.kind, found.code, found.pci_address, found.fatal) == ("xid", 145, None, False)


@pytest.mark.parametrize("code", [*range(1, 177), 999])
def test_every_number_is_read(code: int) -> None:
    assert event(f"NVRM: Xid (PCI:0000:66:00): {code}, pid=1, name=a, text").code == code
    assert event(f"NVRM: Xid (PCI:0000:66:00): {code}").code == code


def test_unit_and_link_of_an_nvlink_error_are_read_and_its_registers_are_none() -> None:
    far = event("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x8 0x1 0x0 0x0 0x4)")
    none = event("NVRM: Xid (PCI:0018:01:00): 149, NETIR  Fatal   XC0 i0 Link -1 (0x000fe406 0x0 0x0 0x0 0x0 0x0)")
    assert (far.detail, none.detail) == ("RLW_RXPIPE link 13", "NETIR link -1")
    assert event("NVRM: Xid (PCI:0018:01:00): 74, pid=1, name=a, NVLink: fatal error").detail is None


def test_a_removed_channel_names_the_xid_that_it_follows() -> None:
    found = event("NVRM: Xid (PCI:0000:66:00): 45, pid=9, name=python3, Ch 00000001 caused by previous Xid 149")
    assert (found.code, found.cause, found.process) == (45, 149, "python3")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
        "NVRM: Xid error: xyz, invalid data",
        "[ 1.0] Xid 79 in a comment",
    ],
)
def test_what_only_looks_like_an_xid_has_no_number(line: str) -> None:
    assert all(found.code is None for found in kernel_log.parse(line).events)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NVRM: Xid (PCI:0000:66:00): abc, pid=2280636", "xid"),
        ("NVRM: GPU3: Xid (PCI:0000:66:00) 79, GPU has fallen", "xid"),
        ("nvidia-nvswitch3: SXid (0000:c1:00.0) 12028, Fatal", "sxid"),
    ],
)
def test_a_numbered_error_whose_number_cannot_be_read_does_not_get_lost(line: str, kind: str) -> None:
    found = event(f"[   12.345678] {line}")
    assert (found.kind, found.code) == (kind, None)


def test_the_words_of_a_line_are_kept() -> None:
    fatal = event("NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x02)")
    nonfatal = event("NVRM: Xid (PCI:0008:01:00): 145, RLW_REMAP Nonfatal XC1 i0 Link 10")
    action = event("NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot)")
    named = event("NVRM: Xid (PCI:0000:0f:00): 94, pid='7', name=train.py, Ch 00000008")
    assert (fatal.fatal, nonfatal.fatal, action.fatal) == (True, False, None)
    assert action.action == "Node Reboot"
    assert named.process == "train.py"


def test_an_sxid_is_not_an_xid_and_its_details_are_not_counted() -> None:
    log = (
        "[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)\n"
        "[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Severity 0 Engine instance 46 Sub-engine instance 00\n"
        "[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Data {0x00140004, 0x00100000}\n"
        "[2.0] nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20001, Fatal, Link 30 TX Replay Error\n"
    )
    found = kernel_log.parse(log).events
    assert [(one.kind, one.code, one.fatal) for one in found] == [("sxid", 28006, False), ("sxid", 20001, True)]


@pytest.mark.parametrize(
    ("detail", "fatal"),
    [
        ("Data {0x000001c0, 0x00bd5c8a}", None),
        ("Severity 0 Engine instance 44 Sub-engine instance 00", False),
        ("Severity 1 Engine instance 44 Sub-engine instance 00", True),
    ],
)
def test_details_of_an_sxid_stand_for_it_where_its_own_line_is_lost(detail: str, fatal: bool | None) -> None:
    line = f"nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, {detail}"
    found = event(line)
    assert (found.kind, found.code, found.fatal) == ("sxid", 12028, fatal)
    other = "nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
    assert len(kernel_log.parse(f"{other}\n{line}\n").events) == 2


BROKEN_UP = [
    "NVRM: The NVIDIA GPU 0000:5d:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
]


@pytest.mark.parametrize("first", ["[14387.209961] ", "Mar 04 09:15:02 n kernel: ", "[Tue Mar  4 09:15:02 2025] ", ""])
@pytest.mark.parametrize("indented", [True, False])
def test_a_message_of_several_lines_is_one_and_names_its_gpu(first: str, indented: bool) -> None:
    rest = " " * len(first) if indented else first
    text = "\n".join([first + BROKEN_UP[0], *(rest + part for part in BROKEN_UP[1:])])
    found = event(text)
    assert (found.kind, found.pci_address, found.line) == ("fallen-off-bus", "0000:5d:00.0", 1)


def test_parts_of_a_message_end_at_the_next_message_and_at_its_end() -> None:
    opens = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
    text = opens + "NVRM: BAR{} is 0M @ 0x0 (PCI:0002:2{}:00.0)\n"
    found = kernel_log.parse(text.format(1, 1) + text.format(2, 2)).events
    assert [one.pci_address for one in found] == ["0002:21:00.0", "0002:22:00.0"]
    endless = "NVRM: The NVIDIA GPU 0000:5d:00.0\n" + "NVRM: and so on\n" * 30
    assert len(kernel_log.parse(endless + "NVRM: GPU 0000:5d:00.0: RmInitAdapter failed!\n").events) == 1


@pytest.mark.parametrize(
    ("line", "kind", "address"),
    [
        ("NVRM: The NVIDIA GPU 0000:0b:00.0 fell off the bus and is not responding", "fallen-off-bus", "0000:0b:00.0"),
        ("NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.", "fallen-off-bus", "0000:41:00.0"),
        ("NVRM: API mismatch: the client has the version 535.1, but", "api-mismatch", None),
        ("NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00", "gsp-timeout", "0000:9b:00.0"),
        (
            "mlx5_core 0000:9c:00.0: 252.0 Gb/s available PCIe bandwidth, limited by 32.0 GT/s",
            "pcie-limited",
            "0000:9c:00.0",
        ),
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", "aer", "0000:00:01.0"),
        ("Out of memory: Killed process 1234 (python3)", "oom", None),
        ("mlx5_core 0000:9c:00.1: mlx5_health_try_recover:338: recovery flow aborted", "nic-down", "0000:9c:00.1"),
        ("EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "read-only-fs", None),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s!", "soft-lockup", None),
        ("INFO: task python3:99 blocked for more than 120 seconds.", "hung-task", None),
        ("blk_update_request: I/O error, dev nvme1n1, sector 2048", "io-error", None),
        ("NVRM: failed to allocate a page at somewhere", "driver-unknown", None),
    ],
)
def test_a_line_that_means_something_is_named(line: str, kind: str, address: str | None) -> None:
    found = event(f"[   12.345678] {line}")
    assert (found.kind, found.pci_address) == (kind, address)


def test_an_uncorrected_pcie_error_is_told_from_a_corrected_one() -> None:
    grave = event("pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer")
    slight = event("pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer")
    assert (grave.fatal, slight.fatal) == (True, False)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "NVRM:      0    103  GSP_RM_ALLOC          0x0000000000002081 0x0000000000000004 0x0 0x0 y",
        "nvme nvme0: 32/0/0 default/read/poll queues",
        "nvme nvme1: Shutdown timeout set to 10 seconds",
        "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "Buffer I/O error on dev sr0, logical block 0, async page read",
        "efa 0000:4f:00.0: Setup irq:64 name:efa-mgmnt@pci:0000:4f:00.0",
        "systemd[1]: Started Session 1 of User root, error recovery is off",
    ],
)
def test_a_line_that_means_nothing_is_passed_over(line: str) -> None:
    assert kernel_log.parse(f"[    1.000000] {line}").events == ()


@pytest.mark.parametrize(
    "text", ["", "\n\n", "-- No entries --\n", "dmesg: read kernel buffer failed: Operation not permitted\n"]
)
def test_a_log_without_a_line_was_not_looked_at(text: str) -> None:
    with pytest.raises(ParseError):
        kernel_log.parse(text)


def test_lines_are_counted_and_numbered() -> None:
    log = kernel_log.parse("a\n\nb\nNVRM: Xid (PCI:0000:3f:00): 46\n")
    assert log.lines == 3
    with pytest.raises(ParseError, match="kernel's clock"):
        kernel_log.parse("bash: dmesg: command not found\n")
    assert log.events[0].line == 4


@pytest.mark.parametrize(
    "text",
    [
        "[    0.000000] Linux version 6.8.0\n[    1.0] x\n",
        "[    0.000000] microcode: microcode updated early\n",
        "<6>[    0.000000] Booting Linux on physical CPU 0x0000000000\n",
        "-- Journal begins at Mon. --\nNov 30 12:00:01 n kernel: x\nNov 30 12:00:01 n kernel: Linux version 6.8\n",
    ],
)
def test_a_log_that_begins_at_boot_is_known_by_its_first_lines(text: str) -> None:
    assert kernel_log.parse_whole(text).from_boot


@pytest.mark.parametrize(
    "text",
    [
        "[  901.100000] audit: late\n[    0.000000] x\n",
        "[    0.400000] x\n",
        "Nov 30 12:00:01 node kernel: audit\n",
        "Nov 30 12:00:01 n kernel: x\n" * 20 + "Nov 30 12:00:01 n kernel: Linux version 6.8.0\n",
    ],
)
def test_a_log_that_has_lost_its_beginning_is_known_too(text: str) -> None:
    assert not kernel_log.parse_whole(text).from_boot
