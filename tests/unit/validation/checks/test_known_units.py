"""Units that came back: rows for pass, fail, not applicable and unknown, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from profiles.models import KnownBad
from validation.checks.known_units import KnownBadUnit
from validation.facts.gpu import GpuInventory
from validation.facts.missing import Missing, Reason
from validation.report.model import digest

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

ZERO = "GPU-00000000-0000-0000-0000-000000000000"
BAD = "GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d1"
WHEN = "was rejected on 2026-11-30T10:00:00Z on host old for"


def uuid(number: int) -> str:
    return f"GPU-0c5ac0de-8f0b-2f52-8a15-5a53b3d9b6d{number:x}"


def known(key: str = BAD, **changes: Any) -> KnownBad:
    values = {"uuid": key, "serial": "1650", "board": "NVIDIA H100 80GB HBM3", "host": "old", "instance_id": "i-old"}
    return KnownBad(**{**values, "check": "gpu.lost", "date": "2026-11-30T10:00:00Z", **changes})


def told(host: Host, *units: KnownBad, **changes: Any) -> Host:
    for index in range(len(host.gpus)):
        host.gpu(index, uuid=uuid(index))
    return host.expecting(known_bad=units or (known(),), **changes)


ROWS = [
    (KnownBadUnit, "p5.48xlarge", lambda h: h, ["NOT_APPLICABLE host: no GPU is known to be bad"]),
    (KnownBadUnit, "p5.48xlarge", told, ["PASS host: none of 8 GPUs is among 1 GPU known bad"]),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: told(h).gpu(3, uuid=BAD.upper()),
        [f"FAIL GPU3: {BAD} {WHEN} gpu.lost: the provider returned the same unit"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: told(h, known(here=True)).gpu(3, uuid=BAD),
        [f"WARN GPU3: {BAD} {WHEN} gpu.lost, and was not replaced: the other checks judge it as it is now"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",  # the host itself says that it is the instance of then, whatever it is called now
        lambda h: told(h, known(instance_id="i-1")).gpu(3, uuid=BAD),
        [f"WARN GPU3: {BAD} {WHEN} gpu.lost, and was not replaced: the other checks judge it as it is now"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",  # rejected here and elsewhere: it went away and came back
        lambda h: told(h, known(here=True), known(check="kernel.xid")).gpu(3, uuid=BAD),
        [f"FAIL GPU3: {BAD} {WHEN} kernel.xid: the provider returned the same unit"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",  # two GPUs of a GB200 board share a serial: the healthy one is not its neighbour
        lambda h: told(h).gpu(0, serial="1650").gpu(1, serial="1650"),
        ["PASS host: none of 8 GPUs is among 1 GPU known bad"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: told(h).gpu(0, uuid=ZERO),
        [
            (
                f"UNKNOWN GPU0: its UUID ({ZERO}) names no board, so it cannot be compared with the bad units; its "
                f"serial 1650 is that of {BAD}, rejected on 2026-11-30T10:00:00Z"
            )
        ],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: told(h).gpu(1, uuid=Missing(Reason.COULD_NOT_LOOK, "[Insufficient Permissions]")),
        [
            (
                "UNKNOWN GPU1: its UUID (could not look ([Insufficient Permissions])) names no board, so it cannot be "
                "compared with the bad units"
            )
        ],
    ),
    (
        KnownBadUnit,
        "g6.xlarge",
        lambda h: told(h).gpu(0, uuid=BAD, virtualization="VGPU"),
        ["NOT_APPLICABLE host: virtual GPUs have no UUID of a board"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",  # a fault of the host: five of its eight GPUs are the host again
        lambda h: told(h, *(known(uuid(n), check="kernel.sxid", whole_host=True) for n in range(5))),
        [
            (
                f"FAIL host: the host with 5 of these 8 GPUs ({uuid(0)}, ...) {WHEN} kernel.sxid: the provider "
                "returned the same unit"
            )
        ],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",  # four boards of it, moved to another machine, are not
        lambda h: told(h, *(known(uuid(n), check="kernel.sxid", whole_host=True) for n in range(4))),
        ["PASS host: none of 8 GPUs is among 4 GPUs known bad"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: told(h).put(GpuInventory("nvml", ())),
        ["UNKNOWN host: no GPU answered, so none was compared"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: told(h).drop(GpuInventory),
        ["UNKNOWN host: could not look: tool: not found"],
    ),
    (
        KnownBadUnit,
        "p5.48xlarge",
        lambda h: h.expecting(known_bad_gap="bad-units.json: not JSON"),
        ["UNKNOWN host: the memory of bad units could not be read: bad-units.json: not JSON"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "expected"), ROWS)
def test_row(
    check: type[KnownBadUnit],
    instance_type: str,
    change: Callable[[Host], Host],
    expected: list[str],
    host: Callable[..., Host],
) -> None:
    assert change(host(instance_type)).says(check()) == expected


def test_a_unit_rejected_elsewhere_voids_no_verdict_and_no_burn_in_here(host: Callable[..., Host]) -> None:
    one = host("p5.48xlarge")
    before = digest(one.expected)
    assert digest(told(one).expected) == before
