"""A burn-in of simulated hosts, from the driver calls to the verdict: real processes on the stub CUDA libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from profiles.expectation import expect
from sandbox.hosts.host import SimulatedHost
from validation.checks import CHECKS
from validation.facts.burnin import BurnInResult, parse
from validation.facts.store import Facts
from validation.judge import judge_facts

pytestmark = pytest.mark.system

P5 = "p5.48xlarge"
LEAST_WAIT = "burnin.GEMM_MARGIN_S = 1.0"
BURN_IN = """
import json, sys
from validation.probe import burnin
{before}
print(json.dumps(burnin.run("quick", lambda progress: print(progress["text"], file=sys.stderr))))
"""


class Burner:
    """A simulated host and its burn-in."""

    def __init__(self, home: Path, repository: Path, instance_type: str) -> None:
        self.host = SimulatedHost.create(home, "h1", "h1", instance_type)
        self.repository = repository
        self.expected = expect(instance_type, burn_in="quick")

    def setting(self, *lines: str) -> Burner:
        """Settings of the stub libraries that no fault makes; the first line with a key counts."""
        machine = self.host.folder / "machine.txt"
        machine.write_text("\n".join(lines) + "\n" + machine.read_text())
        return self

    def without(self, library: str) -> Burner:
        (self.host.folder / "lib" / library).unlink()
        return self

    def fault(self, name: str) -> Burner:
        self.host.inject(name)
        return self

    def run(self, before: str = "") -> BurnInResult:
        folder = self.host.folder
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.repository),
            "KILN_ROOT": str(folder / "root"),
            "LD_LIBRARY_PATH": str(folder / "lib"),
            "KILN_STUB_MACHINE": str(folder / "machine.txt"),
            "CUDA_VISIBLE_DEVICES": "",  # what a user left set must not hide a GPU
        }
        done = subprocess.run(
            [sys.executable, "-c", BURN_IN.format(before=before)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        json.loads(done.stdout)
        return parse(done.stdout)

    def findings(self, before: str = "") -> list[str]:
        """``VERDICT check subject`` of all findings but the good ones."""
        facts = Facts({BurnInResult: self.run(before)})
        checks = [check for check in CHECKS if check.id.startswith("burnin.")]
        found = judge_facts(facts, self.expected, "h1", checks)
        assert {finding.check for finding in found} == {check.id for check in checks}
        bad = [finding for finding in found if finding.verdict.value not in ("PASS", "NOT_APPLICABLE")]
        return [f"{finding.verdict.value} {finding.check} {finding.subject}" for finding in bad]


@pytest.fixture
def burner(tmp_path: Path, repository: Path) -> Callable[[str], Burner]:
    return lambda instance_type: Burner(tmp_path, repository, instance_type)


@pytest.mark.parametrize(
    "instance_type",
    [P5, "p4d.24xlarge", "p3.16xlarge", "g4dn.xlarge", "g5.xlarge", "g5.48xlarge", "g6.xlarge", "g6e.xlarge"],
)
def test_a_healthy_host_survives(burner: Callable[[str], Burner], instance_type: str) -> None:
    assert burner(instance_type).findings() == []


def test_every_gpu_reports_what_it_did(burner: Callable[[str], Burner]) -> None:
    result = burner(P5).run()
    assert [gpu.index for gpu in result.gpus] == list(range(8))
    for gpu in result.gpus:
        assert gpu.gemm is not None
        assert gpu.gemm.seconds >= 2.0
        assert gpu.gemm.compared > 1
        assert gpu.gemm.tflops == pytest.approx(2 * gpu.gemm.n**3 * gpu.gemm.iterations / gpu.gemm.seconds / 1e12)
        assert gpu.samples is not None
        assert gpu.samples.power_w


FAULTS: list[tuple[str, list[str]]] = [
    ("corrupt-gemm", ["FAIL burnin.gemm h1/{gpu}"]),
    ("slow-gpu", ["FAIL burnin.speed h1/{gpu}", "FAIL burnin.peers h1/{gpu}"]),
    (
        "no-work",
        [
            "FAIL burnin.gemm h1/{gpu}",
            "UNKNOWN burnin.speed h1/{gpu}",
            "UNKNOWN burnin.peers h1/{gpu}",
            "UNKNOWN burnin.pcie h1/{gpu}",
            "UNKNOWN burnin.throttle h1/{gpu}",
        ],
    ),
    ("too-fast", ["UNKNOWN burnin.speed h1/{gpu}"]),
]


@pytest.mark.parametrize(("fault", "bad"), FAULTS)
def test_each_fault_is_found_on_its_gpu_and_nowhere_else(
    burner: Callable[[str], Burner], fault: str, bad: list[str]
) -> None:
    found = burner(P5).fault(fault).findings()
    (sick,) = {line.rsplit("/", 1)[-1] for line in found}
    assert found == [line.format(gpu=sick) for line in bad]


def test_heat_under_load_is_found(burner: Callable[[str], Burner]) -> None:
    found = burner(P5).fault("thermal-throttle").findings()
    assert {line.split()[1] for line in found} == {"burnin.throttle", "burnin.speed", "burnin.peers"}
    assert {line.split()[0] for line in found} == {"FAIL"}


SETTINGS: list[tuple[str, list[str]]] = [
    ("gpu.3.burnin.always_wrong=1", ["FAIL burnin.gemm h1/GPU3"]),  # the same error each time cancels in a batch
    ("gpu.3.burnin.copy_corrupt=1", ["FAIL burnin.gemm h1/GPU3", "FAIL burnin.copy h1/GPU3"]),
    ("gpu.3.burnin.h2d_gbps=4", ["FAIL burnin.bandwidth h1/GPU3"]),
    ("gpu.3.burnin.d2h_gbps=99", ["UNKNOWN burnin.bandwidth h1/GPU3"]),
    ("gpu.3.burnin.free_bytes=500000000", []),  # smaller matrices: another right answer
    *(
        (
            f"gpu.3.burnin.{setting}",
            [
                f"{verdict} burnin.gemm h1/GPU3",
                "UNKNOWN burnin.speed h1/GPU3",
                "UNKNOWN burnin.peers h1/GPU3",
                "UNKNOWN burnin.pcie h1/GPU3",
                "UNKNOWN burnin.throttle h1/GPU3",
            ],
        )
        for setting, verdict in (("launch_error=214", "FAIL"), ("launch_error=719", "FAIL"), ("crash=1", "UNKNOWN"))
    ),
    *(
        (
            f"gpu.3.burnin.{setting}",
            [
                f"{verdict} burnin.gemm h1/GPU3",
                "UNKNOWN burnin.copy h1/GPU3",
                "UNKNOWN burnin.speed h1/GPU3",
                "UNKNOWN burnin.peers h1/GPU3",
                "UNKNOWN burnin.bandwidth h1/GPU3",
                "UNKNOWN burnin.pcie h1/GPU3",
                "UNKNOWN burnin.throttle h1/GPU3",
            ],
        )
        for setting, verdict in (
            ("context_error=46", "UNKNOWN"),
            ("context_error=999", "FAIL"),
            ("memory_error=2", "UNKNOWN"),
            ("memory_error=214", "FAIL"),
            ("free_bytes=100000000", "UNKNOWN"),
        )
    ),
]


@pytest.mark.parametrize(("setting", "bad"), SETTINGS)
def test_what_one_gpu_says_is_judged_as_its_own(burner: Callable[[str], Burner], setting: str, bad: list[str]) -> None:
    assert burner(P5).setting(setting).findings() == bad


def test_a_gpu_that_hangs_delays_no_other(burner: Callable[[str], Burner]) -> None:
    host = burner(P5).setting("gpu.3.burnin.hang=1")
    result = host.run(LEAST_WAIT)
    assert [gpu.index for gpu in result.gpus if gpu.phase == "done"] == [0, 1, 2, 4, 5, 6, 7]
    hung = result.gpus[3]
    assert hung.error is not None
    assert (hung.phase, hung.error.name, hung.copy_ is not None) == ("gemm", "hang", True)
    assert "UNKNOWN burnin.gemm h1/GPU3" in host.findings(LEAST_WAIT)


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (802, "FAIL burnin.gemm h1"),  # the fabric manager has not set the system up
        (803, "FAIL burnin.gemm h1"),
        (100, "FAIL burnin.gemm h1"),
        (4711, "UNKNOWN burnin.gemm h1"),
    ],
)
def test_a_driver_that_does_not_start_is_judged_once_for_the_host(
    burner: Callable[[str], Burner], error: int, first: str
) -> None:
    found = burner(P5).setting(f"cuda.init_error={error}").findings()
    assert found[0] == first
    assert {line.split()[0] for line in found[1:]} == {"UNKNOWN"}
    assert len(found) == 7


def test_without_cublas_copies_are_measured_and_the_rest_is_not_known(burner: Callable[[str], Burner]) -> None:
    found = burner("g6.xlarge").without("libcublas.so.12").findings()
    unknown = ["UNKNOWN burnin.gemm h1/GPU0", "UNKNOWN burnin.speed h1/GPU0"]
    assert found == [*unknown, "UNKNOWN burnin.pcie h1/GPU0", "UNKNOWN burnin.throttle h1/GPU0"]


def test_without_a_driver_library_nothing_is_known(burner: Callable[[str], Burner]) -> None:
    host = burner("g6.xlarge").without("libcuda.so.1")
    assert host.run().outcome == "no-cuda"
    assert {line.split()[0] for line in host.findings()} == {"UNKNOWN"}


def test_without_nvml_the_samples_are_missing_and_said_to_be(burner: Callable[[str], Burner]) -> None:
    host = burner("g6.xlarge").without("libnvidia-ml.so.1")
    assert "NVML" in str(host.run().sampling_error)
    assert host.findings() == ["UNKNOWN burnin.pcie h1/GPU0", "UNKNOWN burnin.throttle h1/GPU0"]


def test_a_lost_gpu_does_not_shift_the_names_of_the_others(burner: Callable[[str], Burner]) -> None:
    host = burner(P5).fault("gpu-lost")
    result = host.run()
    lost = set(range(8)) - {gpu.index for gpu in result.gpus}
    assert len(lost) == 1
    healthy = {gpu.index: gpu.pci for gpu in Burner(host.host.folder.parent, host.repository, P5).run().gpus}
    assert {gpu.index: gpu.pci for gpu in result.gpus} == {i: pci for i, pci in healthy.items() if i not in lost}
    assert host.findings() == ["UNKNOWN burnin.gemm h1"]
