"""The host: rows for pass, fail and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.host import EvidenceRoot, InstanceType
from validation.facts.host import HostInfo

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


ELSEWHERE = HostInfo("h", "ubuntu", "22.04", "6.8", "x86_64", "b", "i-1", "/srv/tree")
NITRO = replace(ELSEWHERE, root="/", instance_type="g5.xlarge")
ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (EvidenceRoot, "g5.xlarge", lambda h: h, ["PASS host: evidence was read below /"]),
    (
        EvidenceRoot,
        "g5.xlarge",
        lambda h: h.put(ELSEWHERE),
        ["FAIL host: evidence was read below /srv/tree, not below /"],
    ),
    (
        EvidenceRoot,
        "g5.xlarge",
        lambda h: h.put(ELSEWHERE).expecting(root="/srv/tree"),
        ["PASS host: evidence was read below /srv/tree"],
    ),
    (
        EvidenceRoot,
        "g5.xlarge",
        lambda h: h.put(replace(ELSEWHERE, root="/srv/../etc")).expecting(root="/srv"),
        ["FAIL host: evidence was read below /srv/../etc, not below /srv"],
    ),
    (
        EvidenceRoot,
        "g5.xlarge",
        lambda h: h.put(ELSEWHERE).expecting(root="/srv"),
        ["PASS host: evidence was read below /srv/tree"],
    ),
    (
        EvidenceRoot,
        "g5.xlarge",
        lambda h: h.put(ELSEWHERE).expecting(root="/sr"),
        ["FAIL host: evidence was read below /srv/tree, not below /sr"],
    ),
    (
        EvidenceRoot,
        "g5.xlarge",
        lambda h: h.expecting(root="/srv/tree"),
        ["FAIL host: evidence was read below /, not below /srv/tree"],
    ),
    (EvidenceRoot, "g5.xlarge", lambda h: h.drop(HostInfo), ["UNKNOWN host: could not look: tool: not found"]),
    (InstanceType, "g5.xlarge", lambda h: h, ["NOT_APPLICABLE host: the machine does not say its type"]),
    (InstanceType, "g5.xlarge", lambda h: h.put(NITRO), ["PASS host: the machine says it is a g5.xlarge"]),
    (
        InstanceType,
        "g5.2xlarge",
        lambda h: h.put(NITRO),
        ["FAIL host: the machine says it is a g5.xlarge, and is judged as a g5.2xlarge"],
    ),
    (
        InstanceType,
        "g5.2xlarge",
        lambda h: h.put(NITRO).expecting(profile=None),
        ["UNKNOWN host: the machine says it is a g5.xlarge, and is judged as a g5.2xlarge"],
    ),
    (
        InstanceType,
        "g5.2xlarge",
        lambda h: h.put(NITRO).expecting(profile=h.profile.model_copy(update={"provider": "local"})),
        ["NOT_APPLICABLE host: the machine says it is a g5.xlarge; it is judged by a profile of one's own"],
    ),
    (InstanceType, "g5.xlarge", lambda h: h.drop(HostInfo), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_host(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
