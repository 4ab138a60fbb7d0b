"""What a profile does not know, it says: every gap is advisory with its reason, and nothing is excused without need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from profiles import catalog
from profiles.models import InstanceProfile
from validation.checks import CHECKS


def _several(profile: InstanceProfile) -> bool:
    return profile.gpu.count.value > 1


# The check that needs a value, and whether a profile lacks it. A lack closes the gate unless it is advisory.
GAPS: Mapping[str, Callable[[InstanceProfile], bool]] = {
    "host.vcpus": lambda p: p.vcpus is None,
    "disk.instance_store": lambda p: p.storage.instance_store_count is None,
    "nvlink.links_active": lambda p: p.links.nvlinks is None,
    "nvlink.rate": lambda p: bool(p.links.nvlinks and p.links.nvlinks.value) and p.links.nvlink_rate_gbps is None,
    "fabric.state": lambda p: p.links.fabric is None,
    "pcie.width": lambda p: p.links.pcie_width is None,
    "topology.pairs": lambda p: _several(p) and p.links.pairs is None,
    "topology.p2p": lambda p: _several(p) and p.links.p2p is None,
    "numa.affinity": lambda p: p.numa.gpu_nodes is None and not (p.numa.nodes and p.numa.nodes.value == 1),
    "burnin.speed": lambda p: p.burn_in.gemm_fp16_tflops is None,
    "burnin.bandwidth": lambda p: p.burn_in.h2d_gbps is None or p.burn_in.d2h_gbps is None,
}


def load(name: str) -> InstanceProfile:
    profile = catalog.load(name)
    assert profile is not None
    return profile


@pytest.mark.parametrize("name", catalog.types())
def test_a_value_that_no_source_gives_warns_and_does_not_close_the_gate(name: str) -> None:
    profile = load(name)
    assert [check for check, lacks in GAPS.items() if lacks(profile) and check not in profile.advisory] == []


@pytest.mark.parametrize("name", catalog.types())
def test_no_profile_excuses_what_does_not_apply_to_it(name: str) -> None:
    """Where there is nothing to judge, an advisory line would only say that something is not known."""
    profile = load(name)
    nvlinks, nodes, manager = profile.links.nvlinks, profile.numa.nodes, profile.needs.fabric_manager
    idle = {
        "nvlink.links_active": nvlinks is not None and nvlinks.value == 0,
        "nvlink.rate": nvlinks is None or nvlinks.value == 0,
        "topology.pairs": not _several(profile),
        "topology.p2p": not _several(profile),
        "burnin.peers": not _several(profile),
        "numa.affinity": nodes is not None and nodes.value == 1,
        "fabric.manager": manager is not None and not manager.value,
        "fabric.manager_version": manager is not None and not manager.value,
    }
    assert [check for check, applies_not in idle.items() if applies_not and check in profile.advisory] == []


@pytest.mark.parametrize("name", catalog.types())
def test_every_advisory_line_names_a_check_and_gives_a_reason(name: str) -> None:
    advisory = load(name).advisory
    assert set(advisory) <= {check.id for check in CHECKS}
    assert all(len(reason) > 20 and not reason.endswith(".") for reason in advisory.values())


def test_what_needs_no_figure_of_the_type_is_excused_on_no_type() -> None:
    always = {"gpu.count", "gpu.lost", "gpu.pci_bus", "gpu.readable", "driver.loaded", "kernel.xid", "gpu.vgpu_license"}
    assert [name for name in catalog.types() if always & set(load(name).advisory)] == []


def test_a_board_whose_spread_nobody_published_is_excused_from_its_peers_on_the_types_of_every_cloud() -> None:
    told: dict[str, set[bool]] = {}
    for profile in map(load, catalog.types()):
        if _several(profile):
            told.setdefault(profile.gpu.board, set()).add("burnin.peers" in profile.advisory)
    assert {board for board, excused in told.items() if len(excused) > 1} == set()
    assert told["T4"] == told["A10"] == told["L40S"] == {True}
    assert told["A100-SXM4-80GB"] == told["H100-SXM5-80GB"] == {False}
