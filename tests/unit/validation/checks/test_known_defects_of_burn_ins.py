"""Defects of public burn-ins and their floors, by name: Kiln does not have them. Sources: the systems read, 2026."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from profiles import catalog
from profiles.models import BurnIn, Range
from validation.checks import CHECKS
from validation.checks.burnin import RIGHT_CHECKSUMS
from validation.checks.settings import Idle
from validation.facts.burnin import BurnInResult
from validation.facts.gpu import GpuInventory
from validation.facts.missing import Missing, Reason
from validation.host_findings import LASTING
from validation.judge import judge_facts
from validation.verdict import Finding, Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

Hosts = Callable[..., "Host"]
NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
P5 = "p5.48xlarge"


def findings(host: Host) -> tuple[Finding, ...]:
    return judge_facts(host.facts(), host.expected, "host", CHECKS)


def verdict(host: Host) -> Verdict:
    return combine(findings(host))


# --- false alarms under load: of DCGM

GEMM = {
    "n": 8192, "iterations": 1300, "seconds": 2.0, "tflops": 700.0, "compared": 20, "mismatches": 0,
    "first_mismatch": None, "untouched": False, "checked_columns": 64, "wrong_columns": 0,
    "checksum": RIGHT_CHECKSUMS[8192], "stable": True, "complete": True,
}  # fmt: skip
SAMPLES = {"sm_clock_mhz": [1755.0], "power_w": [690.0], "temp_c": [55.0], "throttle": [[]] * 9, "errors": []}


def burnt(count: int, **changes: Any) -> BurnInResult:
    """A good burn-in but for GPU0, of which ``gemm``, ``copy`` and ``samples`` change single keys."""
    links = {"pcie_generation": [5], "pcie_width": [16]}
    gpus = []
    for index in range(count):
        gpu: dict[str, Any] = {
            "index": index, "pci": f"0000:{0x53 + index:02x}:00.0", "name": "x", "phase": "done", "error": None,
            "no_cublas": None, "cublas": 120600, "library": "libcublas.so.12", "cpus": None,
            "copy": {"h2d_gbps": 25.0, "d2h_gbps": 26.0, "bytes": 33554432, "intact": True},
            "gemm": GEMM, "samples": {**SAMPLES, **links},
        }  # fmt: skip
        for key, value in changes.items() if not index else ():
            gpu[key] = {**gpu[key], **value} if isinstance(value, dict) and isinstance(gpu[key], dict) else value
        gpus.append(gpu)
    document: dict[str, Any] = {
        "schema": "kiln/burn-in/v1",
        "level": "quick",
        "outcome": "ran",
        "error": None,
        "driver_cuda": 13000,
    }
    document.update({"sampling_error": None, "wall_s": 6.0, "gpus": gpus})
    return BurnInResult.model_validate(document, strict=False)


def burning(host: Hosts, **changes: Any) -> Host:
    return host(P5, burn_in="quick").put(burnt(8, **changes))


def test_one_blip_at_the_start_of_a_load_is_no_fault(host: Hosts) -> None:
    """DCGM 242: a thermal violation of 0.0 s failed the diagnostic."""
    blip = {"throttle": [["sw_thermal_slowdown"], *[[]] * 9]}
    assert verdict(burning(host, samples=blip)) is Verdict.WARN
    assert verdict(burning(host, samples={"throttle": [["sw_thermal_slowdown"]] * 9})) is Verdict.FAIL


def test_use_that_a_burn_in_left_behind_is_no_fault(host: Hosts) -> None:
    """DCGM 272: utilisation above 10 % after its own load failed the next test. Kiln does not read utilisation."""
    assert not Idle.id.startswith(LASTING)
    assert not any("utilisation" in name for name in vars(host(P5).gpus[0]))


def test_memory_that_could_not_be_had_does_not_pass(host: Hosts) -> None:
    """DCGM 284: an allocation error, and PASS."""
    error = {"phase": "setup", "call": "cuMemAlloc", "code": 2, "name": "CUDA_ERROR_OUT_OF_MEMORY", "text": "no memory"}
    assert verdict(burning(host, phase="setup", error=error, gemm=None, copy=None)) is Verdict.UNKNOWN


def test_a_gpu_that_is_busy_accuses_nobody(host: Hosts) -> None:
    """NVSentinel 1363: a GPU in use was called a fatal fault."""
    error = {
        "phase": "setup",
        "call": "cuCtxCreate",
        "code": 46,
        "name": "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "text": "busy",
    }
    found = findings(burning(host, phase="setup", error=error, gemm=None, copy=None))
    assert combine(found) is Verdict.UNKNOWN
    assert {finding.fault_class for finding in found if not finding.verdict.opens_gate} == {None}


def test_a_checker_that_hangs_accuses_nobody(host: Hosts) -> None:
    """cluster-toolkit PR 6230 drains nodes whose diagnostic hangs; DCGM 247 and 313 hang or block for long."""
    found = findings(host(P5).drop(GpuInventory, "nvidia-smi -q -x: no answer within 45 s"))
    assert combine(found) is Verdict.UNKNOWN
    assert {finding.fault_class for finding in found if not finding.verdict.opens_gate} == {None}


def test_a_process_that_died_under_load_does_not_pass(host: Hosts) -> None:
    """superbenchmark 411: the executor fails, and the run ends with 0."""
    error = {"phase": "gemm", "call": "", "code": None, "name": "ended", "text": "its process ended with signal 11"}
    assert not verdict(burning(host, phase="gemm", error=error, gemm=None)).opens_gate


# --- numbers: of DCGM, superbenchmark, AWS, autopilot, OCI


def ranges(name: str) -> dict[str, Range]:
    profile = catalog.load(name)
    assert profile is not None
    return {key: value for key, value in vars(profile.burn_in).items() if isinstance(value, Range)}


@pytest.mark.parametrize("name", catalog.types())
def test_every_floor_can_fail_and_can_be_met(name: str) -> None:
    """DCGM 4.6.0: floors of H200, A100-40GB and L40 that fail nobody; AWS's NCCL floor of 800 fails everybody."""
    for key, limits in ranges(name).items():
        assert 0 < limits.floor <= 0.9 * limits.ceiling, key
        assert limits.ceiling / limits.floor < 10, key


# Ranges of a profile that no level of the burn-in measures yet.
NOT_MEASURED = {"gemm_fp32_tflops"}
MEASURED = {"h2d_gbps": ("copy", "h2d_gbps"), "d2h_gbps": ("copy", "d2h_gbps"), "gemm_fp16_tflops": ("gemm", "tflops")}


@pytest.mark.parametrize("key", sorted(set(BurnIn.model_fields) - NOT_MEASURED))
def test_every_figure_of_a_profile_is_held_against_a_measurement(host: Hosts, key: str) -> None:
    """superbenchmark's published rule for tensor cores matches no metric, so that nothing is judged by it."""
    limits = ranges(P5)[key]
    part, field = MEASURED[key]
    for value, expected in ((limits.floor * 0.9, Verdict.FAIL), (limits.ceiling * 1.1, Verdict.UNKNOWN)):
        assert verdict(burning(host, **{part: {field: value}})) is expected, value
    assert verdict(burning(host)) is Verdict.PASS
