"""Links: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.links import NvlinkActive, NvlinkRate, PcieWidth
from validation.checks.presence import GpuName
from validation.facts.gpu import GpuInventory, NvLink, PcieLink
from validation.facts.missing import ABSENT, Missing, Reason
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


NOT_SUPPORTED = Missing(Reason.NOT_APPLICABLE, "Not Supported")
DENIED = Missing(Reason.COULD_NOT_LOOK, "no permission")


def links(count: int, *down: int, rate: float | Missing = 26.562) -> tuple[NvLink, ...]:
    return tuple(NvLink(index, index not in down, rate) for index in range(count))


def width(lanes: int | Missing) -> PcieLink:
    return PcieLink(1, 4, lanes, 16, 0)


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (NvlinkActive, "p5.48xlarge", lambda h: h, ["PASS host: 18 NVLinks active on each of 8 GPUs"]),
    (NvlinkActive, "p4d.24xlarge", lambda h: h, ["PASS host: 12 NVLinks active on each of 8 GPUs"]),
    (NvlinkActive, "p3.16xlarge", lambda h: h, ["PASS host: 6 NVLinks active on each of 8 GPUs"]),
    (NvlinkActive, "g6.xlarge", lambda h: h, ["NOT_APPLICABLE host: this machine has no NVLink by design"]),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.gpu(3, nvlinks=links(18, 7)),
        ["FAIL GPU3/link7: 17 of 18 NVLinks active, link 7 is down"],
    ),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.gpu(3, nvlinks=links(18, 2, 7)).gpu(5, nvlinks=links(18, *range(18))),
        [
            "FAIL GPU3: 16 of 18 NVLinks active, links 2, 7 are down",
            "FAIL GPU5: 0 of 18 NVLinks active, links 0-17 are down",
        ],
    ),
    (
        NvlinkActive,
        "p4d.24xlarge",
        lambda h: h.gpu(0, nvlinks=()),
        ["FAIL GPU0: 0 of 12 NVLinks active, the driver lists no link"],
    ),
    (NvlinkActive, "p4d.24xlarge", lambda h: h.gpu(0, nvlinks=links(18)), ["UNKNOWN GPU0: 18 of 12 NVLinks active"]),
    (NvlinkActive, "p5.48xlarge", lambda h: h.gpu(1, nvlinks=ABSENT), ["UNKNOWN GPU1: NVLink state: absent"]),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.gpu(1, nvlinks=(*links(17), NvLink(17, DENIED))),
        ["UNKNOWN GPU1: state of link 17: could not look (no permission)"],
    ),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.gpu(1, nvlinks=(*links(17), NvLink(17, Missing(Reason.FAULT, "GPU is lost")))),
        ["FAIL GPU1: state of link 17: fault (GPU is lost)"],
    ),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.every(nvlinks=NOT_SUPPORTED, mig_enabled=True).expecting(mig=True),
        ["NOT_APPLICABLE host: NVLink cannot be read while MIG is on, as the stack asked"],
    ),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.gpu(4, nvlinks=NOT_SUPPORTED),
        ["UNKNOWN GPU4: NVLink state: not applicable (Not Supported)"],
    ),
    (
        NvlinkActive,
        "p5.4xlarge",
        lambda h: h.gpu(0, nvlinks=links(18, 4)),
        [
            (
                "UNKNOWN GPU0: the profile of p5.4xlarge gives no number of NVLinks (seen: 17 active of 18), so there "
                "is nothing to judge against (advisory on this type: the NVLinks of a part of the board were never "
                "captured)"
            )
        ],
    ),
    (NvlinkActive, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (PcieWidth, "p5.48xlarge", lambda h: h, ["PASS host: x16 on each of 8 GPUs"]),
    (PcieWidth, "g6e.xlarge", lambda h: h, ["PASS host: x8 on each of 1 GPU"]),
    (PcieWidth, "p5.48xlarge", lambda h: h.gpu(6, pcie=width(8)), ["FAIL GPU6: PCIe link is x8"]),
    (PcieWidth, "g5.xlarge", lambda h: h.gpu(0, pcie=width(16)), ["WARN GPU0: PCIe link is x16"]),
    (
        PcieWidth,
        "g5.xlarge",
        lambda h: h.gpu(0, pcie=width(NOT_SUPPORTED)),
        ["UNKNOWN GPU0: PCIe width: not applicable (Not Supported)"],
    ),
    (PcieWidth, "g5.xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (
        PcieWidth,
        "g4dn.metal",
        lambda h: h.only(1),
        [
            (
                "UNKNOWN GPU0: the profile of g4dn.metal gives no PCIe width (seen: x16), so there is nothing to judge "
                "against (advisory on this type: no source tells the PCIe width of this type)"
            )
        ],
    ),
    (
        PcieWidth,
        "g4dn.metal",
        lambda h: h,  # what all GPUs show alike is told once
        [
            (
                "UNKNOWN host: the profile of g4dn.metal gives no PCIe width (seen: x16), so there is nothing to judge "
                "against (advisory on this type: no source tells the PCIe width of this type)"
            )
        ],
    ),
    (
        PcieWidth,
        "g5g.metal",
        lambda h: h.gpu(1, pcie=width(4)),  # and what one shows otherwise is not lost in it
        [
            (
                f"UNKNOWN GPU{gpu}: the profile of g5g.metal gives no PCIe width (seen: x{lanes}), so there is nothing "
                "to judge against (advisory on this type: no source tells the PCIe width of this type)"
            )
            for gpu, lanes in ((0, 16), (1, 4))
        ],
    ),
    (NvlinkRate, "p5.48xlarge", lambda h: h, ["PASS host: 26.562 GB/s on every active link of 8 GPUs"]),
    (NvlinkRate, "g4dn.xlarge", lambda h: h, ["NOT_APPLICABLE host: this machine has no NVLink by design"]),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.gpu(2, nvlinks=(*links(17), NvLink(17, True, 53.125))),
        ["UNKNOWN GPU2: link 17 at 53.125 GB/s, which its generation cannot do"],
    ),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.gpu(2, nvlinks=(*links(17), NvLink(17, True, 13.281))),
        ["FAIL GPU2: link 17 at 13.281 GB/s"],
    ),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.every(nvlinks=links(18, rate=ABSENT)).gpu(0, nvlinks=links(18)).only(2),
        ["WARN GPU1: the driver prints no rate for any active NVLink"],
    ),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.gpu(1, nvlinks=DENIED),
        ["UNKNOWN GPU1: NVLink state: could not look (no permission)"],
    ),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.every(nvlinks=NOT_SUPPORTED, mig_enabled=True).expecting(mig=True),
        ["NOT_APPLICABLE host: NVLink cannot be read while MIG is on, as the stack asked"],
    ),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.only(1).gpu(0, nvlinks=(*links(17), NvLink(17, True, DENIED))),
        ["UNKNOWN GPU0: rate of an active NVLink: could not look (no permission)"],
    ),
    (
        NvlinkRate,
        "p5.48xlarge",
        lambda h: h.profiled(links={"nvlink_rate_gbps": None}).only(1),
        [
            (
                "UNKNOWN GPU0: the profile of p5.48xlarge gives no NVLink rate (seen: 26.562 GB/s), so there is "
                "nothing to judge against"
            )
        ],
    ),
    (
        NvlinkActive,
        "p5.48xlarge",
        lambda h: h.gpu(3, nvlinks=NOT_SUPPORTED, mig_enabled=True),
        ["UNKNOWN GPU3: NVLink cannot be read while MIG is on"],
    ),
    (NvlinkRate, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_links(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


def judged(host: Host) -> tuple[Verdict, list[str]]:
    """Whether the gate would open, and what closes it: ``VERDICT subject: message``."""
    findings = judge_facts(host.facts(), host.expected, "h", [NvlinkActive(), GpuName()])
    return combine(findings), [
        f"{f.verdict.value} {f.subject}: {f.message}" for f in findings if f.verdict.value == "FAIL"
    ]


UNLINKED = "and such modules are linked in every machine of several"
# Types whose number of NVLinks no source gives: instance type, active links of each GPU, what closes the gate.
WITHOUT_A_NUMBER: list[tuple[str, list[int], list[str]]] = [
    ("ecs.ebmgn7e.32xlarge", [0] * 8, [f"FAIL h: no NVLink is active on any of 8 GPUs, {UNLINKED}"]),
    ("ecs.gn8v-2x.8xlarge", [0, 0], [f"FAIL h: no NVLink is active on any of 2 GPUs, {UNLINKED}"]),
    ("p3.8xlarge", [0] * 4, [f"FAIL h: no NVLink is active on any of 4 GPUs, {UNLINKED}"]),
    ("p3.8xlarge", [4, 4, 5, 0], ["FAIL h/GPU3: 0 NVLinks active, where others of its kind have 1 or more"]),
    ("p3.8xlarge", [4, 4, 5, 5], []),  # half of a hybrid cube mesh
    ("ecs.gn7e-c16g1.8xlarge", [12, 11], ["FAIL h/GPU1: 11 NVLinks active, where others of its kind have 12 or more"]),
    ("ecs.gn7e-c16g1.16xlarge", [12] * 4, []),
    ("ecs.gn7s-c32g1.16xlarge", [0, 0], []),  # A30 cards without a bridge
    ("p5.4xlarge", [0], []),
]  # fmt: skip


@pytest.mark.parametrize(("instance_type", "active", "closing"), WITHOUT_A_NUMBER)
def test_modules_that_are_not_linked_close_the_gate_even_where_no_source_gives_the_number(
    host: Callable[[str], Host], instance_type: str, active: list[int], closing: list[str]
) -> None:
    one = host(instance_type)
    for at, up in enumerate(active):
        one.gpu(at, nvlinks=links(18, *range(up, 18)))
    verdict, said = judged(one)
    assert said == closing
    assert verdict.opens_gate is not bool(closing)


def test_modules_without_any_link_of_their_own_are_not_linked_and_those_in_mig_mode_are_not_asked(
    host: Callable[[str], Host],
) -> None:
    assert judged(host("ecs.gn7e-c16g1.8xlarge").every(nvlinks=NOT_SUPPORTED))[0] is Verdict.FAIL
    assert judged(host("ecs.gn7e-c16g1.8xlarge").every(nvlinks=DENIED))[0] is Verdict.UNKNOWN
    assert judged(host("ecs.gn7e-c16g1.8xlarge").every(nvlinks=NOT_SUPPORTED, mig_enabled=True))[1] == []
    cards = host("ecs.gn7-c13g1.13xlarge").every(name="NVIDIA A100-PCIE-40GB", nvlinks=links(12, *range(12)))
    assert judged(cards)[0].opens_gate


@pytest.mark.parametrize("instance_type", ["ecs.gn7i-c32g1.8xlarge", "ecs.gn8is.2xlarge", "g5.xlarge"])
def test_a_link_of_fewer_lanes_than_any_machine_is_wired_with_is_excused_on_no_type(
    host: Callable[[str], Host], instance_type: str
) -> None:
    for lanes, verdict in ((1, Verdict.FAIL), (2, Verdict.FAIL), (8, Verdict.PASS)):
        one = host(instance_type).every(pcie=width(lanes))
        found = judge_facts(one.facts(), one.expected, "h", [PcieWidth(), GpuName()])
        assert combine(found).opens_gate is verdict.opens_gate
