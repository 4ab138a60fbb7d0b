"""GPUs for containers: rows with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.containers import ContainerGpus
from validation.facts.host_state import HostState
from validation.facts.missing import ABSENT

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

NAMES_NONE = "the container toolkit is there, and no configuration of a runtime names it"
ROWS: list[tuple[Any, Callable[[Host], Host], list[str]]] = [
    (ContainerGpus, lambda h: h, ["PASS host: containers can be given GPUs: /etc/docker/daemon.json"]),
    (
        ContainerGpus,
        lambda h: h.state(runtimes={}, cdi=("/var/run/cdi/nvidia.yaml",)),
        ["PASS host: containers can be given GPUs: /var/run/cdi/nvidia.yaml"],
    ),
    (ContainerGpus, lambda h: h.state(runtimes={}), [f"WARN host: {NAMES_NONE}"]),
    (
        ContainerGpus,
        lambda h: h.state(runtimes={"/etc/docker/daemon.json": False}).pinning(container_toolkit="1.18"),
        [f"FAIL host: {NAMES_NONE} (of others: /etc/docker/daemon.json)"],
    ),
    (
        ContainerGpus,
        lambda h: h.software(container_toolkit=ABSENT),
        ["NOT_APPLICABLE host: no container toolkit is installed, and none is pinned"],
    ),
    (ContainerGpus, lambda h: h.drop(HostState), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "change", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, change: Callable[[Host], Host], said: list[str]) -> None:
    assert change(host("p5.48xlarge")).says(check()) == said
