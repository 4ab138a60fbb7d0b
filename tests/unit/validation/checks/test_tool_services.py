"""What the states of units and the words of container runtimes mean, with the exact text."""

from __future__ import annotations

import pytest

from profiles.expectation import expect
from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.tool_containers import ContainerStarts, DockerKnowsGpus
from validation.checks.tool_services import ServicesRun
from validation.facts import container_error
from validation.facts.container_error import ContainerError
from validation.facts.docker_info import DockerInfo
from validation.facts.host import Unit
from validation.facts.services import Service, Services
from validation.facts.store import Facts

FM = "nvidia-fabricmanager.service"
DAEMON = "nvidia-persistenced.service"
NO_SWITCH = "on a machine without NVSwitch it has nothing to do: disable it there"


def state(name: str, active: str, sub: str, *, load: str = "loaded", enabled: str = "", **more: str | bool) -> Services:
    unit = Unit(name, load, active, sub, enabled)
    return Services((Service(unit, str(more.get("result", "")), str(more.get("why", "")), bool(more.get("idle"))),))


ROWS: list[tuple[Check, object, list[str]]] = [
    (ServicesRun(), state(DAEMON, "active", "running", enabled="enabled"), [f"PASS {DAEMON}: running"]),
    (ServicesRun(), state(DAEMON, "active", "exited", enabled="static"), [f"PASS {DAEMON}: exited"]),
    (
        ServicesRun(),
        state(DAEMON, "active", "running", enabled="disabled"),
        [f"WARN {DAEMON}: runs, and is disabled: it will be gone after a reboot"],
    ),
    (ServicesRun(), state(DAEMON, "inactive", "dead"), [f"WARN {DAEMON}: is inactive (dead)"]),
    (ServicesRun(), state(DAEMON, "failed", "failed"), [f"FAIL {DAEMON}: failed"]),
    (
        ServicesRun(),
        state(DAEMON, "failed", "failed", result="exit-code", why="Failed to query NVIDIA devices."),
        [f"FAIL {DAEMON}: failed (exit-code): Failed to query NVIDIA devices."],
    ),
    (
        ServicesRun(),
        state(DAEMON, "activating", "auto-restart", result="exit-code"),
        [f"FAIL {DAEMON}: fails and is started again and again (exit-code)"],
    ),
    (
        ServicesRun(),
        state(DAEMON, "activating", "start-pre"),
        [f"UNKNOWN {DAEMON}: is activating (start-pre): not there yet"],
    ),
    (ServicesRun(), state(DAEMON, "inactive", "dead", load="not-found"), [f"WARN {DAEMON}: is not installed"]),
    (ServicesRun(), state(DAEMON, "inactive", "dead", load="masked"), [f"WARN {DAEMON}: is masked"]),
    (ServicesRun(), state(FM, "active", "running"), [f"PASS {FM}: running"]),
    (ServicesRun(), state(FM, "failed", "failed", result="signal"), [f"FAIL {FM}: failed (signal); {NO_SWITCH}"]),
    (
        ServicesRun(),
        state(FM, "failed", "failed", idle=True),
        [f"NOT_APPLICABLE {FM}: failed, and has nothing to do: this machine has no NVSwitch"],
    ),
    (
        ServicesRun(),
        state("apport.service", "failed", "failed"),
        [
            "WARN apport.service: failed; it is none of those that a GPU needs",
            "NOT_APPLICABLE host: no unit that a GPU host needs is among them",
        ],
    ),
    (
        ContainerStarts(),
        ContainerError("no-cdi", "unresolvable CDI devices nvidia.com/gpu=all"),
        [
            (
                "FAIL host: no CDI specification describes the GPU that was asked for: "
                "unresolvable CDI devices nvidia.com/gpu=all"
            )
        ],
    ),
    (
        DockerKnowsGpus(),
        DockerInfo(("nvidia", "runc"), "runc"),
        ["PASS host: containers can be given GPUs: nvidia; by default they run with runc"],
    ),
    (
        DockerKnowsGpus(),
        DockerInfo(("runc",), "runc", ("nvidia.com/gpu=all",)),
        ["PASS host: containers can be given GPUs: nvidia.com/gpu=all; by default they run with runc"],
    ),
    (
        DockerKnowsGpus(),
        DockerInfo(("runc",), "runc"),
        ["WARN host: no NVIDIA runtime among runc, and no CDI device: Docker gives no container a GPU"],
    ),
]


def said(check: Check, fact: object, machine: str = "") -> list[str]:
    expected = expect(machine) if machine else Expectation(instance_type="")
    found = check.evaluate(Facts({type(fact): fact}), expected)
    return [f"{finding.verdict.value} {finding.subject}: {finding.message}" for finding in found]


@pytest.mark.parametrize(("check", "fact", "wanted"), ROWS)
def test_a_state_means_what_it_says(check: Check, fact: object, wanted: list[str]) -> None:
    assert said(check, fact) == wanted


@pytest.mark.parametrize(("machine", "verdict"), [("p5.48xlarge", "FAIL"), ("g5.xlarge", "NOT_APPLICABLE")])
def test_the_machine_decides_whether_a_fabric_manager_must_run(machine: str, verdict: str) -> None:
    (found,) = said(ServicesRun(), state(FM, "failed", "failed"), machine)
    assert found.startswith(f"{verdict} {FM}: failed")
    assert NO_SWITCH not in found


def test_a_fabric_manager_that_finds_no_switch_where_there_are_some_has_failed() -> None:
    assert said(ServicesRun(), state(FM, "failed", "failed", idle=True), "p5.48xlarge") == [f"FAIL {FM}: failed"]


def test_every_reason_of_a_container_has_a_meaning() -> None:
    for kind in container_error.KINDS:
        assert said(ContainerStarts(), ContainerError(kind, "x"))[0].startswith("FAIL host: ")
