"""What happened after a line: the host was started again, the driver loaded, room found, an error without harm."""

from __future__ import annotations

import pytest

from validation.facts import kernel_log
from validation.facts.host import KernelEvent
from validation.facts.kernel_after import RELOADED, RESTARTED


def dmesg(*said: str) -> str:
    return "".join(f"[{at:5d}.000000] {message}\n" for at, message in enumerate(said, start=10))


def journal(*said: str, host: str = "node-3") -> str:
    return "".join(f"Mar 04 09:{at:02d}:02 {host} kernel: {message}\n" for at, message in enumerate(said, start=10))


def events(text: str) -> list[KernelEvent]:
    return list(kernel_log.parse(text).events)


XID = "NVRM: Xid (PCI:0000:4c:00): 62, pid=12, name=a"
START = "Linux version 6.8.0-31-generic (buildd@x)"
CONFLICT = "NVRM: The NVIDIA probe routine was not called for 1 device(s)."
BRING_UP = ("nvidia-nvlink: Nvlink Core is being initialized, major device number 236", "x")
LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05"


def test_a_fault_before_the_last_start_of_its_host_has_been_followed_by_one() -> None:
    before, after = events(journal(XID, START, XID))
    assert (before.cured, after.cured) == (RESTARTED, None)


def test_a_mark_of_journalctl_is_a_start_too() -> None:
    text = journal(XID) + "-- Boot 0123456789abcdef0123456789abcdef --\n" + journal("x")
    assert [event.cured for event in events(text)] == [RESTARTED]


@pytest.mark.parametrize(
    "text",
    [
        journal(START, XID),
        journal(XID, host="a") + journal(START, "x", host="b"),
        dmesg(XID) + dmesg(START, "x"),
        journal(XID, "x"),
    ],
    ids=["the start came first", "another host started", "another log, perhaps of another host", "no start"],
)
def test_a_fault_is_not_cured_by_anything_else(text: str) -> None:
    assert [event.cured for event in events(text)] == [None]


def test_a_driver_that_did_not_get_its_gpu_and_is_loaded_later_has_it() -> None:
    assert [event.cured for event in events(dmesg(CONFLICT, *BRING_UP, LOADED))] == [RELOADED]


def test_a_driver_that_only_a_program_calls_loaded_cures_nothing() -> None:
    said = f"Mar 04 09:30:02 node-3 agent[8]: {BRING_UP[0]}\nMar 04 09:31:02 node-3 agent[8]: {LOADED}\n"
    assert [event.cured for event in events(journal(CONFLICT) + said)] == [None]


def test_what_came_after_is_told_by_time_where_the_newest_line_stands_first() -> None:
    again = CONFLICT.replace("1 dev", "2 dev")
    text = journal(CONFLICT, *BRING_UP, LOADED, again)
    newest_first = "".join(f"{line}\n" for line in reversed(text.splitlines()))
    assert [event.cured for event in events(newest_first)] == [None, RELOADED]


def test_a_probe_that_failed_is_past_once_the_driver_is_loaded_again() -> None:
    failed = "nvidia: probe of 0000:4c:00.0 failed with error -1"
    assert [event.cured for event in events(dmesg(failed, *BRING_UP, LOADED, failed))] == [RELOADED, None]


@pytest.mark.parametrize(
    "text",
    [
        dmesg(*BRING_UP, CONFLICT, LOADED),
        dmesg(CONFLICT, *BRING_UP),
        dmesg(CONFLICT, LOADED),
        dmesg(CONFLICT) + dmesg(START, *BRING_UP, LOADED),
        dmesg(CONFLICT, *BRING_UP, CONFLICT.replace("1 dev", "2 dev")),
        dmesg("x", "x", CONFLICT) + dmesg(*BRING_UP, LOADED),
    ],
    ids=[
        "the same load",
        "it did not come up",
        "no telling which load",
        "another log",
        "again",
        "a clock that ran back",
    ],
)
def test_the_load_that_failed_does_not_cure_itself(text: str) -> None:
    assert {event.cured for event in events(text)} == {None}


def test_a_gpu_off_the_bus_is_not_cured_by_a_driver() -> None:
    off = "NVRM: GPU 0000:4c:00.0: GPU has fallen off the bus."
    assert [event.cured for event in events(dmesg(off, *BRING_UP, LOADED))] == [None]


BAR_FORMS = (
    "pci 0000:4c:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]",
    "pci 0000:4c:00.0: BAR 1: failed to assign [mem size 0x2000000000 64bit pref]",
    "pci 0000:4c:00.0: BAR 1 [mem size 0x2000000000 64bit pref]: can't assign; no space",
    "pci 0000:4c:00.0: BAR 1 [mem size 0x2000000000 64bit pref]: failed to assign",
)


