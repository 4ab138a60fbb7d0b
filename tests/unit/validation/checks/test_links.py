"""Links: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.links import NvlinkActive, NvlinkRate, PcieWidth
from validation.facts.gpu import GpuInventory, NvLink, PcieLink
from validation.facts.missing import ABSENT, Missing, Reason

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
