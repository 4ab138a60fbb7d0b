"""Launch template inputs in the form of EC2's API, and back."""

from __future__ import annotations

from sandbox.cloud import codec, semantics

TABLE = semantics.load()
INPUTS = {
    "imageId": "ami-1",
    "ebsOptimized": "true",
    "vpcSecurityGroupIds": ["sg-1"],
    "networkInterfaces": [
        {
            "networkCardIndex": 1,
            "deviceIndex": 0,
            "interfaceType": "efa-only",
            "securityGroups": ["sg-1"],
            "deleteOnTermination": "false",
        }
    ],
    "blockDeviceMappings": [{"deviceName": "/dev/sda1", "ebs": {"volumeSize": 200, "encrypted": "true"}}],
    "tagSpecifications": [{"resourceType": "instance", "tags": {"owner": "me"}}],
    "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
}


def test_inputs_become_the_data_of_the_api() -> None:
    assert codec.template_data(TABLE, {**INPUTS, "name": "x", "tags": {"a": "b"}}) == {
        "ImageId": "ami-1",
        "EbsOptimized": True,
        "SecurityGroupIds": ["sg-1"],
        "NetworkInterfaces": [
            {
                "NetworkCardIndex": 1,
                "DeviceIndex": 0,
                "InterfaceType": "efa-only",
                "Groups": ["sg-1"],
                "DeleteOnTermination": False,
            }
        ],
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "Encrypted": True}}],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "owner", "Value": "me"}]}],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
    }


def test_data_of_the_api_become_the_inputs_that_made_them() -> None:
    assert codec.template_inputs(TABLE, codec.template_data(TABLE, INPUTS)) == INPUTS


def test_what_the_api_leaves_empty_is_left_out() -> None:
    assert codec.template_inputs(TABLE, {"ImageId": "ami-1", "KeyName": "", "NetworkInterfaces": []}) == {
        "imageId": "ami-1"
    }
