from __future__ import annotations

from typing import Any

import pytest

from kiln.events import EngineProgress

VPC = "urn:pulumi:dev::kiln::aws:ec2/vpc:Vpc::net"
GATE = "urn:pulumi:dev::kiln::kiln:index:HealthGate::gate"


class Shown:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, host: str, stage: str, text: str) -> None:
        self.lines.append((host, stage, text))


def message(urn: str, text: str, severity: str = "info", **more: Any) -> dict[str, Any]:
    return {"diagnosticEvent": {"urn": urn, "message": text, "severity": severity, **more}}


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            {"resourcePreEvent": {"metadata": {"op": "create", "urn": VPC, "type": "aws:ec2/vpc:Vpc"}}},
            [("net", "creating", "aws Vpc")],
        ),
        (
            {"resOutputsEvent": {"metadata": {"op": "create", "urn": VPC, "type": "aws:ec2/vpc:Vpc"}}},
            [("net", "created", "aws Vpc")],
        ),
        ({"resourcePreEvent": {"metadata": {"op": "same", "urn": VPC, "type": "aws:ec2/vpc:Vpc"}}}, []),
        (
            {"resOpFailedEvent": {"metadata": {"op": "create", "urn": VPC, "type": "aws:ec2/vpc:Vpc"}}},
            [("net", "failed", "aws Vpc")],
        ),
        (message(GATE, "node-0: driver: waiting", ephemeral=True), [("node-0", "driver", "waiting")]),
        (message(GATE, "node-0: done", ephemeral=True), [("node-0", "done", "")]),
        (message(VPC, "no address left", "error"), [("net", "error", "no address left")]),
        (message("", "hello\n"), [("stack", "info", "hello")]),
        (message("", "rpc", "debug"), []),
        (message("", "\n"), []),
        ({"summaryEvent": {"result": "succeeded"}}, []),
    ],
)
def test_an_event_is_shown_as_the_row_it_belongs_to(event: dict[str, Any], lines: list[tuple[str, str, str]]) -> None:
    shown = Shown()
    EngineProgress(shown)(event)
    assert shown.lines == lines
