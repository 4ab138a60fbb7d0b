"""EFA: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.network import EfaCount
from validation.facts.host import EfaModule, EfaNics

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


def asked(count: int, found: int) -> Callable[[Host], Host]:
    nics = EfaNics(tuple(f"rdmap{n}s0" for n in range(found)))
    return lambda h: h.expecting(efa_count=count).put(nics)


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (EfaCount, "p5.48xlarge", lambda h: h.drop(EfaNics), ["NOT_APPLICABLE host: the stack asked for no EFA"]),
    (EfaCount, "p5.48xlarge", asked(32, 32), ["PASS host: 32 EFA NICs, as asked for"]),
    (EfaCount, "p4d.24xlarge", asked(4, 3), ["FAIL host: 3 of 4 EFA NICs (there: rdmap0s0, rdmap1s0, rdmap2s0)"]),
    (EfaCount, "p4d.24xlarge", asked(1, 1), ["PASS host: 1 EFA NIC, as asked for"]),
    (EfaCount, "p4d.24xlarge", asked(4, 0), ["FAIL host: 0 of 4 EFA NICs"]),
    (
        EfaCount,
        "p4d.24xlarge",
        lambda h: asked(4, 0)(h).put(EfaModule(loaded=False)),
        ["FAIL host: 0 of 4 EFA NICs: the EFA kernel module is not loaded"],
    ),
    (EfaCount, "p4d.24xlarge", asked(2, 4), ["WARN host: 4 EFA NICs, 2 asked for"]),
    (
        EfaCount,
        "p4d.24xlarge",
        lambda h: h.expecting(efa_count=4).drop(EfaNics, "fi_info: not found", "fi-info"),
        ["UNKNOWN host: could not look: fi_info: not found"],
    ),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_network(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