@pytest.mark.parametrize("line", BAR_FORMS)
def test_memory_of_a_device_that_found_no_room_is_told_once(line: str) -> None:
    (event,) = events(dmesg(line, line))
    assert (event.kind, event.pci_address, event.line) == ("bar-unassigned", "0000:4c:00.0", 1)


@pytest.mark.parametrize("line", BAR_FORMS)
@pytest.mark.parametrize(
    "given",
    [
        "pci 0000:4c:00.0: BAR 1: assigned [mem 0x2000000000-0x3fffffffff 64bit pref]",
        "pci 0000:4c:00.0: BAR 1 [mem 0x2000000000-0x3fffffffff 64bit pref]: assigned",
    ],
)
def test_memory_that_found_room_at_a_later_try_is_not_missing(line: str, given: str) -> None:
    assert events(dmesg(line, given)) == []


@pytest.mark.parametrize(
    "line",
    [
        "pci 0000:00:18.3: BAR 13: no space for [io  size 0x1000]",
        "pci 0000:4c:00.0: BAR 0: no space for [io  size 0x0080]",
        "pci 0000:4c:00.0: BAR 9: no space for [mem size 0x1000000000 64bit pref]",
        "pci 0000:00:10.0: BAR 14: failed to assign [mem size 0x0c000000]",
        "pci 0000:4c:00.0: BAR 1 [mem 0x2000000000-0x3fffffffff 64bit pref]",
    ],
)
def test_ports_windows_of_bridges_and_virtual_functions_are_none_of_a_devices_memory(line: str) -> None:
    assert events(dmesg(line)) == []


def aer(status: str, mask: str = "00000000") -> str:
    return dmesg(
        "pcieport 0000:40:01.1: AER: Uncorrected (Non-Fatal) error received: 0000:41:00.0",
        "pci 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)",
        f"pci 0000:41:00.0:   device [10de:2330] error status/mask={status}/{mask}",
    )


@pytest.mark.parametrize(
    ("status", "mask", "fatal"),
    [
        ("00100000", "00000000", False),
        ("00108000", "00008000", False),
        ("00104000", "00000000", True),
        ("00004000", "00000000", True),
    ],
    ids=["unsupported request", "the rest is masked", "and a completion that timed out", "that alone"],
)
def test_a_request_that_a_function_does_not_support_harms_nothing(status: str, mask: str, fatal: bool) -> None:
    assert [event.fatal for event in events(aer(status, mask))] == [fatal, fatal]


def test_room_on_one_host_is_none_on_another() -> None:
    text = journal(BAR_FORMS[0], host="a") + journal("pci 0000:4c:00.0: BAR 1: assigned [mem 0x20-0x3f]", host="b")
    assert [(event.kind, event.host) for event in events(text)] == [("bar-unassigned", "a")]


def test_a_grave_error_of_a_neighbour_is_not_excused_by_an_unsupported_request() -> None:
    grave = "nvidia 0000:9b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
    text = f"[    9.000000] {grave}\n" + aer("00100000")
    assert [event.fatal for event in events(text)] == [True, False, False]


def test_an_unsupported_request_that_the_hardware_calls_fatal_is() -> None:
    assert [event.fatal for event in events(aer("00100000").replace("Non-Fatal", "Fatal"))] == [True, True]


def test_the_failed_recovery_from_an_unsupported_request_harms_nothing_and_any_other_does() -> None:
    text = aer("00100000") + dmesg("pcieport {}: AER: device recovery failed")
    assert [event.fatal for event in events(text.format("0000:40:01.1"))] == [False, False, False]
    assert [event.fatal for event in events(text.format("0000:80:01.1"))] == [False, False, True]


def test_an_old_kernel_names_the_function_by_its_number() -> None:
    text = aer("00100000").replace("received: 0000:41:00.0", "received: id={}")
    assert [event.fatal for event in events(text.format("4100"))] == [False, False]
    assert [event.fatal for event in events(text.format("4200"))] == [True, False]


@pytest.mark.parametrize(
    "live",
    ["mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4", "[Hardware Error]: Uncorrected, restartable."],
)
def test_an_error_long_after_the_firmwares_record_is_of_now(live: str) -> None:
    text = dmesg("BERT: Error records from previous boot:", "[Hardware Error]: event severity: fatal", *"abcdef", live)
    assert [event.cured for event in events(text)] == [RESTARTED, None]


def test_what_the_firmware_recorded_before_the_start_is_past_and_what_comes_later_is_not() -> None:
    text = dmesg(
        "BERT: Error records from previous boot:",
        "[Hardware Error]: event severity: fatal",
        "{1}[Hardware Error]: event severity: fatal",
    )
    assert [(event.fatal, event.cured) for event in events(text)] == [(True, RESTARTED), (True, None)]
