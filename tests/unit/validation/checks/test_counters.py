"""Counters: rows for pass, trouble, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.counters import EccCorrected, NvlinkErrors, PcieReplays
from validation.facts.gpu import Ecc, GpuInventory, PcieLink
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.nvlink_errors import LinkErrors, NvLinkErrors

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


NONE = Missing(Reason.NOT_APPLICABLE, "N/A")
DENIED = Missing(Reason.COULD_NOT_LOOK, "no permission")


def counting(name: str, count: int) -> Callable[[Host], Host]:
    """One counter of GPU 3's link 7 stands at a number."""

    def change(h: Host) -> Host:
        errors = h.values[NvLinkErrors]
        assert isinstance(errors, NvLinkErrors)
        return h.put(replace(errors, counters=(*errors.counters, LinkErrors(3, 7, name, count))))

    return change


def uncounted(why: Missing) -> Callable[[Host], Host]:
    """Every GPU answers with a sentence instead of counters."""
    return lambda h: h.put(NvLinkErrors(tuple(range(8)), (), tuple((gpu, why) for gpu in range(8))))


SINCE_LOAD = "since the driver was loaded on 8 GPUs; no source gives a limit for that"
ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.gpu(0, ecc=Ecc(True, 177, 0)),
        ["PASS host: corrected ECC errors within the limit on 8 GPUs"],
    ),
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.gpu(0, ecc=Ecc(True, 20_000_001, 0)),
        ["WARN GPU0: 20000001 corrected ECC errors since the driver was loaded"],
    ),
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.every(ecc=Ecc()),
        ["NOT_APPLICABLE host: the driver counts no corrected errors here"],
    ),
    (
        EccCorrected,
        "p5.48xlarge",
        lambda h: h.gpu(0, ecc=Ecc(True, DENIED, 0)),
        ["UNKNOWN GPU0: corrected ECC errors: could not look (no permission)"],
    ),
    (EccCorrected, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (PcieReplays, "p5.48xlarge", lambda h: h, [f"PASS host: 0 {SINCE_LOAD}"]),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.every(pcie=PcieLink(replays=106)).gpu(0, pcie=PcieLink(replays=174)),  # eight healthy H100
        [f"PASS host: 106 to 174 {SINCE_LOAD}"],
    ),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.gpu(0, pcie=PcieLink(replays=Missing(Reason.FAULT, "GPU is lost"))),
        ["FAIL GPU0: PCIe replays: fault (GPU is lost)"],
    ),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.every(pcie=PcieLink(replays=ABSENT)),
        ["NOT_APPLICABLE host: the driver counts no PCIe replays here"],
    ),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.gpu(0, pcie=PcieLink(replays=DENIED)),
        ["UNKNOWN GPU0: PCIe replays: could not look (no permission)"],
    ),
    (
        PcieReplays,
        "p5.48xlarge",
        lambda h: h.every(pcie=PcieLink(replays=106)).gpu(3, pcie=PcieLink(replays=52000)),
        ["WARN GPU3: 52000 PCIe replays since the driver was loaded, its peers 106 at most"],
    ),
    (PcieReplays, "p5.48xlarge", lambda h: h.drop(GpuInventory), ["UNKNOWN host: could not look: tool: not found"]),
    (NvlinkErrors, "p5.48xlarge", lambda h: h, ["PASS host: no error on 144 NVLinks"]),
    (NvlinkErrors, "p5.48xlarge", counting("CRC Errors", 4), ["WARN GPU3/link7: CRC Errors: 4"]),
    (NvlinkErrors, "p5.48xlarge", counting("CRC Errors", 5), ["FAIL GPU3/link7: CRC Errors: 5"]),
    (NvlinkErrors, "p5.48xlarge", counting("Replay Errors", 5), ["FAIL GPU3/link7: Replay Errors: 5"]),
    (NvlinkErrors, "p5.48xlarge", counting("Symbol Errors", 99), ["WARN GPU3/link7: Symbol Errors: 99"]),
    (
        NvlinkErrors,
        "p6-b200.48xlarge",
        counting("Link recovery failed events", 1),
        ["FAIL GPU3/link7: Link recovery failed events: 1"],
    ),
    (
        NvlinkErrors,
        "p6-b200.48xlarge",
        counting("FEC Errors - 0", 36_140_749_276),
        ["PASS host: no error on 144 NVLinks"],
    ),
    (NvlinkErrors, "p6-b200.48xlarge", counting("Tx packets", 9), ["PASS host: no error on 144 NVLinks"]),
    (NvlinkErrors, "g5.48xlarge", lambda h: h, ["NOT_APPLICABLE host: this machine has no NVLink by design"]),
    (
        NvlinkErrors,
        "g5.48xlarge",
        lambda h: h.drop(NvLinkErrors),
        ["NOT_APPLICABLE host: this machine has no NVLink by design"],
    ),
    (
        NvlinkErrors,
        "p5.48xlarge",
        lambda h: h.profiled(links={"nvlinks": None}).drop(NvLinkErrors),
        ["NOT_APPLICABLE host: no source tells whether this machine has NVLinks to count errors on"],
    ),
    (NvlinkErrors, "p5.48xlarge", uncounted(NONE), ["NOT_APPLICABLE host: the driver counts no NVLink errors here"]),
    (
        NvlinkErrors,
        "p5.48xlarge",
        lambda h: uncounted(DENIED)(h).expecting(mig=True),
        ["NOT_APPLICABLE host: the driver counts no NVLink errors here"],
    ),
    (
        NvlinkErrors,
        "p5.4xlarge",
        lambda h: h.profiled(links={"nvlinks": None}).put(NvLinkErrors((0,), (), ((0, DENIED),))),
        ["UNKNOWN GPU0: NVLink error counters: could not look (no permission)"],
    ),
    (
        NvlinkErrors,
        "p3.16xlarge",
        lambda h: h.put(
            NvLinkErrors(tuple(range(7)), tuple(LinkErrors(g, n, "CRC Errors", 0) for g in range(7) for n in range(6)))
        ),
        ["UNKNOWN GPU7: error counters of 0 of 6 active NVLinks"],
    ),
    (NvlinkErrors, "p5.48xlarge", lambda h: h.drop(NvLinkErrors), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_counters(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
