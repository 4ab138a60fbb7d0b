"""The stub NVML under the real binding: it says what the rendered ``nvidia-smi -q -x`` says, faults included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.hosts.description import types
from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.render import render
from validation.facts import nvml, smi_xml
from validation.facts.gpu import Gpu
from validation.facts.missing import ABSENT, Missing

pytestmark = pytest.mark.system

COLLECT = "import json; from validation.probe.nvml import collect; print(json.dumps(collect()))"
SAME = """
    name uuid serial pci_address architecture memory_total_mib vbios persistence mig_enabled compute_mode ecc pcie
    temperature_c power_draw_w power_limit_w sm_clock_mhz sm_clock_max_mhz memory_clock_mhz throttle_reasons
    recovery_action virtualization
""".split()  # noqa: SIM905 - one word a field reads better than a column of quotes
AGREEING_FAULTS = ("nvlink-down", "ecc-uncorrectable", "remap-pending", "wrong-gpu", "wrong-driver", "thermal-throttle")


def collect(host: SimulatedHost, repository: Path) -> str:
    """What the probe's own NVML module says on the host, run by this environment's Python."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(repository),
        "LD_LIBRARY_PATH": str(host.folder / "lib"),
        "KILN_STUB_MACHINE": str(host.folder / "machine.txt"),
    }
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def from_xml(host: SimulatedHost) -> tuple[Gpu, ...]:
    return smi_xml.parse(render(host.state).answers["nvidia-smi/q-x"].stdout).gpus


def comparable(gpu: Gpu) -> dict[str, object]:
    """The fields that both sources carry: the XML names the architecture in full, and old boards have no SRAM flag."""
    fields: dict[str, object] = {name: getattr(gpu, name) for name in SAME}
    fields["architecture"] = str(gpu.architecture).split()[0]
    fields["ecc"] = replace(gpu.ecc, sram_threshold_exceeded=ABSENT)
    return {name: "missing" if isinstance(value, Missing) else value for name, value in fields.items()}


@pytest.mark.parametrize("instance_type", types())
def test_nvml_says_what_nvidia_smi_says(instance_type: str, tmp_path: Path, repository: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", instance_type)
    inventory = nvml.parse(collect(host, repository))
    assert inventory.driver_version == host.state.driver
    assert inventory.cuda_driver_version == host.state.cuda_driver
    for ours, theirs in zip(inventory.gpus, from_xml(host), strict=True):
        assert comparable(ours) == comparable(theirs)


@pytest.mark.parametrize("name", AGREEING_FAULTS)
def test_nvml_shows_a_fault_as_nvidia_smi_does(name: str, tmp_path: Path, repository: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "p5.48xlarge")
    before = nvml.parse(collect(host, repository))
    host.inject(name)
    after = nvml.parse(collect(host, repository))
    assert after != before
    for ours, theirs in zip(after.gpus, from_xml(host), strict=True):
        assert comparable(ours) == comparable(theirs)
        assert ours.remapped_rows == theirs.remapped_rows


def test_each_link_and_pair_is_answered(tmp_path: Path, repository: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "p3.16xlarge")
    host.inject("nvlink-down")
    device = json.loads(collect(host, repository))["devices"][3]
    assert [link["active"] for link in device["nvlinks"]] == [True] * 5 + [False]
    assert {link["remote"] for link in device["nvlinks"] if link["active"]} == {"gpu"}
    assert {link["rate_mbps"] for link in device["nvlinks"] if link["active"]} == {25781}
    assert device["topology"] == dict.fromkeys("0124567", "HOSTBRIDGE")
    assert device["p2p_nvlink"] == {**dict.fromkeys("012", "OK"), **dict.fromkeys("4567", "NS")}


def test_affinity_is_that_of_the_description(tmp_path: Path, repository: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "p5.48xlarge")
    devices = json.loads(collect(host, repository))["devices"]
    assert [device["cpu_affinity"] for device in devices] == ["0-47,96-143"] * 4 + ["48-95,144-191"] * 4


def test_no_value_is_unasked_for_or_broken(tmp_path: Path, repository: Path) -> None:
    """The probe's own defects and functions that the stub lacks would show as another error than not supported."""
    errors: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            errors.update({str(value["error"])} if "error" in value else set())
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    for number, instance_type in enumerate(types()):
        host = SimulatedHost.create(tmp_path, f"h{number}", "gpu-a", instance_type)
        walk(json.loads(collect(host, repository))["devices"])
    assert errors == {"NVML_ERROR_NOT_SUPPORTED"}


def test_a_lost_gpu_has_no_handle(tmp_path: Path, repository: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "p5.48xlarge")
    host.inject("gpu-lost")
    facts = json.loads(collect(host, repository))
    assert facts["device_count"] == 8
    assert facts["devices"][3] == {"index": 3, "handle_error": "NVML_ERROR_GPU_IS_LOST"}


def test_a_mismatched_library_does_not_start(tmp_path: Path, repository: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "p5.48xlarge")
    host.inject("driver-mismatch")
    assert json.loads(collect(host, repository))["init_error"] == "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
