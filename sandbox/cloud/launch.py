"""What one instance is launched with: its launch template, with the instance's own properties on top.

Everything here is pure. The result is what :mod:`sandbox.cloud.limits` judges, what moto is asked for, and what the
sandbox keeps where moto would drop it: every network interface, the placement group, the root volume's performance,
the metadata options.
"""

from __future__ import annotations

import base64
import binascii
import email
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from sandbox.cloud.values import Properties

ROOT_DEVICE = "/dev/sda1"
SELECTED = {
    "ami": "ImageId",
    "instanceType": "InstanceType",
    "keyName": "KeyName",
    "ebsOptimized": "EbsOptimized",
    "disableApiTermination": "DisableApiTermination",
    "disableApiStop": "DisableApiStop",
    "instanceInitiatedShutdownBehavior": "InstanceInitiatedShutdownBehavior",
    "subnetId": "SubnetId",
    "vpcSecurityGroupIds": "SecurityGroupIds",
    "privateIp": "PrivateIpAddress",
}
METADATA = {
    "httpEndpoint": "HttpEndpoint",
    "httpProtocolIpv6": "HttpProtocolIpv6",
    "httpPutResponseHopLimit": "HttpPutResponseHopLimit",
    "httpTokens": "HttpTokens",
    "instanceMetadataTags": "InstanceMetadataTags",
}
VOLUME = {
    "volumeSize": "VolumeSize",
    "volumeType": "VolumeType",
    "iops": "Iops",
    "throughput": "Throughput",
    "encrypted": "Encrypted",
    "kmsKeyId": "KmsKeyId",
    "deleteOnTermination": "DeleteOnTermination",
}


