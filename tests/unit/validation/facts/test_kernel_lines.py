"""Whoever wrote a line of the kernel's down, its message is the same; what a program says is none of it."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import kernel_lines, kernel_log
from validation.facts.kernel_lines import KernelLine

SAID = "NVRM: GPU 0000:4c:00.0: RmInitAdapter failed! (0x22:0x56:884)"


def only(text: str) -> KernelLine:
    (line,) = kernel_lines.read(text)
    return line


FORMS = {
    "dmesg": "[   88.120045] {}",
    "dmesg with the level": "<3>[   88.120045] {}",
    "dmesg with facility and level in words": "kern  :err   : [   88.120045] {}",
    "dmesg with the thread": "[   88.120045][ T1180] {}",
    "dmesg -T": "[Tue Mar  4 09:15:02 2025] {}",
    "dmesg -T in another language": "[二 3月  4 09:15:02 2025] {}",
    "dmesg -H": "[Mar 4 09:15] {}",
    "dmesg -H, later lines": "[  +0.000061] {}",
    "dmesg --time-format iso": "2025-03-04T09:15:02,120045+00:00 {}",
    "dmesg -d": "[   88.120045 <    0.000061>] {}",
    "dmesg -d -T": "[Tue Mar  4 09:15:02 2025 <    0.000061>] {}",
    "journalctl -o short-delta": "[   88.120045 <    0.000061 >] node-3 kernel: {}",
    "journalctl -o short-delta, the first line": "[   88.120045                ] node-3 kernel: {}",
    "dmesg -x --time-format iso": "kern  :err   : 2025-03-04T09:15:02,120045+00:00 {}",
    "the kernel's own device": "3,1422,88120045,-;{}",
    "journalctl -k": "Mar 04 09:15:02 node-3 kernel: {}",
    "journalctl -o short-precise": "Mar 04 09:15:02.120045 node-3 kernel: {}",
    "journalctl -o short-iso": "2025-03-04T09:15:02+0000 node-3 kernel: {}",
    "journalctl -o short-full": "Tue 2025-03-04 09:15:02 UTC node-3 kernel: {}",
    "journalctl -o short-unix": "1741079702.120045 node-3 kernel: {}",
    "journalctl -o short-monotonic": "[   88.120045] node-3 kernel: {}",
    "a clock and the name of the kernel alone": "[   88.120045] kernel: {}",
    "journalctl in another language": "3月 04 09:15:02 node-3 kernel: {}",
    "kern.log of Ubuntu": "Mar  4 09:15:02 node-3 kernel: [   88.120045] {}",
    "kern.log of Ubuntu 24.04": "2025-03-04T09:15:02.120045+00:00 node-3 kernel: {}",
    "without a space": "2025-03-04T09:15:02 node-3 kernel:[   88.120045] {}",
    "a message to every terminal": " kernel:{}",
    "grep with names of files": "/var/log/kern.log:Mar  4 09:15:02 node-3 kernel: [   88.120045] {}",
    "a quotation": "> > [   88.120045] {}",
    "pasted with a tab": "\t[   88.120045] {}",
    "pdsh and ansible": "node-3: [   88.120045] {}",
    "pdsh of a syslog": "node-3: Mar  4 09:15:02 node-3 kernel: {}",
    "pdsh of dmesg -T": "node-3: [Tue Mar  4 09:15:02 2025] {}",
    "pdsh of dmesg --time-format iso": "node-3: 2025-03-04T09:15:02,120045+00:00 {}",
    "pdsh of messages alone": "node-3: {}",
    "a syslog without the name of the kernel": "Mar  4 09:15:02 node-3 {}",
    "dates alone": "2025-03-04T09:15:02.120045Z {}",
    "rsyslog in the form of RFC 5424": "<3>1 2025-03-04T09:15:02.120045+00:00 node-3 kernel - - - {}",
    "what the container runtime keeps": "2025-03-04T09:15:02.120045678Z stderr F {}",
    "a program that passes it on with its clock": "Mar  4 09:15:02 node-3 dmesg[812]: [   88.120045] {}",
    "docker compose": "agent-1  | [   88.120045] {}",
    "kubectl logs --timestamps": "2025-03-04T09:15:02.120045678Z [   88.120045] {}",
    "kubectl logs --prefix": "[pod/kmsg-7x9/reader] [   88.120045] {}",
    "a serial console that dates its lines": "[2025-03-04 09:15:02.120045][   88.120045] {}",
    "the message alone": "{}",
    "the message alone, indented": "    {}",
    "the message alone, quoted": "> {}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_message_is_the_same_in_every_form(form: str) -> None:
    line = only(form.format(SAID))
    assert (line.message, line.kernel, line.known) == (SAID, True, True)


# Messages that are told by how they begin: none of the form may be left before them, and none of them taken for it.
BEGINNINGS = {
    "mlx5_core 0000:4c:00.0: Health issue observed, firmware internal error": "nic-down",
    "efa 0000:4c:00.0: Reading REG: (polling) timeout": "nic-down",
    "nvidia 0000:4c:00.0: Unable to change power state from D3cold to D0, device inaccessible": "fallen-off-bus",
    "EXT4-fs error (device nvme1n1): ext4_lookup:1785: inode #2: comm ls: bad": "fs-error",
    "XFS (nvme1n1): Metadata corruption detected at xfs_agf_verify": "fs-error",
    "BTRFS error (device nvme1n1): parent transid verify failed": "fs-error",
    "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [a:7]": "soft-lockup",
    "rcu: INFO: rcu_sched self-detected stall on CPU": "soft-lockup",
    "BUG: unable to handle page fault for address: ffffffffc0a0b000": "oops",
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0": "machine-check",
    "Memory failure: 0x1234: recovery action for dirty page: Failed": "machine-check",
    "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5": "machine-check",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_fault_told_by_how_its_message_begins_is_found_in_every_form(form: str) -> None:
    quiet = "[    0.000000] Linux version 6.8.0\n"
    for message, kind in BEGINNINGS.items():
        found = kernel_log.parse(quiet + form.format(message)).events
        assert [event.kind for event in found] == [kind], message


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_told_to_be_a_kernel_log_and_its_fault_is_found(form: str) -> None:
    text = form.format(SAID)
    assert kernel_lines.is_kernel_log(text)
    (event,) = kernel_log.parse(text).events
    assert (event.kind, event.pci_address) == ("gpu-init", "0000:4c:00.0")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_line_of_a_working_driver_means_nothing_in_any_form(form: str) -> None:
    text = form.format("nvidia-uvm: Loaded the UVM driver, major device number 507.")
    assert kernel_lines.is_kernel_log(text)
    assert kernel_log.parse(text).events == ()


@pytest.mark.parametrize(
    "line",
    [
        "Mar  4 09:15:02 node-3 sudo[812]: ops : COMMAND=/usr/bin/grep -i fallen off the bus /var/log/syslog",
        'Mar  4 09:15:02 node-3 watcher[91]: rules: ["Remounting filesystem read-only", "soft lockup - CPU#"]',
        "2025-03-04T09:15:02+0000 node-3 agent: looking for NVRM: GPU 0000:4c:00.0: RmInitAdapter failed",
        "[   88.120045] cloud-init[1502]: grep 'Out of memory: Killed' found nothing",
        "[   88.120045] systemd[1]: Started watch for EXT4-fs error messages.",
    ],
)
def test_what_a_program_says_about_a_fault_is_no_fault(line: str) -> None:
    read = only(line)
    assert not read.kernel
    assert kernel_log.parse(f"{line}\n[    1.000000] random: crng init done\n").events == ()


def test_an_error_with_its_number_that_a_program_passes_on_is_one() -> None:
    line = "Mar  4 09:15:02 node-3 gpu-agent[91]: saw NVRM: Xid (PCI:0000:4c:00): 79, GPU has fallen off the bus."
    (event,) = kernel_log.parse(line).events
    assert (event.code, event.pci_address) == (79, "0000:4c:00.0")


def test_the_kernels_line_about_a_program_that_crashed_is_the_kernels() -> None:
    assert only("[   88.120045] python3[4021]: segfault at 7f0 ip 00007f sp 00007f error 4 in libnccl.so.2").kernel


def test_a_message_that_syslog_saw_again_and_again_is_counted_so_often() -> None:
    again = "Mar  4 09:15:02 n kernel: message repeated 3 times: [ [   88.120045] NVRM: Xid (PCI:0000:4c:00): 13, text]"
    line = only(again)
    assert (line.message, line.times) == ("NVRM: Xid (PCI:0000:4c:00): 13, text", 3)
    assert [(event.code, event.times) for event in kernel_log.parse(again).events] == [(13, 3)]
    (event,) = kernel_log.parse(again.replace("3 times", "999999 times")).events
    assert event.times == 999_999  # one event: as many would fill the memory


def test_remarks_of_journalctl_and_empty_lines_are_not_counted() -> None:
    text = "-- Logs begin at Tue. --\n\nMar 04 09:15:02 n kernel: x\n-- Boot 0123456789abcdef0123456789abcdef --\n"
    text += "Mar 04 09:16:02 n kernel: y\n"
    assert [(line.number, line.message, line.boots) for line in kernel_lines.read(text)] == [(3, "x", 0), (5, "y", 1)]


def test_a_host_that_starts_again_is_counted_by_its_name() -> None:
    text = (
        "Mar 04 09:15:02 a kernel: x\nMar 04 09:15:02 b kernel: x\n"
        "Mar 04 09:16:02 a kernel: Linux version 6.8.0-31-generic\nMar 04 09:16:03 a kernel: y\n"
        "Mar 04 09:16:04 b kernel: y\n"
    )
    assert [(line.host, line.boots) for line in kernel_lines.read(text)] == [
        ("a", 0),
        ("b", 0),
        ("a", 0),
        ("a", 1),
        ("b", 0),
    ]


def test_what_pdsh_gathers_from_several_hosts_is_told_apart_by_their_names() -> None:
    text = "n1: [   88.120045] x\nn2: [   88.120046] y\n"
    assert [(line.host, line.message) for line in kernel_lines.read(text)] == [("n1", "x"), ("n2", "y")]


@pytest.mark.parametrize("form", ["[   88.12004{}] ", "[Tue Mar  4 09:15:0{} 2025] ", "Mar  4 09:15:0{} n kernel: "])
def test_messages_that_were_run_together_in_one_line_are_told_apart(form: str) -> None:
    text = " ".join(form.format(at) + f"message {at}" for at in range(3))
    assert [line.message for line in kernel_lines.read(text)] == ["message 0", "message 1", "message 2"]
    assert only("Mar  4 09:15:02 n kernel: [   88.120045] whole").message == "whole"


def test_a_journal_with_the_newest_line_first_is_read_from_its_end() -> None:
    old = "".join(f"Mar 03 09:15:0{at} n kernel: old {at}\n" for at in (3, 2, 1))
    new = "".join(f"Mar 04 09:15:0{at} n kernel: new {at}\n" for at in (3, 2, 1))
    text = f"{new}-- Boot 0123456789abcdef0123456789abcdef --\n{old}"
    read = [(line.number, line.message, line.boots) for line in kernel_lines.read(text)]
    assert read[0] == (7, "old 1", 0)
    assert read[-1] == (1, "new 3", 1)


ENTRIES = [
    {"MESSAGE": SAID, "_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel"},
    {"MESSAGE": "Started.", "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "systemd"},
    {"MESSAGE": [78, 86, 82, 77, 58, 32, 255], "_TRANSPORT": "kernel"},
    {"MESSAGE": None, "_TRANSPORT": "kernel"},
]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps(entry) for entry in ENTRIES),
        "\n".join(json.dumps(entry, indent=8) for entry in ENTRIES),
        "".join(f"\x1e{json.dumps(entry)}\n" for entry in ENTRIES),
    ],
    ids=["json", "json-pretty", "json-seq"],
)
def test_the_journal_as_json_is_read(text: str) -> None:
    assert kernel_lines.is_kernel_log(text)
    found = [(line.number, line.message, line.kernel) for line in kernel_lines.read(text)]
    assert found == [(1, SAID, True), (2, "Started.", False), (3, "NVRM: \ufffd", True)]


def test_dmesg_as_json_and_dockers_log_files_are_read() -> None:
    dmesg = json.dumps({"dmesg": [{"pri": 3, "time": 88.12, "msg": SAID}, {"pri": 6, "time": 89.0, "msg": "x"}]})
    docker = json.dumps({"log": f"[   88.120045] {SAID}\n", "stream": "stdout", "time": "2025-03-04T09:15:02Z"})
    for text in (dmesg, docker):
        assert kernel_lines.is_kernel_log(text)
        assert next(kernel_lines.read(text)).message == SAID


def test_an_entry_that_does_not_tell_who_said_it_may_be_the_kernels() -> None:
    entry = {"__CURSOR": "s=1", "MESSAGE": SAID}
    assert [event.kind for event in kernel_log.parse(f"{json.dumps(entry)}\n" * 2).events] == ["gpu-init"] * 2


def test_half_a_json_entry_is_refused_by_its_number() -> None:
    text = "\n".join(json.dumps(entry) for entry in ENTRIES)
    with pytest.raises(ParseError, match="entry 4 is no whole JSON document"):
        kernel_log.parse(text[:-12])


@pytest.mark.parametrize(
    "text",
    [
        "[2025-03-04 09:15:02,120] torch.distributed: closing\n",
        "kernel: 6.8.0-1031-aws\n",
        "Mar  4 09:15:02 node-3 sshd[88]: Accepted publickey\n",
        '{"log": "hello"}',
        "GPU-5d1a, kernel\n",
    ],
)
def test_other_texts_are_no_kernel_log(text: str) -> None:
    assert not kernel_lines.is_kernel_log(text)


def test_a_line_that_is_longer_than_the_kernel_prints_is_refused_and_a_programs_is_not() -> None:
    with pytest.raises(ParseError, match="a line of 5026 characters"):
        kernel_log.parse("[    1.000000] nvidia-uvm: " + "x" * 4999)
    kernel_log.parse("[    1.000000] x\nMar  4 09:15:02 n agent[7]: " + "x" * 9000)
