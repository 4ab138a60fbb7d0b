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
    assert [event.code for event in kernel_log.parse(again).events] == [13, 13, 13]
    assert only(again.replace("3 times", "99999 times")).times == 1000


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
