"""Pinned versions: rows for pass, trouble, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.components import ContainerToolkit, Dcgm, EfaInstaller, Nccl, OfiNccl
from validation.facts.components import Components
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


DENIED = Missing(Reason.COULD_NOT_LOOK, "permission denied")
GAP = "UNKNOWN host: could not look: tool: not found"


def efa(**pins: str) -> Callable[[Host], Host]:
    return lambda h: h.expecting(efa_count=4).pinning(**pins)


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (
        Nccl,
        "p5.48xlarge",
        lambda h: h,
        ["NOT_APPLICABLE host: no version of NCCL is pinned (2.28.3 is installed)"],
    ),
    (Nccl, "g5.xlarge", lambda h: h.drop(Components), ["NOT_APPLICABLE host: no version of NCCL is pinned"]),
    (Nccl, "p5.48xlarge", lambda h: h.pinning(nccl="2.28"), ["PASS host: NCCL 2.28.3, as pinned"]),
    (
        Nccl,
        "p5.48xlarge",
        lambda h: h.pinning(nccl="2.28.3").software(nccl=("2.27.7", "2.28.3")),
        ["WARN host: NCCL 2.28.3 is installed beside others (2.27.7, 2.28.3): a program may get any of them"],
    ),
    (
        Nccl,
        "p5.48xlarge",
        lambda h: h.pinning(nccl="2.2"),
        ["FAIL host: NCCL 2.28.3 is installed, 2.2 is pinned"],
    ),
    (Nccl, "p5.48xlarge", lambda h: h.pinning(nccl="2.28").drop(Components), [GAP]),
    (Dcgm, "g5.xlarge", lambda h: h.pinning(dcgm="4.4.2"), ["PASS host: DCGM 4.4.2, as pinned"]),
    (
        Dcgm,
        "g5.xlarge",
        lambda h: h.pinning(dcgm="4.4.2").software(dcgm=ABSENT),
        ["FAIL host: DCGM 4.4.2 is pinned, and none is installed"],
    ),
    (Dcgm, "g5.xlarge", lambda h: h.software(dcgm=ABSENT), ["NOT_APPLICABLE host: no version of DCGM is pinned"]),
    (
        Dcgm,
        "g5.xlarge",
        lambda h: h.pinning(dcgm="4.4.2").software(dcgm=DENIED),
        ["UNKNOWN host: version of DCGM: could not look (permission denied)"],
    ),
    (
        ContainerToolkit,
        "g5.xlarge",
        lambda h: h.pinning(container_toolkit="1.18.0"),
        ["PASS host: the container toolkit 1.18.0, as pinned"],
    ),
    (
        ContainerToolkit,
        "g5.xlarge",
        lambda h: h.pinning(container_toolkit="1.18.0").software(container_toolkit=ABSENT),
        ["FAIL host: the container toolkit 1.18.0 is pinned, and none is installed"],
    ),
    (ContainerToolkit, "g5.xlarge", lambda h: h.pinning(container_toolkit="1.18.0").drop(Components), [GAP]),
    (EfaInstaller, "p4d.24xlarge", efa(efa_installer="1.45.0"), ["PASS host: the EFA installer 1.45.0, as pinned"]),
    (
        EfaInstaller,
        "p4d.24xlarge",
        efa(efa_installer="1.47.0"),
        ["FAIL host: the EFA installer 1.45.0 is installed, 1.47.0 is pinned"],
    ),
    (EfaInstaller, "p4d.24xlarge", lambda h: efa(efa_installer="1.45.0")(h).drop(Components), [GAP]),
    (
        EfaInstaller,
        "p4d.24xlarge",
        lambda h: h.pinning(efa_installer="1.47.0").drop(Components),
        ["NOT_APPLICABLE host: the stack asked for no EFA"],
    ),
    (OfiNccl, "p4d.24xlarge", efa(aws_ofi_nccl="1.17.2"), ["PASS host: aws-ofi-nccl 1.17.2, as pinned"]),
    (
        OfiNccl,
        "p4d.24xlarge",
        lambda h: efa(aws_ofi_nccl="1.17.2")(h).software(aws_ofi_nccl=ABSENT),
        ["FAIL host: aws-ofi-nccl 1.17.2 is pinned, and none is installed"],
    ),
    (OfiNccl, "p4d.24xlarge", lambda h: efa(aws_ofi_nccl="1.17.2")(h).drop(Components), [GAP]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_components(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