class TemplateReference(BaseModel):
    """The launch template version that an instance was really launched from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    version: int


def merged(inputs: Properties, template: Properties) -> Properties:
    """The RunInstances request of an instance: the template's data, overridden by the instance's own properties."""
    request = {key: value for key, value in template.items() if key != "UserData"}
    for name, argument in SELECTED.items():
        if inputs.get(name) is not None:
            request[argument] = inputs[name]
    if inputs.get("placementGroup"):
        request["Placement"] = {**request.get("Placement", {}), "GroupName": inputs["placementGroup"]}
    if inputs.get("availabilityZone"):
        request["Placement"] = {**request.get("Placement", {}), "AvailabilityZone": inputs["availabilityZone"]}
    if inputs.get("metadataOptions"):
        own = _renamed(METADATA, inputs["metadataOptions"])
        request["MetadataOptions"] = {**request.get("MetadataOptions", {}), **own}
    if inputs.get("rootBlockDevice"):
        devices = request.get("BlockDeviceMappings", [])
        request["BlockDeviceMappings"] = _with_root(devices, _renamed(VOLUME, inputs["rootBlockDevice"]))
    if inputs.get("networkInterfaces"):
        request["NetworkInterfaces"] = [_existing(item) for item in inputs["networkInterfaces"]]
    if inputs.get("associatePublicIpAddress") is not None:
        request["AssociatePublicIpAddress"] = inputs["associatePublicIpAddress"]
    request["UserData"] = user_data(inputs, template)
    return request


def _renamed(names: Mapping[str, str], values: Properties) -> Properties:
    return {argument: values[name] for name, argument in names.items() if values.get(name) is not None}


def _existing(item: Properties) -> Properties:
    return {
        "NetworkInterfaceId": item["networkInterfaceId"],
        "DeviceIndex": item["deviceIndex"],
        "NetworkCardIndex": item.get("networkCardIndex", 0),
        "DeleteOnTermination": bool(item.get("deleteOnTermination")),
    }


def _with_root(devices: list[Properties], own: Properties) -> list[Properties]:
    roots = [device for device in devices if device.get("DeviceName") in (ROOT_DEVICE, "/dev/xvda")]
    others = [device for device in devices if device not in roots]
    root: Properties = roots[0] if roots else {"DeviceName": ROOT_DEVICE, "Ebs": {}}
    return [{**root, "Ebs": {**root.get("Ebs", {}), **own}}, *others]


def user_data(inputs: Properties, template: Properties) -> str:
    """The user data as text: the instance's own, else the template's, which is base64; "" where there is none."""
    if inputs.get("userData"):
        return str(inputs["userData"])
    encoded = inputs.get("userDataBase64") or template.get("UserData")
    if not encoded:
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8", errors="replace")
    except (binascii.Error, ValueError):
        return str(encoded)


def interfaces(request: Properties) -> list[Properties]:
    """Every network interface of the launch; one plain one where the request lists none."""
    given = request.get("NetworkInterfaces") or [{"DeviceIndex": 0}]
    return [
        {
            "card": int(item.get("NetworkCardIndex") or 0),
            "device": int(item.get("DeviceIndex") or 0),
            "type": item.get("InterfaceType") or "interface",
            "subnet": item.get("SubnetId") or request.get("SubnetId"),
            "groups": item.get("Groups") or request.get("SecurityGroupIds") or [],
            "existing": item.get("NetworkInterfaceId"),
            "public": item.get("AssociatePublicIpAddress"),
            "delete": item.get("DeleteOnTermination", True),
        }
        for item in given
    ]


def efa_count(nics: list[Properties]) -> int:
    """How many of the interfaces carry an EFA device."""
    return sum(nic["type"] in ("efa", "efa-only") for nic in nics)


def root_volume(request: Properties) -> Properties:
    """Size, type, IOPS and throughput of the root volume, with AWS's defaults (gp3: 3,000 IOPS, 125 MiB/s)."""
    devices = request.get("BlockDeviceMappings") or [{}]
    ebs = devices[0].get("Ebs", {})
    kind = ebs.get("VolumeType") or "gp3"
    volume: Properties = {
        "deviceName": devices[0].get("DeviceName", ROOT_DEVICE),
        "volumeSize": int(ebs.get("VolumeSize") or 8),
        "volumeType": kind,
        "encrypted": bool(ebs.get("Encrypted", False)),
        "deleteOnTermination": bool(ebs.get("DeleteOnTermination", True)),
    }
    if kind == "gp3":
        volume |= {"iops": int(ebs.get("Iops") or 3000), "throughput": int(ebs.get("Throughput") or 125)}
    elif ebs.get("Iops"):
        volume["iops"] = int(ebs["Iops"])
    return volume


def metadata_options(request: Properties) -> Properties:
    """The metadata options in effect, with AWS's defaults."""
    given = request.get("MetadataOptions", {})
    defaults: Properties = {
        "httpEndpoint": "enabled",
        "httpProtocolIpv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "optional",
        "instanceMetadataTags": "disabled",
    }
    return {name: given.get(METADATA[name], default) for name, default in defaults.items()}


def cloud_config(text: str) -> dict[str, Any]:
    """The ``#cloud-config`` of the user data, {} where it has none; the first one of a MIME archive."""
    if text.lstrip().lower().startswith(("content-type:", "mime-version:")):
        for part in email.message_from_string(text).walk():
            payload = part.get_payload(decode=True)
            if isinstance(payload, bytes) and payload.lstrip().startswith(b"#cloud-config"):
                return cloud_config(payload.decode("utf-8", errors="replace"))
        return {}
    if not text.lstrip().startswith("#cloud-config"):
        return {}
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return loaded if isinstance(loaded, dict) else {}


def host_key(text: str) -> str:
    """The private ed25519 host key that cloud-init would install; "" where the user data has none."""
    keys = cloud_config(text).get("ssh_keys")
    return str(keys.get("ed25519_private", "")) if isinstance(keys, dict) else ""


def authorized_keys(text: str) -> list[str]:
    """The public keys that cloud-init would let in, of the default user."""
    config = cloud_config(text)
    keys = list(config.get("ssh_authorized_keys") or [])
    for user in config.get("users") or []:
        if isinstance(user, dict):
            keys.extend(user.get("ssh_authorized_keys") or [])
    return [str(key).strip() for key in keys]
