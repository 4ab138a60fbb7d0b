"""The catalogue against EC2's own description of its types, and against the wiring that captures show."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from profiles import catalog
from profiles.models import Expected, InstanceProfile

NOT_IN_DATABASE = {"p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p6e-gb200.36xlarge"}


@pytest.fixture(scope="module")
def ec2() -> dict[str, Any]:
    """EC2's instance types as moto keeps them; read from the installed package, which is not loaded: it is large."""
    spec = importlib.util.find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    types: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return types


def value(expected: Expected[Any] | None) -> Any:
    return expected.value if expected else None


def aws_profiles() -> list[InstanceProfile]:
    profiles = [catalog.load(name) for name in catalog.types()]
    return [profile for profile in profiles if profile is not None and profile.provider == "aws"]


def test_only_the_types_that_the_database_lacks_go_unchecked(ec2: dict[str, Any]) -> None:
    missing = {profile.instance_type for profile in aws_profiles()} - set(ec2)
    assert missing <= NOT_IN_DATABASE


def test_every_type_with_nvidia_gpus_has_a_profile_and_every_other_accelerator_is_named(ec2: dict[str, Any]) -> None:
    nvidia = {name for name, entry in ec2.items() if "GpuInfo" in entry}
    others = {
        name
        for name, entry in ec2.items()
        if {"NeuronInfo", "InferenceAcceleratorInfo", "FpgaInfo", "MediaAcceleratorInfo"} & set(entry)
    }
    assert nvidia - set(catalog.types()) == set()
    assert {name for name in others if not catalog.foreign(name)} == set()
    assert {name for name in catalog.types() if catalog.foreign(name)} == set()


@pytest.mark.parametrize("name", [name for name in catalog.types() if not name.startswith("ecs.")])
def test_gpu_memory_is_near_what_the_database_says(name: str, ec2: dict[str, Any]) -> None:
    """EC2's figures are of another kind than the driver's (22888 MiB for an A10G that prints 23028), but near."""
    profile = catalog.load(name)
    assert profile is not None
    if name not in NOT_IN_DATABASE:
        size = ec2[name]["GpuInfo"]["Gpus"][0]["MemoryInfo"]["SizeInMiB"]
        assert profile.gpu.memory_mib.floor <= 1.08 * size
        assert profile.gpu.memory_mib.ceiling >= 0.93 * size


@pytest.mark.parametrize("name", [name for name in catalog.types() if not name.startswith("ecs.")])
def test_generated_facts_equal_the_database(name: str, ec2: dict[str, Any]) -> None:
    profile = catalog.load(name)
    assert profile is not None
    if name in NOT_IN_DATABASE:
        assert profile.network.efa_max.value == len(profile.network.efa_cards.value)
        return
    entry = ec2[name]
    network, storage = entry["NetworkInfo"], entry["EbsInfo"]["EbsOptimizedInfo"]
    cards = network["NetworkCards"]
    gpu = entry["GpuInfo"]["Gpus"][0]
    disks = entry.get("InstanceStorageInfo", {}).get("Disks", [])
    efa_cards = tuple(card["NetworkCardIndex"] for card in cards if "efa" in card["InterfaceTypes"])
    assert value(profile.vcpus) == entry["VCpuInfo"]["DefaultVCpus"]
    assert value(profile.memory_gib) == entry["MemoryInfo"]["SizeInMiB"] / 1024
    assert profile.architecture == entry["ProcessorInfo"]["SupportedArchitectures"][0]
    assert profile.gpu.count.value == (gpu["Count"] or gpu["LogicalGpuCount"])
    assert profile.network.efa_max.value == network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    assert value(profile.network.cards) == network["MaximumNetworkCards"]
    assert profile.network.efa_cards.value == (efa_cards if network["EfaSupported"] else ())
    assert value(profile.network.enis_per_card) == cards[0]["MaximumNetworkInterfaces"]
    assert value(profile.storage.instance_store_count) == sum(disk["Count"] for disk in disks)
    assert value(profile.storage.instance_store_gb) == (disks[0]["SizeInGB"] if disks else None)
    assert value(profile.storage.ebs_iops_max) == storage["MaximumIops"]
    assert value(profile.storage.ebs_throughput_mbps_max) == storage["MaximumThroughputInMBps"]


def test_p3_is_a_hybrid_mesh_whose_rows_add_up_to_six_links() -> None:
    profile = catalog.load("p3.16xlarge")
    assert profile is not None
    assert profile.links.pairs is not None
    rows = profile.links.pairs.value
    assert isinstance(rows, tuple)
    for index, row in enumerate(rows):
        links = Counter(row)
        assert links["NV1"] + 2 * links["NV2"] == 6
        assert row[index] == "X"
        assert [rows[other][index] for other in range(8)] == list(row)


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("p3.16xlarge", 6),
        ("p4d.24xlarge", 12),
        ("p5.48xlarge", 18),
        ("g4dn.xlarge", 0),
        ("g6.xlarge", 0),
        ("g5.48xlarge", 0),
    ],
)
def test_nvlinks_are_those_of_a_healthy_board(name: str, links: int) -> None:
    profile = catalog.load(name)
    assert profile is not None
    assert profile.links.nvlinks is not None
    assert profile.links.nvlinks.value == links


@pytest.mark.parametrize("name", ["g4dn.xlarge", "g5.xlarge", "g5.48xlarge", "g6.xlarge", "g6e.xlarge"])
def test_x8_is_by_design_on_the_g_families(name: str) -> None:
    profile = catalog.load(name)
    assert profile is not None
    assert profile.links.pcie_width is not None
    assert profile.links.pcie_width.value == 8


def test_fabric_manager_is_needed_only_where_there_is_nvswitch() -> None:
    needing = {p.instance_type for p in aws_profiles() if value(p.needs.fabric_manager)}
    assert needing == {
        "p4d.24xlarge",
        "p4de.24xlarge",
        "p5.48xlarge",
        "p5e.48xlarge",
        "p5en.48xlarge",
        "p6-b200.48xlarge",
        "p6-b300.48xlarge",
    }


def test_efas_by_numa_node_add_up_to_all_of_them() -> None:
    for profile in aws_profiles():
        nodes = profile.network.efa_nodes
        assert nodes is None or sum(nodes.value) == profile.network.efa_max.value, profile.instance_type
        assert nodes is None or value(profile.numa.nodes) == len(nodes.value), profile.instance_type


def test_volta_cannot_run_the_open_kernel_module_and_blackwell_cannot_run_another() -> None:
    modules = {p.instance_type: p.needs.kernel_modules.value for p in aws_profiles()}
    assert modules["p3.16xlarge"] == ("proprietary",)
    assert modules["p6-b200.48xlarge"] == ("open",)
    assert modules["p5.48xlarge"] == ("open", "proprietary")
