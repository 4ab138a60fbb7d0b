"""A launch: the template's data with the instance's own properties on top, and what user data say."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sandbox.cloud import launch

TEMPLATE = {
    "ImageId": "ami-1",
    "InstanceType": "p5.48xlarge",
    "KeyName": "login",
    "MetadataOptions": {"HttpTokens": "required"},
    "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "VolumeType": "gp3", "Iops": 6000}}],
    "Placement": {"GroupName": "group"},
    "UserData": base64.b64encode(b"#cloud-config\nssh_authorized_keys: [template]\n").decode(),
}
CONFIG = "#cloud-config\nssh_keys:\n  ed25519_private: |\n    KEY\n  ed25519_public: ssh-ed25519 AAAA\n"


def test_the_template_alone_is_the_request() -> None:
    request = launch.merged({}, TEMPLATE)
    assert request["ImageId"] == "ami-1"
    assert request["UserData"].startswith("#cloud-config")
    assert launch.root_volume(request) == {
        "deviceName": "/dev/sda1",
        "volumeSize": 200,
        "volumeType": "gp3",
        "encrypted": False,
        "deleteOnTermination": True,
        "iops": 6000,
        "throughput": 125,
    }


def test_the_instance_overrides_its_template_property_by_property() -> None:
    request = launch.merged(
        {
            "instanceType": "p5e.48xlarge",
            "userData": "mine",
            "rootBlockDevice": {"volumeSize": 500},
            "metadataOptions": {"httpPutResponseHopLimit": 2},
            "availabilityZone": "us-east-1b",
            "placementGroup": "other",
        },
        TEMPLATE,
    )
    assert request["InstanceType"] == "p5e.48xlarge"
    assert request["KeyName"] == "login"
    assert request["UserData"] == "mine"
    assert request["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    assert request["Placement"] == {"GroupName": "other", "AvailabilityZone": "us-east-1b"}
    assert launch.root_volume(request)["volumeSize"] == 500
    assert launch.root_volume(request)["iops"] == 6000


def test_an_instance_without_a_template_gets_the_defaults_of_aws() -> None:
    request = launch.merged({"ami": "ami-1", "instanceType": "g5.xlarge", "rootBlockDevice": {"volumeSize": 30}}, {})
    assert launch.root_volume(request)["iops"] == 3000
    assert launch.metadata_options(request)["httpTokens"] == "optional"
    assert [(nic["card"], nic["device"], nic["type"]) for nic in launch.interfaces(request)] == [(0, 0, "interface")]


def test_existing_interfaces_are_attached() -> None:
    wanted = {"networkInterfaces": [{"deviceIndex": 0, "networkInterfaceId": "eni-1"}]}
    nics = launch.interfaces(launch.merged(wanted, {}))
    assert nics[0]["existing"] == "eni-1"
    assert nics[0]["delete"] is False


def test_efa_interfaces_of_both_kinds_are_counted() -> None:
    kinds = ("interface", "efa", "efa-only", "efa-only")
    nics = launch.interfaces({"NetworkInterfaces": [{"DeviceIndex": 0, "InterfaceType": kind} for kind in kinds]})
    assert launch.efa_count(nics) == 3


def test_the_host_key_is_the_one_of_cloud_init() -> None:
    assert launch.host_key(CONFIG) == "KEY\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#!/bin/sh\necho ssh_keys",
        "#cloud-config\n- a list",
        "#cloud-config\n{broken: [",
        "#cloud-config\nssh_keys: 1",
    ],
)
def test_user_data_without_a_host_key_give_none(text: str) -> None:
    assert launch.host_key(text) == ""


def test_the_cloud_config_of_a_mime_archive_is_found() -> None:
    archive = (
        'Content-Type: multipart/mixed; boundary="B"\nMIME-Version: 1.0\n\n--B\n'
        "Content-Type: text/x-shellscript\n\n#!/bin/sh\n--B\n"
        f"Content-Type: text/cloud-config\n\n{CONFIG}\n--B--\n"
    )
    assert launch.host_key(archive).strip() == "KEY"


def test_authorized_keys_of_the_machine_and_of_its_users_are_read() -> None:
    users = "users:\n  - default\n  - name: x\n    ssh_authorized_keys: ['two ']\n"
    text = f"#cloud-config\nssh_authorized_keys: [one]\n{users}"
    assert launch.authorized_keys(text) == ["one", "two"]


@pytest.mark.parametrize(
    ("inputs", "template", "text"),
    [
        ({"userData": "plain"}, {"UserData": "dGVtcGxhdGU="}, "plain"),
        ({"userDataBase64": "ZW5jb2RlZA=="}, {}, "encoded"),
        ({}, {"UserData": "dGVtcGxhdGU="}, "template"),
        ({}, {"UserData": "not base64!"}, "not base64!"),
        ({}, {}, ""),
    ],
)
def test_user_data_come_from_the_instance_or_else_the_template(
    inputs: dict[str, Any], template: dict[str, Any], text: str
) -> None:
    assert launch.user_data(inputs, template) == text
