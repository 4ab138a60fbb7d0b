"""Topology: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.topology import NumaAffinity, NumaNodes, P2pStatus, TopologyPairs
from validation.facts.gpu import GpuInventory
from validation.facts.host import NumaMap, P2pMatrix, Topology
from validation.facts.missing import Missing, Reason
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


RANGE = Missing(Reason.NOT_APPLICABLE, "0-1")
MINUS_ONE = Missing(Reason.NOT_APPLICABLE, "-1")


def cells(h: Host, **changes: str) -> Host:
    """Change cells of the pair matrix: ``cells(h, _0_1="SYS")``."""
    old = h.facts().need(Topology)
    new = {tuple(int(n) for n in key[1:].split("_")): value for key, value in changes.items()}
    return h.put(Topology(old.gpus, {**old.links, **new}, old.cpu_affinity, old.numa))  # type: ignore[dict-item]


def one_gpu_unlinked(h: Host, gpu: int, word: str) -> Host:
    old = h.facts().need(Topology)
    links = {pair: word if gpu in pair else cell for pair, cell in old.links.items()}
    return h.put(Topology(old.gpus, links, old.cpu_affinity, old.numa))


def peers(h: Host, word: str, *pairs: tuple[int, int]) -> Host:
    old = h.facts().need(P2pMatrix)
    status = {pair: word if cell != "X" and (not pairs or pair in pairs) else cell for pair, cell in old.status.items()}
    return h.put(P2pMatrix("r", old.gpus, status))


def of_capability(h: Host, capability: str) -> Host:
    return h.put(replace(h.facts().need(P2pMatrix), capability=capability))


def nodes(h: Host, **changes: int | Missing) -> Host:
    """Change the NUMA node of GPUs, in sysfs."""
    old = h.facts().need(NumaMap)
    places = {str(h.gpus[int(key[1:])].pci_address): value for key, value in changes.items()}
    return h.put(NumaMap(old.cpus, old.distances, {**old.gpu_node, **places}))


def unreadable_nodes(h: Host, gpu: int) -> Host:
    old = h.facts().need(Topology)
    h.put(Topology(old.gpus, old.links, old.cpu_affinity, {**old.numa, gpu: RANGE}))
    return nodes(h, **{f"_{gpu}": MINUS_ONE})


def numa(h: Host, count: int, distance: int) -> Host:
    cpus = {node: frozenset({node}) for node in range(count)}
    far = {(a, b): 10 if a == b else distance for a in cpus for b in cpus}
    return h.put(NumaMap(cpus, far, h.facts().need(NumaMap).gpu_node))


def memory_only_node(h: Host) -> Host:
    old = h.facts().need(NumaMap)
    return h.put(NumaMap({**old.cpus, 2: frozenset()}, old.distances, old.gpu_node))


NO_MAP = "so there is nothing to judge against (advisory on this type: no capture of the NUMA map of this type)"
NO_P2P = "so there is nothing to judge against (advisory on this type: no capture of topo -p2p of this type)"
NO_WORD = "the driver does not tell whether they can reach each other (U)"
NO_PAIRS = "so there is nothing to judge against (advisory on this type: no capture of topo -m of this type)"


def partitioned(h: Host, *gpus: int) -> Host:
    """GPUs in MIG mode: no NVLink, no peers."""
    for gpu in gpus:
        h = one_gpu_unlinked(h.gpu(gpu, mig_enabled=True), gpu, "SYS")
    return peers(h, "TNS", *(pair for pair in h.facts().need(P2pMatrix).status if set(pair) & set(gpus)))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: partitioned(h, 3),
        [
            "UNKNOWN GPU3: GPU 3 in MIG mode: the pairs cannot be judged; see gpu.mig",
            "PASS host: all pairs of the other 7 GPUs: NV18",
        ],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: one_gpu_unlinked(partitioned(h, 3), 5, "SYS"),
        [
            "UNKNOWN GPU3: GPU 3 in MIG mode: the pairs cannot be judged; see gpu.mig",
            (
                "FAIL GPU5: 6 pairs not connected as built: GPU0-GPU5 SYS instead of NV18, "
                "GPU1-GPU5 SYS instead of NV18, GPU2-GPU5 SYS instead of NV18, GPU4-GPU5 SYS instead of NV18 and 2 more"
            ),
        ],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: partitioned(h, *range(8)).expecting(mig=True),
        ["NOT_APPLICABLE host: GPUs 0-7 in MIG mode, as the stack asked: no peer to reach"],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: partitioned(h, 3),
        [
            "UNKNOWN GPU3: GPU 3 in MIG mode: the pairs cannot be judged; see gpu.mig",
            "PASS host: all 42 pairs OK",
        ],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: peers(partitioned(h, 3).expecting(mig=True), "NS", (0, 1), (1, 0)),
        [
            "NOT_APPLICABLE GPU3: GPU 3 in MIG mode, as the stack asked: no peer to reach",
            "FAIL GPU0-GPU1: GPU0-GPU1 NS",
        ],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: partitioned(h, *range(8)).expecting(mig=True),
        ["NOT_APPLICABLE host: GPUs 0-7 in MIG mode, as the stack asked: no peer to reach"],
    ),
    (TopologyPairs, "p5.48xlarge", lambda h: h, ["PASS host: all pairs of 8 GPUs: NV18"]),
    (TopologyPairs, "p3.16xlarge", lambda h: h, ["PASS host: all pairs of 8 GPUs: as on a good machine"]),
    (TopologyPairs, "g5.48xlarge", lambda h: h, ["PASS host: all pairs of 8 GPUs: PHB"]),
    (
        TopologyPairs,
        "g5.xlarge",
        lambda h: h.drop(Topology),
        ["NOT_APPLICABLE host: this machine has one GPU: there is no pair"],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: cells(h, _2_5="SYS", _5_2="SYS"),
        ["FAIL GPU2-GPU5: 1 pair not connected as built: GPU2-GPU5 SYS instead of NV18"],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: cells(h, _5_2="SYS"),
        ["FAIL GPU5-GPU2: 1 pair not connected as built: GPU5-GPU2 SYS instead of NV18"],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: cells(h, _0_1="Unknown", _1_0="Unknown"),
        ["UNKNOWN host: GPU0-GPU1: the driver does not tell a word for how they are connected (N/A, Unknown)"],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: cells(h, _0_1="N/A", _2_3="SYS", _3_2="SYS"),
        [
            "UNKNOWN host: GPU0-GPU1: the driver does not tell a word for how they are connected (N/A, Unknown)",
            "FAIL GPU2-GPU3: 1 pair not connected as built: GPU2-GPU3 SYS instead of NV18",
        ],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: cells(h, _2_3="SOC"),
        ["FAIL GPU2-GPU3: 1 pair not connected as built: GPU2-GPU3 SYS instead of NV18"],
    ),
    (
        TopologyPairs,
        "p4d.24xlarge",
        lambda h: one_gpu_unlinked(h, 3, "NODE"),
        [
            (
                "FAIL GPU3: 7 pairs not connected as built: GPU0-GPU3 NODE instead of NV12, "
                "GPU1-GPU3 NODE instead of NV12, "
                "GPU2-GPU3 NODE instead of NV12, GPU3-GPU4 NODE instead of NV12 and 3 more"
            )
        ],
    ),
    (
        TopologyPairs,
        "p3.16xlarge",
        lambda h: cells(h, _0_1="PHB", _1_0="PHB"),
        ["FAIL GPU0-GPU1: 1 pair not connected as built: GPU0-GPU1 PHB instead of NV1"],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: h.put(Topology((0, 1), {(0, 1): "NV18", (1, 0): "NV18"}, {}, {})),
        ["UNKNOWN host: 2 of 8 GPUs: which is which cannot be told; see gpu.count"],
    ),
    (
        TopologyPairs,
        "g6.12xlarge",
        lambda h: h,
        [f"UNKNOWN host: the profile of g6.12xlarge gives no pair matrix (seen: PHB for 12), {NO_PAIRS}"],
    ),
    (
        TopologyPairs,
        "p5.48xlarge",
        lambda h: h.drop(Topology, "nvidia-smi topo -m: no answer within 20 s"),
        ["UNKNOWN host: could not look: nvidia-smi topo -m: no answer within 20 s"],
    ),
    (P2pStatus, "p5.48xlarge", lambda h: h, ["PASS host: all 56 pairs OK"]),
    (P2pStatus, "p4d.24xlarge", lambda h: h, ["PASS host: all 56 pairs OK"]),
    (P2pStatus, "g6.xlarge", lambda h: h, ["NOT_APPLICABLE host: this machine has one GPU: there is no pair"]),
    (
        P2pStatus,
        "g6.12xlarge",
        lambda h: h,
        ["NOT_APPLICABLE host: all 12 pairs CNS: no peer access, by design of this machine"],
    ),
    (P2pStatus, "p5.48xlarge", lambda h: peers(h, "CNS", (1, 4), (4, 1)), ["FAIL GPU1-GPU4: GPU1-GPU4 CNS"]),
    (P2pStatus, "p5.48xlarge", lambda h: peers(h, "DR", (1, 4)), ["FAIL GPU1-GPU4: GPU1-GPU4 DR"]),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: peers(h, "U"),
        [f"UNKNOWN host: GPU0-GPU1, GPU0-GPU2, GPU0-GPU3, GPU0-GPU4 and 24 more: {NO_WORD}"],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: peers(peers(h, "U", (0, 1), (1, 0)), "NS", (2, 3)),
        [f"UNKNOWN host: GPU0-GPU1: {NO_WORD}", "FAIL GPU2-GPU3: GPU2-GPU3 NS"],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: of_capability(peers(h, "NS", (0, 1)), "n"),
        ["UNKNOWN host: a matrix of another capability than read or write (n)"],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: of_capability(peers(h, "NS", (0, 1)), ""),
        ["UNKNOWN host: a matrix of another capability than read or write (not told which)"],
    ),
    (P2pStatus, "p5.48xlarge", lambda h: of_capability(h, ""), ["PASS host: all 56 pairs OK"]),
    (P2pStatus, "p5.48xlarge", lambda h: of_capability(h, "rw"), ["PASS host: all 56 pairs OK"]),
    (P2pStatus, "g6.12xlarge", lambda h: peers(h, "OK", (0, 1)), ["WARN GPU0-GPU1: GPU0-GPU1 OK"]),
    (
        P2pStatus,
        "g6.12xlarge",
        lambda h: peers(h, "U", (0, 1)),
        [
            f"UNKNOWN host: GPU0-GPU1: {NO_WORD}",
            "NOT_APPLICABLE host: all 11 pairs CNS: no peer access, by design of this machine",
        ],
    ),
    (
        P2pStatus,
        "g5.48xlarge",
        lambda h: peers(h, "CNS"),
        [f"UNKNOWN host: the profile of g5.48xlarge gives no P2P status (seen: CNS for 56), {NO_P2P}"],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: h.put(P2pMatrix("r", (0,), {(0, 0): "X"})),
        ["UNKNOWN host: 1 of 8 GPUs: which is which cannot be told; see gpu.count"],
    ),
    (
        P2pStatus,
        "p5.48xlarge",
        lambda h: h.put(P2pMatrix("r", tuple(range(7)), {(a, b): "OK" for a in range(7) for b in range(7) if a != b})),
        ["UNKNOWN host: 7 of 8 GPUs: which is which cannot be told; see gpu.count"],
    ),
    (P2pStatus, "p5.48xlarge", lambda h: h.drop(P2pMatrix), ["UNKNOWN host: could not look: tool: not found"]),
    (NumaAffinity, "p5.48xlarge", lambda h: h, ["PASS host: GPUs on NUMA nodes 0 0 0 0 1 1 1 1"]),
    (
        NumaAffinity,
        "p3.16xlarge",
        lambda h: h.drop(NumaMap),
        ["NOT_APPLICABLE host: the platform does not expose where the GPUs hang"],
    ),
    (
        NumaAffinity,
        "g5.48xlarge",
        lambda h: h,
        ["NOT_APPLICABLE host: the platform does not expose where the GPUs hang"],
    ),
    (NumaAffinity, "g5.xlarge", lambda h: h, ["PASS host: one NUMA node: every GPU is local"]),
    (NumaAffinity, "p5.48xlarge", lambda h: nodes(h, _2=1), ["FAIL GPU2: on NUMA node 1"]),
    (NumaAffinity, "p5.48xlarge", lambda h: nodes(h, _2=MINUS_ONE), ["PASS host: GPUs on NUMA nodes 0 0 0 0 1 1 1 1"]),
    (
        NumaAffinity,
        "p5.48xlarge",
        lambda h: unreadable_nodes(h, 2),
        ["UNKNOWN GPU2: its NUMA node is not known: neither sysfs nor topo -m tells it"],
    ),
    (
        NumaAffinity,
        "p5.48xlarge",
        lambda h: nodes(h, _2=MINUS_ONE).drop(Topology),
        ["UNKNOWN GPU2: its NUMA node is not known: neither sysfs nor topo -m tells it"],
    ),
    (
        NumaAffinity,
        "g6.48xlarge",
        lambda h: numa(h, 2, 32),
        [f"UNKNOWN host: the profile of g6.48xlarge gives no NUMA map, {NO_MAP}"],
    ),
    (NumaAffinity, "p5.48xlarge", lambda h: h.drop(NumaMap), ["UNKNOWN host: could not look: tool: not found"]),
    (NumaAffinity, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (NumaNodes, "p5.48xlarge", lambda h: h, ["PASS host: 2 NUMA nodes, distance 32"]),
    (NumaNodes, "p4d.24xlarge", lambda h: h, ["PASS host: 2 NUMA nodes, distance 21"]),
    (NumaNodes, "p5.48xlarge", memory_only_node, ["PASS host: 2 NUMA nodes, distance 32"]),
    (
        NumaNodes,
        "g6.xlarge",
        lambda h: h,
        ["PASS host: 1 NUMA node with CPUs; the type's number is not in its profile"],
    ),
    (NumaNodes, "p5.48xlarge", lambda h: numa(h, 1, 10), ["FAIL host: 1 NUMA node with CPUs"]),
    (NumaNodes, "p5.48xlarge", lambda h: numa(h, 2, 21), ["WARN host: NUMA distance 21"]),
    (
        NumaNodes,
        "p5.48xlarge",
        lambda h: h.put(NumaMap({}, {}, {})),
        ["UNKNOWN host: no NUMA node with CPUs was found"],
    ),
    (NumaNodes, "p5.48xlarge", lambda h: h.drop(NumaMap), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_topology(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


@pytest.mark.parametrize(
    ("instance_type", "pair", "closed"),
    [
        ("p4d.24xlarge", (1, 4), True),
        ("p3.16xlarge", (0, 3), True),
        ("p3.16xlarge", (0, 5), False),  # no link in the cube mesh: peer access over PCIe may be missing by design
        ("g5.48xlarge", (1, 4), False),
    ],
)
def test_a_pair_that_nvlink_connects_without_peer_access_is_excused_on_no_type(
    host: Callable[[str], Host], instance_type: str, pair: tuple[int, int], closed: bool
) -> None:
    one = peers(host(instance_type), "TNS", pair, pair[::-1])
    found = judge_facts(one.facts(), one.expected, "h", [P2pStatus(), NumaNodes()])
    assert combine(found) is (Verdict.FAIL if closed else Verdict.WARN)
    without = one.drop(Topology)
    assert combine(judge_facts(without.facts(), without.expected, "h", [P2pStatus(), NumaNodes()])) is Verdict.WARN
