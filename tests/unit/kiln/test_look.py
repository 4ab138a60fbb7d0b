"""A look at a stack's hosts: what the engine keeps of its gates, and what the runner finds now."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from kiln import look as looking
from kiln.look import look
from plugins.kiln.wire import SECRET, SIGNATURE
from profiles.errors import LookError
from profiles.expectation import expect
from stacks.status import GATE
from validation.report.model import HostReport, Identity, StackReport, digest
from validation.runner import Options, Target
from validation.verdict import Finding, Verdict, combine

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"


def identity(level: str = "quick") -> Identity:
    expected = expect("g5.xlarge").model_copy(update={"burn_in": level})
    return Identity("i-1", "boot-a", ("GPU-1",), "580.1", digest(expected), "judge")


def host(name: str, verdict: Verdict = Verdict.PASS, **changes: Any) -> HostReport:
    finding = Finding("gpu.count", name, verdict, "m")
    made = HostReport(name, "", "i-1", "g5.xlarge", combine([finding]), (finding,), identity())
    return replace(made, **changes)


def gate(*hosts: HostReport, **changes: Any) -> dict[str, Any]:
    """A gate as ``pulumi stack export --show-secrets`` prints it."""
    secret = {SIGNATURE: SECRET, "plaintext": json.dumps(KEY)}
    asked = [
        {
            "name": found.host,
            "address": "192.0.2.1",
            "instanceType": "g5.xlarge",
            "user": "ubuntu",
            "privateKey": secret,
            "hostKey": "ssh-ed25519 AAAA",
            "instanceId": "i-1",
        }
        for found in hosts
    ]
    outputs = {"report": json.dumps(StackReport(Verdict.PASS, hosts).to_dict())}
    return {
        "type": GATE,
        "inputs": {"hosts": asked, "burnIn": "quick", "badUnits": "none"},
        "outputs": outputs,
        **changes,
    }


def export(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"deployment": {"resources": [{"type": "pulumi:pulumi:Stack"}, *resources]}}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> dict[str, HostReport]:
    """What the hosts are found to be now, by name; the runner works out the identity for its own burn-in, none."""
    found: dict[str, HostReport] = {}

    def validate(targets: tuple[Target, ...], options: Options, **given: Any) -> StackReport:
        assert options.burn_in == "none"
        assert isinstance(given["cancel"], threading.Event)
        assert [target.private_key for target in targets] == [KEY] * len(targets)
        hosts = [found[target.name] for target in targets]
        return StackReport(Verdict.PASS, tuple(replace(h, identity=h.identity and identity("none")) for h in hosts))

    monkeypatch.setattr(looking, "validate", validate)
    return found


def test_a_host_as_it_was_keeps_its_verdict_although_the_look_burns_nothing_in(now: dict[str, HostReport]) -> None:
    now["node-0"] = host("node-0")
    found = look(export(gate(host("node-0"))))
    assert (found.reasons, found.verdict) == ((), Verdict.PASS)


def test_another_boot_voids_the_verdict(now: dict[str, HostReport]) -> None:
    now["node-0"] = host("node-0")
    then = replace(identity(), boot_id="boot-z")
    found = look(export(gate(host("node-0", identity=then))))
    assert found.verdict is Verdict.UNKNOWN
    assert found.reasons == ("node-0: it was rebooted (boot id boot-z -> boot-a): the verdict is void; run kiln up",)


def test_a_fault_found_now_is_fail(now: dict[str, HostReport]) -> None:
    now["node-0"], now["node-1"] = host("node-0", Verdict.FAIL), host("node-1")
    found = look(export(gate(host("node-0"), host("node-1"))))
    assert found.verdict is Verdict.FAIL
    assert found.reasons == ("node-0: now FAIL gpu.count: m",)


def test_every_gate_of_the_stack_is_looked_at_and_none_that_is_to_be_deleted(now: dict[str, HostReport]) -> None:
    now["node-0"], now["node-1"] = host("node-0"), host("node-1", Verdict.UNKNOWN)
    found = look(export(gate(host("node-0")), gate(host("node-1")), gate(host("node-9"), delete=True)))
    assert found.reasons == ("node-1: now UNKNOWN gpu.count: m",)


def test_a_stack_without_a_gate_is_unknown() -> None:
    assert look({}).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("broken", [{"outputs": {}}, {"outputs": {"report": "{"}}, {"inputs": None, "outputs": {}}])
def test_a_gate_that_cannot_be_read_is_told(broken: dict[str, Any]) -> None:
    with pytest.raises(LookError, match="the gate's state cannot be read"):
        look(export(gate(host("node-0"), **broken)))
