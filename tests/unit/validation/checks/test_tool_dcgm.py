"""DCGM's results: a row for every verdict, with words of the text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.tool_dcgm import DcgmDiagResult, DcgmHealthResult
from validation.facts.dcgm import DcgmDiag, DcgmNote, DcgmTest
from validation.facts.dcgm_health import DcgmHealth
from validation.facts.store import Facts
from validation.verdict import FaultClass

NOTE = DcgmNote("a note")


def health(overall: str, system: str = "", word: str = "Failure", *words: str, error: str = "") -> DcgmHealth:
    return DcgmHealth(overall, ((0, system, word, words or ("text",)),) if system else (), error)


def one_test(name: str, *words: str, notes: tuple[DcgmNote, ...] = ()) -> DcgmTest:
    return DcgmTest(name, tuple(enumerate(words)), notes)


def diag(*words: str, notes: tuple[DcgmNote, ...] = (), name: str = "PCIe") -> DcgmDiag:
    return DcgmDiag((one_test(name, *words, notes=notes),))


def noted(text: str, severity: int = 0) -> DcgmDiag:
    return diag("fail", notes=(DcgmNote(text, 0, severity),))


ROWS: list[tuple[Check, object, list[str]]] = [
    (DcgmDiagResult(), diag("pass", "pass"), ["PASS host: 1 test passed: PCIe"]),
    (DcgmDiagResult(), diag("pass", notes=(NOTE,)), ["WARN host: PCIe: pass, with a warning (a note)"]),
    (DcgmDiagResult(), diag("pass", "fail", notes=(NOTE,)), ["FAIL GPU1: PCIe: fail (a note)"]),
    # A note on another GPU is not said of this one.
    (DcgmDiagResult(), diag("fail", notes=(DcgmNote("slow", 1),)), ["FAIL GPU0: PCIe: fail"]),
    (DcgmDiagResult(), diag("warn"), ["WARN GPU0: PCIe: warn"]),
    (DcgmDiagResult(), diag("error"), ["UNKNOWN GPU0: PCIe: error"]),
    (DcgmDiagResult(), diag("pass", "skip"), ["UNKNOWN host: 1 of 1 test skipped"]),
    (DcgmDiagResult(), diag("not run"), ["UNKNOWN host: 1 of 1 test skipped"]),
    (DcgmDiagResult(), diag("skip", name="EUD Test"), ["UNKNOWN host: 1 of 1 test skipped"]),
    (DcgmDiagResult(), DcgmDiag((one_test("PCIe", "pass"), one_test("EUD Test", "skip"))), ["WARN host: 1 of 2 tests"]),
    (DcgmDiagResult(), DcgmDiag((), ("Error: Diagnostic could not be run",)), ["UNKNOWN host: DCGM did not run it"]),
    # Known causes that are no broken GPU.
    (DcgmDiagResult(), noted("Persistence mode for GPU 0 is disabled"), ["WARN GPU0: PCIe: fail (Persistence"]),
    (DcgmDiagResult(), noted("Persistence mode for GPU 0 is disabled", 5), ["WARN GPU0: PCIe: fail (Persistence"]),
    (DcgmDiagResult(), noted("Enforced power limit on GPU 0 set to 200"), ["WARN GPU0: PCIe: fail (Enforced power"]),
    # What DCGM files under configuration, and what it was kept from doing.
    (DcgmDiagResult(), noted("Test was aborted early", 5), ["UNKNOWN GPU0: PCIe: fail (Test was aborted early)"]),
    (DcgmDiagResult(), noted("Test was aborted early", 2), ["FAIL GPU0: PCIe: fail (Test was aborted early)"]),
    (DcgmDiagResult(), noted("NVML's number is different than the number of devices in /dev", 5), ["FAIL GPU0: PCIe"]),
    (DcgmDiagResult(), noted("Fabric Manager reports a training error", 5), ["FAIL GPU0: PCIe: fail (Fabric"]),
    (
        DcgmDiagResult(),
        noted("GPU 0 is running at PCI link width 8X, below 16", 5),
        ["WARN GPU0: PCIe: fail (GPU 0 is"],
    ),
    (DcgmDiagResult(), noted("utilization for the GPU 4.0 is greater than the maximum"), ["UNKNOWN GPU0: PCIe: fail"]),
    (DcgmDiagResult(), noted("thermal violations totaling 0.0 seconds"), ["WARN GPU0: PCIe: fail (thermal"]),
    (DcgmDiagResult(), noted("thermal violations totaling 1.2 seconds"), ["FAIL GPU0: PCIe: fail (thermal"]),
    (DcgmDiagResult(), noted("CUDA-capable device(s) is/are busy or unavailable"), ["UNKNOWN GPU0: PCIe: fail (CUDA"]),
    (DcgmDiagResult(), noted("GPU 0's NvLink link 0 is currently down"), ["WARN GPU0: PCIe: fail (GPU 0's NvLink"]),
    (DcgmDiagResult(), noted("NvLink link 0 is currently down, double bit errors"), ["FAIL GPU0: PCIe: fail (NvLink"]),
    (DcgmDiagResult(), noted("Found the driver on the denylist"), ["FAIL GPU0: PCIe: fail (Found"]),
    # One known cause beside one that is not: the GPU may be broken.
    (
        DcgmDiagResult(),
        diag("fail", notes=(DcgmNote("Persistence mode is off", 0), DcgmNote("double bit errors", 0))),
        ["FAIL GPU0: PCIe: fail (Persistence mode is off double bit errors)"],
    ),
    (DcgmHealthResult(), health("Healthy"), ["PASS host: DCGM calls every watched system healthy"]),
    (DcgmHealthResult(), health("Failure", "Memory system"), ["FAIL GPU0: Memory system: Failure"]),
    (DcgmHealthResult(), health("Healthy", "Memory system"), ["FAIL GPU0: Memory system: Failure"]),
    (DcgmHealthResult(), health("Warning", "Thermal system", "Warning"), ["WARN GPU0: Thermal system: Warning"]),
    (DcgmHealthResult(), health("Odd", "Thermal system", "Odd"), ["UNKNOWN GPU0: Thermal system: Odd"]),
    (DcgmHealthResult(), health("Warning", "Thermal system", "Healthy"), ["UNKNOWN host: the overall health is Warn"]),
    (
        DcgmHealthResult(),
        health("Failure", "Thermal system", "Warning"),
        ["WARN GPU0: Thermal system: Warning", "UNKNOWN host: the overall health is Failure, and no system listed is"],
    ),
    (DcgmHealthResult(), health("Failure", "NVLINK system"), ["WARN GPU0: NVLINK system"]),
    (
        DcgmHealthResult(),
        health("Failure", "NVLink system", "Failure", "Detected 22 crc NvLink errors on GPU 0's NVLink"),
        ["FAIL GPU0: NVLink system: Failure (Detected 22"],
    ),
    (DcgmHealthResult(), health("", error="Error: Health watches not enabled."), ["UNKNOWN host: DCGM looked at noth"]),
]


@pytest.mark.parametrize(("check", "fact", "wanted"), ROWS, ids=lambda value: getattr(value, "id", ""))
def test_what_dcgm_says_means_what_it_looked_at(
    check: Check, fact: object, wanted: list[str], said: Callable[..., list[str]]
) -> None:
    found = said(check, fact)
    assert len(found) == len(wanted), found
    assert all(text.startswith(start) for text, start in zip(found, wanted, strict=True)), found


def test_nvlink_trouble_that_dcgm_sees_is_judged_by_the_machine(said: Callable[..., list[str]]) -> None:
    trouble = health("Failure", "NVLINK system")
    assert said(DcgmHealthResult(), trouble, "p5.48xlarge")[0].startswith("FAIL GPU0")
    assert said(DcgmHealthResult(), trouble, "g5.xlarge")[0].startswith("NOT_APPLICABLE GPU0")


def test_links_that_fail_a_diagnostic_are_judged_by_the_machine(said: Callable[..., list[str]]) -> None:
    trouble = noted("GPU 0's NvLink link 0 is currently down Run a field diagnostic on the GPU.")
    assert said(DcgmDiagResult(), trouble, "p5.48xlarge")[0].startswith("FAIL GPU0")
    assert said(DcgmDiagResult(), trouble, "g5.xlarge")[0].startswith("NOT_APPLICABLE GPU0")


def test_lanes_that_dcgm_misses_are_judged_by_the_machine(said: Callable[..., list[str]]) -> None:
    trouble = noted("GPU 0 is running at PCI link width 8X, which is below the minimum (parameter 'min_pci_width')")
    assert said(DcgmDiagResult(), trouble, "p5.48xlarge")[0].startswith("FAIL GPU0")
    assert said(DcgmDiagResult(), trouble, "g6e.xlarge")[0].startswith("NOT_APPLICABLE GPU0")


def test_imex_is_no_trouble_of_a_host_that_needs_none(said: Callable[..., list[str]]) -> None:
    imex = health("Failure", "NVLINK system", "Failure", "The IMEX daemon is not ready")
    assert said(DcgmHealthResult(), imex, "p5.48xlarge")[0].startswith("WARN GPU0")
    both = health("Failure", "NVLINK system", "Failure", "The IMEX daemon is not ready", "NvLink link 3 is down")
    assert said(DcgmHealthResult(), both, "p5.48xlarge")[0].startswith("FAIL GPU0")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Persistence mode is off", FaultClass.CONFIGURATION),
        ("Found the driver on the denylist", FaultClass.SOFTWARE),
        ("double bit errors", FaultClass.REPLACE_NOW),
    ],
)
def test_a_known_cause_names_who_mends_it(text: str, fault: FaultClass) -> None:
    facts = Facts({DcgmDiag: noted(text)})
    findings = DcgmDiagResult().evaluate(facts, Expectation(instance_type=""))
    assert [finding.fault_class for finding in findings] == [fault]
