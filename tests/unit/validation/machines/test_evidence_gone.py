"""Take one piece of a healthy machine's evidence away, in every way that it can be gone: it is missed, or spare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sandbox.hosts.description import types
from validation.evidence import Item, Outcome
from validation.verdict import Verdict

if TYPE_CHECKING:
    from tests.unit.validation.machines.conftest import Machine

TYPES = ("p5.48xlarge", "p4d.24xlarge", "p3.16xlarge", "g4dn.xlarge")
EVERY_WAY = frozenset({"not gathered", "not found", "no answer", "denied", "broke", "cut off", "empty", "other words"})
NOT_THERE = frozenset({"not gathered", "not found"})


def ways(item: Item) -> Mapping[str, Item | None]:
    """What the item is where it is gone, in every way that the probe or a tool can bring about."""
    return {
        "not gathered": None,
        "not found": replace(item, outcome=Outcome.NOT_FOUND, stdout="", rc=None),
        "no answer": replace(item, outcome=Outcome.TIMEOUT, stdout="", rc=None),
        "denied": replace(item, outcome=Outcome.DENIED, stdout="", rc=1),
        "broke": replace(item, outcome=Outcome.ERROR, stdout="", rc=None, error="OSError: no memory"),
        "cut off": replace(item, truncated=True),
        "empty": replace(item, stdout=""),
        "other words": replace(item, stdout="Segmentation fault (core dumped)\n"),
    }


def spare(machine: Machine) -> dict[str, frozenset[str]]:
    """What this machine can do without, by item: the ways of being gone that no required check has to miss."""
    efa, profile = machine.expected.efa_count > 0, machine.profile
    switches = profile.needs.fabric_manager is not None and profile.needs.fabric_manager.value
    one = profile.gpu.count.value == 1
    store = profile.storage.instance_store_count
    found: dict[str, frozenset[str]] = {
        # One of two sources that tell the same may not be installed; one that is there and breaks is missed.
        "nvml": NOT_THERE,
        "nvidia-smi-q-x": NOT_THERE,
        "topo-p2p-r": EVERY_WAY,  # NVML has the matrix
        "nvlink-s": EVERY_WAY,  # NVML has the links
        "lspci": frozenset({"not found"}),  # /sys has the bus
        "sysfs-pcie": EVERY_WAY,  # lspci has the bus
        "nvcc": frozenset({"not found"}),  # the version files have the toolkit
        "cuda-version-files": frozenset({"not found", "empty"}),  # nvcc has the toolkit
        "instance": frozenset({"not found", "empty", "other words"}),  # who it is, the run judges: host.identity
        "efa-module": EVERY_WAY,  # it words a finding of efa.count
        # Nothing of these is pinned, and no machine here has InfiniBand.
        **dict.fromkeys(
            ("dcgmi-version", "nvidia-ctk", "efa-packages", "nccl-libraries", "peermem-modules"), EVERY_WAY
        ),
        **dict.fromkeys(
            ("df", "timedatectl", "processes", "acs", "rdma-counters"), EVERY_WAY
        ),  # not every good host tells them
        "nccl-plugins": EVERY_WAY,  # containers bring their own; unread, it warns
    }
    if one:
        found["topo-m"] = EVERY_WAY  # there is no pair
    if not (profile.links.nvlinks and profile.links.nvlinks.value):
        found["nvlink-e"] = EVERY_WAY
    if not switches:
        found.update(dict.fromkeys(("fabricmanager", "fabricmanager-version"), EVERY_WAY))
    found["fi-info"] = frozenset({"not found"}) if efa else EVERY_WAY  # ibv_devinfo has the devices
    if not efa:
        found["ibv-devinfo"] = EVERY_WAY
    if store is not None and store.value == 0:
        found["lsblk"] = EVERY_WAY
    return found


@pytest.mark.parametrize("name", types())
def test_a_healthy_machine_passes(machine_of: Callable[[str], Machine], name: str) -> None:
    machine = machine_of(name)
    assert [finding for finding in machine.findings({}) if not finding.verdict.opens_gate] == []
    assert machine.verdict({}) is Verdict.PASS


@pytest.mark.parametrize("name", TYPES)
def test_evidence_that_is_gone_in_any_way_is_missed_or_listed_as_spare(
    machine_of: Callable[[str], Machine], name: str
) -> None:
    machine = machine_of(name)
    allowed = spare(machine)
    assert set(allowed) <= set(machine.bundle.items)
    quiet = {
        item.name: {way for way, gone in ways(item).items() if machine.verdict({item.name: gone}).opens_gate}
        for item in machine.bundle.items.values()
    }
    assert {item: found for item, found in quiet.items() if found - allowed.get(item, frozenset())} == {}


@pytest.mark.parametrize("name", TYPES)
def test_no_two_sources_of_one_fact_can_be_gone_together(machine_of: Callable[[str], Machine], name: str) -> None:
    machine = machine_of(name)
    pairs = [("nvml", "nvidia-smi-q-x"), ("lspci", "sysfs-pcie"), ("nvcc", "cuda-version-files")]
    if machine.profile.gpu.count.value > 1:
        pairs.append(("topo-m", "sysfs-numa"))
    if machine.expected.efa_count:
        pairs.append(("fi-info", "ibv-devinfo"))
    for pair in pairs:
        assert not machine.verdict(machine.without(*pair)).opens_gate, pair


@pytest.mark.parametrize("name", TYPES)
def test_a_fact_told_by_one_tool_alone_is_missed_when_the_other_is_not_installed(
    machine_of: Callable[[str], Machine], name: str
) -> None:
    """Without NVML the peer matrix and the links are told by nvidia-smi alone."""
    machine = machine_of(name)
    if machine.profile.gpu.count.value > 1 and "topology.p2p" not in machine.profile.advisory:
        assert not machine.verdict(machine.without("nvml", "topo-p2p-r")).opens_gate
    if machine.profile.links.nvlinks and machine.profile.links.nvlinks.value:
        assert not machine.verdict(machine.without("nvml", "nvlink-s")).opens_gate
