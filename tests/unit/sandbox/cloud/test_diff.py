"""What a change of inputs does: the rules of semantics.yaml, and the few that depend on more than one property."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.cloud import semantics
from sandbox.cloud.diff import compare
from sandbox.cloud.values import UNKNOWN

TABLE = semantics.load()
INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def effects(token: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    return {change.path: change.on_change for change in compare(TABLE, token, old, new).changes}


@pytest.mark.parametrize(
    ("name", "old", "new", "effect"),
    [
        ("ami", "ami-1", "ami-2", "replace"),
        ("subnetId", "subnet-1", "subnet-2", "replace"),
        ("keyName", "a", "b", "replace"),
        ("placementGroup", "a", "b", "replace"),
        ("instanceType", "p5.48xlarge", "p5e.48xlarge", "restart"),
        ("userData", "a", "b", "restart"),
        ("vpcSecurityGroupIds", ["sg-1"], ["sg-2"], "update"),
        ("monitoring", False, True, "update"),
    ],
)
def test_a_changed_property_of_an_instance_has_the_effect_of_the_real_provider(
    name: str, old: Any, new: Any, effect: str
) -> None:
    assert effects(INSTANCE, {name: old}, {name: new}) == {name: effect}


def test_a_tag_changes_in_place_and_by_its_key() -> None:
    old, new = {"tags": {"a": "1", "gone": "x"}}, {"tags": {"a": "2", "new": "y"}}
    diff = compare(TABLE, INSTANCE, old, new)
    assert {change.path: change.kind for change in diff.changes} == {
        "tags.a": "update",
        "tags.gone": "delete",
        "tags.new": "add",
    }
    assert diff.replaces == ()


def test_a_tag_key_with_a_colon_is_quoted_in_its_path() -> None:
    assert list(effects(INSTANCE, {"tags": {"a:b": "1"}}, {"tags": {"a:b": "2"}})) == ['tags["a:b"]']


def test_user_data_replace_only_where_the_program_says_so() -> None:
    old = {"userData": "a", "userDataReplaceOnChange": True}
    assert effects(INSTANCE, old, {**old, "userData": "b"}) == {"userData": "replace"}


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ({"id": "lt-1", "version": "1"}, {"id": "lt-2", "version": "1"}, "launchTemplate.id"),
        ({"name": "a", "version": "1"}, {"name": "b", "version": "1"}, "launchTemplate.name"),
        ({"id": "lt-1", "version": "1"}, {"id": "lt-1", "version": "2"}, "launchTemplate.version"),
        ({"id": "lt-1", "version": "1"}, {"id": "lt-1", "version": UNKNOWN}, "launchTemplate.version"),
    ],
)
def test_another_template_or_version_replaces_the_instance(old: Any, new: Any, path: str) -> None:
    assert effects(INSTANCE, {"launchTemplate": old}, {"launchTemplate": new}) == {path: "replace"}


def test_the_root_volume_grows_in_place_but_its_encryption_does_not_change() -> None:
    old = {"rootBlockDevice": {"volumeSize": 100, "encrypted": False}}
    new = {"rootBlockDevice": {"volumeSize": 200, "encrypted": True}}
    assert effects(INSTANCE, old, new) == {
        "rootBlockDevice.volumeSize": "update",
        "rootBlockDevice.encrypted": "replace",
    }


def test_what_the_program_leaves_out_and_the_cloud_fills_in_is_no_change() -> None:
    assert effects(INSTANCE, {"privateIp": "10.0.0.4", "ami": "ami-1"}, {}) == {}


def test_what_the_program_removes_and_the_cloud_does_not_fill_in_is_a_change() -> None:
    assert effects(INSTANCE, {"tags": {"a": "1"}}, {}) == {"tags": "update"}


def test_the_order_of_a_set_is_no_change_and_that_of_a_list_is() -> None:
    groups = {"vpcSecurityGroupIds": ["sg-1", "sg-2"]}
    assert effects(INSTANCE, groups, {"vpcSecurityGroupIds": ["sg-2", "sg-1"]}) == {}
    nics = [{"networkCardIndex": 0}, {"networkCardIndex": 1}]
    changed = effects(TEMPLATE, {"networkInterfaces": nics}, {"networkInterfaces": nics[::-1]})
    assert list(changed) == ["networkInterfaces[0].networkCardIndex", "networkInterfaces[1].networkCardIndex"]


def test_an_empty_list_is_the_same_as_none() -> None:
    assert effects(TEMPLATE, {"networkInterfaces": []}, {}) == {}


def test_every_change_of_a_launch_template_but_its_name_is_an_update() -> None:
    old = {"name": "a", "imageId": "ami-1", "metadataOptions": {"httpTokens": "optional"}}
    new = {"name": "a", "imageId": "ami-2", "metadataOptions": {"httpTokens": "required"}}
    assert set(effects(TEMPLATE, old, new).values()) == {"update"}
    assert effects(TEMPLATE, old, {**old, "name": "b"}) == {"name": "replace"}


def test_a_rule_keeps_its_id_while_the_kind_of_its_source_stays() -> None:
    old = {"securityGroupId": "sg-1", "ipProtocol": "-1", "cidrIpv4": "10.0.0.0/8"}
    assert effects(INGRESS, old, {**old, "cidrIpv4": "10.1.0.0/16"}) == {"cidrIpv4": "update"}
    other = {"securityGroupId": "sg-1", "ipProtocol": "-1", "referencedSecurityGroupId": "sg-2"}
    assert effects(INGRESS, old, other) == {"cidrIpv4": "replace", "referencedSecurityGroupId": "replace"}


def test_a_vpc_gives_up_dedicated_tenancy_in_place_but_does_not_take_it_up() -> None:
    dedicated, default = {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}
    assert effects("aws:ec2/vpc:Vpc", dedicated, default) == {"instanceTenancy": "update"}
    assert effects("aws:ec2/vpc:Vpc", default, dedicated) == {"instanceTenancy": "replace"}


@pytest.mark.parametrize(
    ("extra", "before"),
    [({}, True), ({"__defaults": ["keyName"]}, False)],
)
def test_a_name_fixed_by_the_program_must_go_before_it_comes_again(extra: dict[str, Any], before: bool) -> None:
    old = {"keyName": "login", "publicKey": "ssh-ed25519 a", **extra}
    diff = compare(TABLE, "aws:ec2/keyPair:KeyPair", old, {**old, "publicKey": "ssh-ed25519 b"})
    assert [change.path for change in diff.replaces] == ["publicKey"]
    assert diff.delete_before_replace is before
