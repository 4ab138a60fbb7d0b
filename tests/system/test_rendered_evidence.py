"""The evidence that unit tests render without a process is the evidence that the probe brings home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.hosts.description import machine, types
from sandbox.hosts.host import SimulatedHost
from tests.unit.validation.machines.conftest import BOOT, Machine, nvml_document
from validation.evidence import Bundle, Item
from validation.facts import nvml
from validation.facts.assemble import assemble
from validation.verdict import Verdict

pytestmark = pytest.mark.system

INSTANCE = "i-0123456789abcdef0"
COLLECT = "import json; from validation.probe.nvml import collect; print(json.dumps(collect()))"
GATHER = """
import json, os
from validation.probe.collectors import collectors
from validation.probe.files import Root
from validation.probe.main import gather
class Wire:
    items = []
    def evidence(self, item): self.items.append(item)
gather(collectors(Root(os.environ["KILN_ROOT"])), Wire(), 60.0)
print(json.dumps(Wire.items))
"""


def run(host: SimulatedHost, code: str, repository: Path) -> str:
    environment = {
        "PATH": f"{host.folder / 'bin'}",
        "PYTHONPATH": str(repository),
        "LD_LIBRARY_PATH": str(host.folder / "lib"),
        "KILN_STUB_MACHINE": str(host.folder / "machine.txt"),
        "KILN_STUB_UID": "0",
        "KILN_ROOT": str(host.folder / "root"),
        "HOME": os.environ.get("HOME", "/"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(folder: Path, instance_type: str) -> SimulatedHost:
    efa = machine(instance_type).efa
    count = len(efa.addresses) if efa else 0
    instance = "i-0123456789abcdef0"
    return SimulatedHost.create(
        folder, "h1", "gpu-a", instance_type, efa_count=count, instance_id=instance, boot_id=BOOT
    )


@pytest.mark.parametrize("instance_type", types())
def test_the_rendered_nvml_document_is_what_the_binding_says(
    instance_type: str, tmp_path: Path, repository: Path
) -> None:
    host = made(tmp_path, instance_type)
    said = run(host, COLLECT, repository)
    rendered = json.dumps(nvml_document((host.folder / "machine.txt").read_text()))
    assert nvml.parse(said) == nvml.parse(rendered)
    if machine(instance_type).pairs != "PHB" or len(nvml.parse(said).gpus) > 1:
        assert nvml.p2p(said) == nvml.p2p(rendered)


@pytest.mark.parametrize("instance_type", ["p5.48xlarge", "g4dn.xlarge"])
def test_the_rendered_evidence_gives_the_facts_of_the_probe(
    instance_type: str, tmp_path: Path, repository: Path
) -> None:
    host = made(tmp_path, instance_type)
    items = {item["name"]: Item.from_dict(item) for item in json.loads(run(host, GATHER, repository))}
    rendered = Machine(instance_type)
    assert items.keys() == rendered.bundle.items.keys()
    gathered = assemble(Bundle("gpu-a", items))
    here = assemble(rendered.bundle)
    assert gathered.gaps().keys() == here.gaps().keys()
    assert rendered.verdict({}) is Verdict.PASS
    different = {type(fact).__name__ for fact in gathered if here.need(type(fact)) != fact}
    assert different == set()
