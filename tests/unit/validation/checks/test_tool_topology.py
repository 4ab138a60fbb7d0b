"""What a pair matrix means alone: which GPU is wired otherwise than all the others."""

from __future__ import annotations

import pytest

from profiles import catalog
from profiles.models import Expectation
from validation.checks.tool_topology import TopologyAlone
from validation.facts.host import Topology
from validation.facts.store import Facts


def wired(count: int, word: str, **others: str) -> Topology:
    """All pairs by one word, but for those named: ``_0_3="SYS"`` is the cell of GPU0's row and GPU3's column."""
    links = {(a, b): word for a in range(count) for b in range(count) if a != b}
    for key, other in others.items():
        a, b = (int(part) for part in key[1:].split("_"))
        links[a, b] = other
    return Topology(tuple(range(count)), links, {}, {})


def unlinked(count: int, word: str, gpu: int, other: str) -> Topology:
    pairs = [pair for peer in range(count) if peer != gpu for pair in ((gpu, peer), (peer, gpu))]
    return wired(count, word, **{f"_{a}_{b}": other for a, b in pairs})


CUBE_MESH = wired(
    4, "NV1", _0_3="NV2", _3_0="NV2", _1_2="NV2", _2_1="NV2"
)  # four V100: by design some pairs have two links


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (wired(8, "NV18"), []),
        (wired(8, "SYS"), []),
        (wired(1, ""), []),
        (CUBE_MESH, []),
        (unlinked(3, "NV4", 2, "SYS"), []),  # a bridged pair and a single card
        (unlinked(8, "PHB", 2, "SYS"), []),
        (
            unlinked(8, "NV18", 3, "NV17"),
            ["WARN GPU3: 7 pairs by NV17, where all others are connected by NV18"],
        ),
        (unlinked(8, "NV12", 5, "NODE"), ["WARN GPU5: 7 pairs by NODE, where all others are connected by NV12"]),
        (
            wired(4, "NV6", _1_2="SYS", _2_1="SYS"),
            ["WARN GPU1-GPU2: 1 pair by SYS, where all others are connected by NV6"],
        ),
        (wired(4, "NV6", _1_2="SYS"), ["WARN host: the two directions differ: GPU1-GPU2"]),
        (wired(2, "Unknown"), ["UNKNOWN host: the driver does not tell how 2 pairs of GPUs are connected"]),
    ],
)
def test_the_one_that_is_wired_otherwise_is_named_and_a_machine_built_uneven_is_not(
    topology: Topology, said: list[str]
) -> None:
    findings = list(TopologyAlone().evaluate(Facts({Topology: topology}), Expectation(instance_type="")))
    assert [f"{one.verdict.value} {one.subject}: {one.message}" for one in findings] == said
    assert all(one.remedy for one in findings)


def test_with_a_profile_the_machines_own_matrix_judges() -> None:
    expected = Expectation(instance_type="p5.48xlarge", profile=catalog.load("p5.48xlarge"))
    facts = Facts({Topology: unlinked(8, "NV18", 3, "NV17")})
    assert list(TopologyAlone().evaluate(facts, expected)) == []
