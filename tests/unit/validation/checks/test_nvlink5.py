"""The sub-codes of Xid 144 to 150: unit, register words, how grave, what to do."""

from __future__ import annotations

import pytest

from profiles.models import Expectation
from validation.checks import nvlink5
from validation.checks.kernel import KernelXid
from validation.facts import kernel_log
from validation.facts.host import KernelLog
from validation.facts.store import Facts
from validation.judge import judge_facts
from validation.verdict import Finding, Verdict

GPU = "PCI:0009:01:00"


def judged(text: str) -> list[Finding]:
    log = kernel_log.parse(f"[   10.0] NVRM: Xid ({GPU}): {text}\n")
    found = judge_facts(Facts({KernelLog: log}), Expectation(instance_type=""), "host", [KernelXid()])
    return [finding for finding in found if finding.check == "kernel.xid"]


@pytest.mark.parametrize(
    ("text", "verdict", "said", "remedy"),
    [
        # NETIR: bits 20 to 25 of the first word. 0x021 is 33, 0x00a is 10.
        ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0 0x0)", "FAIL", "sub-code 33, link down", ""),
        (
            "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x00a00000 0x0)",
            "FAIL",
            "sub-code 10, link down: PHY",
            "looked at",
        ),
        (
            "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x02600000 0x0)",
            "FAIL",
            "38, link down: by software",
            "by command",
        ),
        ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x01d00000 0x0)", "FAIL", "sub-code 29, not in the table", ""),
        ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00200000 0x0)", "WARN", "sub-code 2, too many", "cable"),
        ("149, NETIR_MFDE_EVENT Fatal XC0 i0 Link 03 (0x00200000 0x00000004)", "FAIL", "errorstatus 4", ""),
        # The others: bits of the second word.
        (
            "145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x04000000 0x00000010)",
            "WARN",
            "0x10, look at the remote end",
            "154",
        ),
        ("145, RLW_REMAP Fatal XC1 i0 Link 10 (0x04000000 0x000000c0)", "FAIL", "0x40, errorstatus 0x80", ""),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x0409a0c2 0x00000008)", "WARN", "errorstatus 0x08", ""),
        ("144, SAW_MVB Nonfatal XC0 i0 Link 11 (0x0 0x00000001)", "WARN", "errorstatus 0x01", "support"),
        ("146, TLW_RX Nonfatal XC0 i0 Link 11 (0x0 0x00000002)", "WARN", "leads to Xid 48 and 94 or 95", ""),
    ],
)
def test_the_registers_tell_the_error(text: str, verdict: str, said: str, remedy: str) -> None:
    (finding,) = judged(text)
    assert finding.verdict.value == verdict
    assert said in finding.message
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        # The line's word wins over the table, whichever way they differ.
        ("145, RLW_REMAP Fatal XC1 i0 Link 10 (0x0 0x00000100)", Verdict.FAIL),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x0 0x00000040)", Verdict.WARN),
        # A unit for which only harmless errors are documented, and the line says Fatal.
        ("147, TREX Fatal XC1 i0 Link 10 (0x0 0x00000001)", Verdict.FAIL),
        # Without registers, and without a word: the number decides.
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 01", Verdict.FAIL),
        ("150, something else", Verdict.FAIL),
        ("148, something else", Verdict.WARN),
    ],
)
def test_the_word_decides_before_the_table_and_the_table_before_nothing(text: str, verdict: Verdict) -> None:
    (finding,) = judged(text)
    assert finding.verdict is verdict


def test_a_line_without_registers_tells_no_sub_code() -> None:
    (event,) = kernel_log.parse(f"[1.0] NVRM: Xid ({GPU}): 145, RLW_REMAP Nonfatal XC1 i0 Link 10\n").events
    assert (event.registers, nvlink5.decode(event)) == ((), ())


def test_registers_in_square_brackets_are_read_too() -> None:
    (event,) = kernel_log.parse(f"[1.0] NVRM: Xid ({GPU}): 149, NETIR Fatal XC 1 i 2 Link 01 [0x02100000 0x1]\n").events
    assert event.registers == (0x02100000, 1)


def test_every_row_of_the_table_is_of_an_nvlink_error_and_can_be_reached() -> None:
    rows = nvlink5._rows()
    assert {row.code for row in rows} == set(nvlink5.CODES)
    assert {row.by for row in rows} == {"status", "value", "subcode"}
    for row in rows:
        assert row.action in nvlink5._REMEDIES
        assert row.values is None or row.by != "status" or all(value & (value - 1) == 0 for value in row.values)


@pytest.mark.parametrize("words", [("0x00000002", "0x00000004"), ("0x00000004", "0x00000002")])
def test_the_worst_of_several_lines_decides_in_whatever_order_they_stand(words: tuple[str, str]) -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 146, pid=7, name=a, Link 03 (0x00000000 {} 0x00000000)\n"
    log = kernel_log.parse("".join(map(line.format, words)))
    (finding,) = KernelXid().evaluate(Facts({KernelLog: log}), Expectation(instance_type=""))
    assert finding.verdict is Verdict.FAIL
    assert f"log line {words.index('0x00000004') + 1}" in finding.message
