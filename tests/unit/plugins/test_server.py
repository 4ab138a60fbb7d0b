"""The provider's answers to the engine: what is a change, what is refused, and how."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from plugins.kiln import ssh_key, wire
from plugins.kiln.progress import EngineLog
from plugins.kiln.server import GATE, HEALTHY, SSH_KEY, Provider
from validation.report.model import StackReport
from validation.verdict import Verdict


class Refused(Exception):  # noqa: N818 - what a call ends with
    pass


class Context:
    """The part of a gRPC call that the provider uses."""

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        assert code is grpc.StatusCode.UNKNOWN
        raise Refused(details)


@pytest.fixture
def provider() -> Provider:
    return Provider(lambda *_, **__: StackReport(Verdict.UNKNOWN, ()), EngineLog(""))


def urn(kind: str, name: str = "x") -> str:
    return f"urn:pulumi:dev::project::{kind}::{name}"


def diff(provider: Provider, kind: str, old: dict[str, Any], new: dict[str, Any]) -> Any:
    request = provider_pb2.DiffRequest(urn=urn(kind), old_inputs=wire.to_struct(old), news=wire.to_struct(new))
    return provider.Diff(request, Context())


def test_a_preview_without_token_shows_no_change_and_a_real_run_does(provider: Provider) -> None:
    old = {"burnIn": "quick", "recheck": "one"}
    assert diff(provider, GATE, old, {"burnIn": "quick", "recheck": ""}).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert list(diff(provider, GATE, old, {"burnIn": "quick", "recheck": "two"}).diffs) == ["recheck"]
    assert list(diff(provider, GATE, old, {"burnIn": "none", "recheck": ""}).diffs) == ["burnIn"]


def test_a_gate_is_never_replaced_and_a_key_only_by_its_rotation(provider: Provider) -> None:
    assert not diff(provider, GATE, {"hosts": []}, {"hosts": ["a"], "recheck": "x"}).replaces
    assert list(diff(provider, SSH_KEY, {}, {"rotation": "2"}).replaces) == ["rotation"]
    assert diff(provider, SSH_KEY, {"rotation": "2"}, {"rotation": "2"}).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_an_unknown_resource_is_refused_in_one_line(provider: Provider) -> None:
    request = provider_pb2.CheckRequest(urn=urn("kiln:index:Nonsense"))
    with pytest.raises(Refused, match=r"^package kiln has no resource kiln:index:Nonsense$"):
        provider.Check(request, Context())


CLOSED: list[tuple[dict[str, Any], str]] = [
    ({"healthy": False, "summary": "FAIL: bad\nGPU3"}, "the gate is closed: FAIL: bad | GPU3"),
    (
        {"healthy": True, "judgedIn": "old", "recheck": "new"},
        "the gate is closed: the hosts were not judged in this run",
    ),
    ({"healthy": True, "judgedIn": "", "recheck": ""}, "the gate is closed: the hosts were not judged in this run"),
    ({"healthy": "true", "judgedIn": "a", "recheck": "a"}, "the gate is closed: no verdict"),
]


@pytest.mark.parametrize(("inputs", "text"), CLOSED)
def test_healthy_is_refused_while_the_gate_is_closed(provider: Provider, inputs: dict[str, Any], text: str) -> None:
    request = provider_pb2.CreateRequest(urn=urn(HEALTHY), properties=wire.to_struct(inputs))
    with pytest.raises(Refused) as caught:
        provider.Create(request, Context())
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_healthy_exists_where_the_gate_was_opened_in_this_run(provider: Provider) -> None:
    inputs = {"healthy": True, "judgedIn": "a", "recheck": "a"}
    made = provider.Create(
        provider_pb2.CreateRequest(urn=urn(HEALTHY, "h"), properties=wire.to_struct(inputs)), Context()
    )
    assert made.id == "h"
    assert wire.properties(made.properties)["healthy"] is True


def test_the_private_half_of_a_key_is_marked_secret(provider: Provider) -> None:
    made = provider.Create(provider_pb2.CreateRequest(urn=urn(SSH_KEY), properties=wire.to_struct({})), Context())
    private = made.properties.fields["privateKey"].struct_value.fields
    assert private[wire.SIGNATURE].string_value == wire.SECRET
    found = wire.properties(made.properties)
    assert found["publicKey"].startswith("ssh-ed25519 ")
    assert found["fingerprint"] == made.id == ssh_key.fingerprint_of(found["publicKey"])


def test_two_keys_are_not_the_same() -> None:
    assert ssh_key.create({})[0] != ssh_key.create({})[0]


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"hosts": []}, ["hosts"]),
    ({}, ["hosts"]),
    (
        {"hosts": [{}]},
        [f"hosts[0].{name}" for name in ("name", "address", "instanceType", "privateKey", "user", "hostKey")],
    ),
    (
        {"hosts": "x", "burnIn": "toast", "deadlineSeconds": 0, "colour": 1},
        ["colour", "hosts", "burnIn", "deadlineSeconds"],
    ),
]


@pytest.mark.parametrize(("inputs", "paths"), WRONG)
def test_wrong_inputs_are_named_all_at_once_by_property(
    provider: Provider, inputs: dict[str, Any], paths: list[str]
) -> None:
    request = provider_pb2.CheckRequest(urn=urn(GATE), news=wire.to_struct(inputs))
    assert [failure.property for failure in provider.Check(request, Context()).failures] == paths


def test_values_not_known_yet_are_no_failures(provider: Provider) -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    host = {
        "name": "a",
        "address": unknown,
        "instanceType": "t",
        "user": "u",
        "privateKey": unknown,
        "hostKey": unknown,
    }
    request = provider_pb2.CheckRequest(urn=urn(GATE), news=wire.to_struct({"hosts": [host]}))
    assert not provider.Check(request, Context()).failures


def test_an_exception_reaches_the_user_as_one_line_without_secrets(provider: Provider) -> None:
    inputs = {"healthy": True, "summary": wire.secret("hunter2-hunter2")}
    request = provider_pb2.UpdateRequest(urn="nonsense", news=wire.to_struct(inputs))
    with pytest.raises(Refused) as caught:
        provider.Update(request, Context())
    assert str(caught.value) == "Update: IndexError: list index out of range"


def test_secrets_are_found_and_scrubbed_line_by_line() -> None:
    struct = wire.to_struct(
        {"a": wire.secret("line-one\nline-two"), "b": {"c": [wire.secret("third-secret")]}, "d": "open"}
    )
    secrets = frozenset(wire.secrets_in(struct))
    assert secrets == {"line-one\nline-two", "third-secret"}
    assert wire.scrub("x line-one y line-two z third-secret open", secrets) == "x [secret] y [secret] z [secret] open"


def test_unknowns_have_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(wire.UNKNOWN)


PLUGIN = Path(__file__).parents[3] / "plugins" / "kiln" / "pulumi-resource-kiln"


def test_a_provider_whose_engine_is_gone_before_it_looks_ends_by_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    done = subprocess.run([PLUGIN, address], capture_output=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stdout == b""


def test_a_provider_serves_while_its_engine_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        process = subprocess.Popen([PLUGIN, address], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip().isdigit()
            assert process.poll() is None
        finally:
            process.terminate()
            process.communicate(timeout=30)
