"""The EFA stack: rows for pass, trouble, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.efa_stack import EfaStack
from validation.facts.components import Components
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


DENIED = Missing(Reason.COULD_NOT_LOOK, "permission denied")


def efa(pin: str = "", **installed: Any) -> Callable[[Host], Host]:
    """A host with EFA, the plug-in pinned or not, and something else installed."""

    def change(h: Host) -> Host:
        asked = h.expecting(efa_count=1).software(**installed)
        return asked.pinning(aws_ofi_nccl=pin) if pin else asked

    return change


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (EfaStack, "p5.48xlarge", lambda h: h.drop(Components), ["NOT_APPLICABLE host: the stack asked for no EFA"]),
    (EfaStack, "p5.48xlarge", efa(), ["PASS host: aws-ofi-nccl 1.17.2 fits what is around it"]),
    (
        EfaStack,
        "p5.48xlarge",
        efa(aws_ofi_nccl=ABSENT),
        ["NOT_APPLICABLE host: aws-ofi-nccl is not installed on the host; containers bring their own"],
    ),
    (
        EfaStack,
        "p5en.48xlarge",
        efa("1.12.1", aws_ofi_nccl="1.12.1"),
        ["FAIL host: aws-ofi-nccl 1.12.1 is too old for p5en.48xlarge: 1.13.0 or newer"],
    ),
    (
        EfaStack,
        "p5en.48xlarge",
        efa(aws_ofi_nccl="1.12.1"),
        ["WARN host: aws-ofi-nccl 1.12.1 is too old for p5en.48xlarge: 1.13.0 or newer"],
    ),
    (
        EfaStack,
        "p4d.24xlarge",
        efa("1.12", aws_ofi_nccl="1.12.0"),
        ["FAIL host: aws-ofi-nccl 1.12.0 is slow or crashes with EFA installer 1.45.0"],
    ),
    (
        EfaStack,
        "p4d.24xlarge",
        efa("1.17.2", libfabric="1.21.1amzn1.0"),
        ["FAIL host: aws-ofi-nccl 1.17.2 needs libfabric 1.22.0 or newer, not 1.21.1amzn1.0"],
    ),
    (
        EfaStack,
        "p4d.24xlarge",
        efa("1.17.2", nccl=("2.12.12", "2.29.1")),
        [
            "FAIL host: aws-ofi-nccl 1.17.2 needs NCCL 2.17.1 or newer, not 2.12.12",
            "WARN host: NCCL 2.29.1 is newer than aws-ofi-nccl 1.17.2 was tested with",
        ],
    ),
    (
        EfaStack,
        "p4d.24xlarge",
        efa("1.17.2", nccl=ABSENT, libfabric=DENIED, efa_installer=DENIED),
        ["PASS host: aws-ofi-nccl 1.17.2 fits what is around it"],
    ),
    (
        EfaStack,
        "p4d.24xlarge",
        efa("1.17.2", aws_ofi_nccl=DENIED),
        ["UNKNOWN host: version of aws-ofi-nccl: could not look (permission denied)"],
    ),
    (
        EfaStack,
        "p4d.24xlarge",
        lambda h: efa()(h).drop(Components),
        ["UNKNOWN host: could not look: tool: not found"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_efa_stack(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


@pytest.mark.parametrize(("pin", "required"), [("1.17.2", True), ("", False)])
def test_a_plugin_that_cannot_be_read_closes_the_gate_only_where_it_is_pinned(
    host: Callable[[str], Host], pin: str, required: bool
) -> None:
    changed = efa(pin, aws_ofi_nccl=DENIED)(host("p4d.24xlarge"))
    (finding,) = EfaStack().evaluate(changed.facts(), changed.expected)
    assert finding.required is required
