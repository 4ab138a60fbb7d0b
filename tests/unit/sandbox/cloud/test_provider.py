"""The provider's checks, differences and states, without a cloud; and how its errors reach the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import (
    CheckRequest,
    ConfigureRequest,
    CreateRequest,
    DiffRequest,
    PropertyDiffKind,
    ReadRequest,
    UpdateRequest,
)
from pulumi.runtime.proto import provider_pb2, status_pb2

from profiles.errors import ConfigError
from sandbox.cloud import handlers, serving
from sandbox.cloud.errors import AwsError, InitError, SandboxDownError
from sandbox.cloud.handlers import Created, Handler
from sandbox.cloud.provider import EmulatedAws
from sandbox.cloud.values import UNKNOWN, plain_map, wire_map

SUBNET = "urn:pulumi:dev::test::aws:ec2/subnet:Subnet::mine"
KEY = "urn:pulumi:dev::test::aws:ec2/keyPair:KeyPair::login"
TEMPLATE = "urn:pulumi:dev::test::aws:ec2/launchTemplate:LaunchTemplate::host"
ALIEN = "urn:pulumi:dev::test::aws:s3/bucket:Bucket::b"
Subnets = Callable[[dict[str, Any] | None], None]


class StandInSession:
    default_tags = {"project": "kiln"}

    def all_tags(self, inputs: dict[str, Any]) -> dict[str, str]:
        return {**self.default_tags, **(inputs.get("tags") or {})}


class StandIn(Handler):
    """A resource that is what ``observed`` says; None for gone."""

    token = "aws:ec2/subnet:Subnet"

    def __init__(self, observed: dict[str, Any] | None) -> None:
        self.observed = observed

    def create(self, cloud: Any, name: str, inputs: dict[str, Any]) -> Created:
        return Created("subnet-1", self.observed or {})

    def read(self, cloud: Any, resource_id: str, state: dict[str, Any]) -> dict[str, Any] | None:
        return self.observed

    def update(self, cloud: Any, resource_id: str, state: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return {"arn": "arn:new"}

    def delete(self, cloud: Any, resource_id: str, state: dict[str, Any]) -> None: ...


@pytest.fixture
def provider(tmp_path: Path) -> EmulatedAws:
    made = EmulatedAws(tmp_path)
    stand_in: Any = StandInSession()
    made._session = stand_in
    return made


@pytest.fixture
def with_subnet(monkeypatch: pytest.MonkeyPatch) -> Subnets:
    def put(observed: dict[str, Any] | None) -> None:
        monkeypatch.setattr("sandbox.cloud.provider.HANDLERS", {**handlers.HANDLERS, StandIn.token: StandIn(observed)})

    return put


def check(provider: EmulatedAws, urn: str, new: dict[str, Any], old: dict[str, Any] | None = None) -> Any:
    request = CheckRequest(urn, wire_map(old or {}), wire_map(new), bytes.fromhex("0123456789"))
    return asyncio.run(provider.check(request))


def diff(provider: EmulatedAws, urn: str, old: dict[str, Any], new: dict[str, Any], ignored: list[str]) -> Any:
    return asyncio.run(provider.diff(DiffRequest(urn, "id", wire_map(old), wire_map(new), ignored)))


def test_a_wrong_property_fails_the_check_by_its_path(provider: EmulatedAws) -> None:
    answer = check(provider, SUBNET, {"vpcId": "vpc-1", "colour": "red"})
    assert [(failure.property, failure.reason[:8]) for failure in answer.failures] == [("colour", "'colour'")]


def test_a_name_that_is_left_out_is_made_from_the_resource_and_stays(provider: EmulatedAws) -> None:
    first = plain_map(check(provider, KEY, {"publicKey": "ssh-ed25519 a"}).inputs)
    assert first["keyName"] == "login-0123456"
    assert first["__defaults"] == ["keyName"]
    request = CheckRequest(KEY, wire_map(first), wire_map({"publicKey": "ssh-ed25519 b"}), b"\xff" * 5)
    assert plain_map(asyncio.run(provider.check(request)).inputs or {})["keyName"] == "login-0123456"


def test_a_name_of_the_program_is_kept_and_a_prefix_is_used(provider: EmulatedAws) -> None:
    assert plain_map(check(provider, KEY, {"publicKey": "k", "keyName": "mine"}).inputs)["keyName"] == "mine"
    prefixed = plain_map(check(provider, KEY, {"publicKey": "k", "keyNamePrefix": "p-"}).inputs)
    assert prefixed["keyName"] == "p-0123456"


def test_a_resource_type_that_is_not_emulated_is_named(provider: EmulatedAws) -> None:
    (failure,) = check(provider, ALIEN, {}).failures
    assert failure.reason.startswith("the sandbox does not emulate aws:s3/bucket:Bucket; it has aws:ec2/eip:Eip")


def test_a_difference_tells_updates_from_replacements(provider: EmulatedAws) -> None:
    old = {"vpcId": "vpc-1", "cidrBlock": "10.0.0.0/24", "tags": {"a": "1"}}
    new = {"vpcId": "vpc-1", "cidrBlock": "10.0.1.0/24", "tags": {"a": "2"}}
    answer = diff(provider, SUBNET, old, new, [])
    assert answer.replaces == ["cidrBlock"]
    assert {path: item.kind for path, item in answer.detailed_diff.items()} == {
        "cidrBlock": PropertyDiffKind.UPDATE_REPLACE,
        "tags.a": PropertyDiffKind.UPDATE,
    }


def test_an_ignored_property_does_not_differ(provider: EmulatedAws) -> None:
    old, new = {"vpcId": "vpc-1", "cidrBlock": "a"}, {"vpcId": "vpc-1", "cidrBlock": "b"}
    assert diff(provider, SUBNET, old, new, ["cidrBlock"]).changes is False


def test_spelling_out_what_the_cloud_chose_is_no_difference(provider: EmulatedAws) -> None:
    state = {"vpcId": "vpc-1", "availabilityZone": "us-east-1a"}
    serving.OLD_INPUTS.set({"vpcId": "vpc-1"})
    assert diff(provider, SUBNET, state, state, []).changes is False
    serving.OLD_INPUTS.set(None)


def test_a_preview_knows_the_inputs_and_nothing_that_only_the_cloud_knows(provider: EmulatedAws) -> None:
    request = CreateRequest(SUBNET, wire_map({"vpcId": "vpc-1"}), 0, True)
    answer = asyncio.run(provider.create(request))
    assert answer.resource_id == ""
    state = plain_map(answer.properties)
    assert (state["vpcId"], state["arn"], state["availabilityZone"]) == ("vpc-1", UNKNOWN, UNKNOWN)


def test_a_preview_of_a_changed_template_does_not_know_the_next_version(provider: EmulatedAws) -> None:
    state = {"name": "a", "latestVersion": 1, "arn": "arn:x"}
    request = UpdateRequest(TEMPLATE, "lt-1", wire_map(state), wire_map({"name": "a"}), 0, [], True)
    assert plain_map(asyncio.run(provider.update(request)).properties)["latestVersion"] == UNKNOWN


def test_the_state_of_a_new_resource_is_its_inputs_and_outputs_and_nothing_else(
    provider: EmulatedAws, with_subnet: Subnets
) -> None:
    with_subnet({"arn": "arn:x", "tagsAll": {"a": "1"}, "secretThing": "no", "availabilityZoneId": None})
    request = CreateRequest(SUBNET, wire_map({"vpcId": "vpc-1", "__defaults": []}), 0, False)
    answer = asyncio.run(provider.create(request))
    assert answer.resource_id == "subnet-1"
    assert plain_map(answer.properties) == {"vpcId": "vpc-1", "arn": "arn:x", "tagsAll": {"a": "1"}}


def test_an_update_keeps_outputs_and_counts_all_tags(provider: EmulatedAws, with_subnet: Subnets) -> None:
    with_subnet({})
    old = {"vpcId": "vpc-1", "tags": {"a": "1"}, "tagsAll": {"a": "1"}, "ownerId": "1"}
    new = {"vpcId": "vpc-1", "tags": {"a": "2"}}
    request = UpdateRequest(SUBNET, "subnet-1", wire_map(old), wire_map(new), 0, [], False)
    state = plain_map(asyncio.run(provider.update(request)).properties)
    assert state["tagsAll"] == {"project": "kiln", "a": "2"}
    assert (state["ownerId"], state["arn"]) == ("1", "arn:new")


def test_a_refresh_puts_what_drifted_into_the_inputs_and_only_that(provider: EmulatedAws, with_subnet: Subnets) -> None:
    with_subnet({"vpcId": "vpc-1", "mapPublicIpOnLaunch": True, "tags": {"a": "2", "b": "3"}, "arn": "arn:x"})
    inputs = {"vpcId": "vpc-1", "mapPublicIpOnLaunch": False, "tags": {"a": "1"}}
    request = ReadRequest(SUBNET, "subnet-1", wire_map({**inputs, "arn": "arn:x"}), wire_map(inputs))
    answer = asyncio.run(provider.read(request))
    assert plain_map(answer.inputs) == {"vpcId": "vpc-1", "mapPublicIpOnLaunch": True, "tags": {"a": "2", "b": "3"}}


def test_an_import_gives_the_inputs_that_would_make_the_resource(provider: EmulatedAws, with_subnet: Subnets) -> None:
    with_subnet({"vpcId": "vpc-1", "mapPublicIpOnLaunch": False, "tags": {}, "arn": "arn:x", "cidrBlock": "10.0.0.0/8"})
    answer = asyncio.run(provider.read(ReadRequest(SUBNET, "subnet-1", {}, {})))
    assert plain_map(answer.inputs) == {"vpcId": "vpc-1", "cidrBlock": "10.0.0.0/8"}


def test_a_resource_that_is_gone_has_no_id(provider: EmulatedAws, with_subnet: Subnets) -> None:
    with_subnet(None)
    assert asyncio.run(provider.read(ReadRequest(SUBNET, "subnet-1", {}, {}))).resource_id == ""


def refusal(provider: EmulatedAws, arguments: dict[str, PropertyValue]) -> str:
    """Why the first check of a configured provider fails; configuring itself must not, or a traceback is shown."""
    asyncio.run(provider.configure(ConfigureRequest({}, arguments, False, False)))
    (failure,) = check(provider, SUBNET, {"vpcId": "vpc-1"}).failures
    return str(failure.reason)


def test_without_a_region_the_message_says_how_to_set_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    assert "pulumi config set aws:region" in refusal(EmulatedAws(tmp_path), {})


def test_without_a_sandbox_a_check_fails_and_a_call_too(tmp_path: Path) -> None:
    provider = EmulatedAws(tmp_path)
    assert "kiln sandbox start" in refusal(provider, {"region": PropertyValue("us-east-1")})
    with pytest.raises(SandboxDownError, match="kiln sandbox start"):
        asyncio.run(provider.read(ReadRequest(SUBNET, "subnet-1", {}, {})))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AwsError("X", "two\nlines"), "api error X: two lines"),
        (
            SandboxDownError("/home", "gone"),
            "the sandbox at /home is not running (gone): start it with `kiln sandbox start`",
        ),
        (KeyError("vpcId"), "unexpected KeyError in the emulated provider: 'vpcId'"),
        (ConfigError("wrong", remedy="do this"), "wrong -> do this"),
    ],
)
def test_every_error_is_one_line(error: Exception, text: str) -> None:
    assert serving.one_line(error) == text


class Context:
    """What a gRPC call gets to answer with."""

    def __init__(self) -> None:
        self.trailing: tuple[tuple[str, bytes], ...] = ()
        self.aborted: tuple[Any, str] | None = None

    def set_trailing_metadata(self, metadata: tuple[tuple[str, bytes], ...]) -> None:
        self.trailing = metadata

    async def abort(self, code: Any, details: str) -> None:
        self.aborted = (code, details)
        raise grpc.aio.AbortError


def served(provider: EmulatedAws, method: str, request: Any) -> Context:
    context = Context()
    servicer = serving.OneLineServicer([], "1.0.0", provider, engine_address="")
    with pytest.raises(grpc.aio.AbortError):
        asyncio.run(getattr(servicer, method)(request, context))
    return context


def test_an_error_reaches_the_engine_as_one_line_without_a_traceback(provider: EmulatedAws) -> None:
    context = served(provider, "Create", provider_pb2.CreateRequest(urn=ALIEN))
    assert context.aborted is not None
    assert "Traceback" not in context.aborted[1]
    assert context.aborted[1].startswith("the sandbox does not emulate aws:s3/bucket:Bucket")
    assert context.trailing == ()


def test_a_resource_that_is_made_but_not_ready_stays_in_the_state(
    provider: EmulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create(request: Any) -> Any:
        raise InitError("i-1", {"ami": "ami-1"}, {"ami": "ami-1"}, "cancelled while waiting")

    monkeypatch.setattr(provider, "create", create)
    context = served(provider, "Create", provider_pb2.CreateRequest(urn=SUBNET))
    status = status_pb2.Status.FromString(dict(context.trailing)["grpc-status-details-bin"])
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(detail)
    assert (detail.id, list(detail.reasons)) == ("i-1", ["cancelled while waiting"])


def test_what_is_gone_is_an_answer_without_properties(provider: EmulatedAws, with_subnet: Subnets) -> None:
    with_subnet(None)
    servicer = serving.OneLineServicer([], "1.0.0", provider, engine_address="")
    answer = asyncio.run(servicer.Read(provider_pb2.ReadRequest(urn=SUBNET, id="subnet-1"), Context()))
    assert not answer.HasField("properties")


def test_the_engine_gets_no_schema_to_cache_under_the_real_providers_name(provider: EmulatedAws) -> None:
    context = served(provider, "GetSchema", provider_pb2.GetSchemaRequest())
    assert context.aborted is not None
    assert "--generate-code=false" in context.aborted[1]


def test_the_plugin_is_where_the_environment_puts_it_on_path(repository: Path) -> None:
    plugin = repository / "sandbox" / "bin" / "pulumi-resource-aws"
    assert plugin.stat().st_mode & 0o111
