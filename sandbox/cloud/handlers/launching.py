"""The calls of one launch: what is needed to judge it, moto's part, and the record that the sandbox keeps."""

from __future__ import annotations

from typing import Any

from sandbox.cloud import launch, limits
from sandbox.cloud.errors import AwsError
from sandbox.cloud.handlers.template import find_group, version_data
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties


def template(cloud: Session, inputs: Properties, region: str | None) -> tuple[Properties | None, Properties]:
    """The launch template version that an instance is to be launched from, and its data; none and {} without one."""
    wanted = inputs.get("launchTemplate")
    if not wanted:
        return None, {}
    template = wanted.get("id") or wanted.get("name")
    if not template:
        raise AwsError("MissingParameter", "launchTemplate needs an id or a name")
    return version_data(cloud, template, str(wanted.get("version", "$Default")), region)


def facts(cloud: Session, request: Properties, region: str | None) -> limits.Facts:
    """What the cloud knows about everything that the request names."""
    subnet_id = next((nic["subnet"] for nic in launch.interfaces(request) if nic["subnet"]), None)
    zone = request.get("Placement", {}).get("AvailabilityZone") or f"{region or cloud.region}a"
    if subnet_id:
        zone = cloud.call("describe_subnets", region, SubnetIds=[subnet_id])["Subnets"][0]["AvailabilityZone"]
    kind = request.get("InstanceType", "")
    offerings = cloud.call(
        "describe_instance_type_offerings",
        region,
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [kind]}],
    )["InstanceTypeOfferings"]
    key = request.get("KeyName")
    group = request.get("Placement", {}).get("GroupName")
    found = find_group(cloud, group) if group else None
    return limits.Facts(
        type_info=cloud.instance_type(kind, region),
        zone=zone,
        zones_offered=frozenset(item["Location"] for item in offerings),
        key_exists=not key or cloud.call_unless_gone("describe_key_pairs", region, KeyNames=[key]) is not None,
        placement_strategy=found["strategy"] if found else None,
    )


def run(cloud: Session, request: Properties, inputs: Properties, region: str | None) -> str:
    """Ask moto for the instance with its primary interface only; moto merges several into one (5.2.5)."""
    primary = min(launch.interfaces(request), key=lambda nic: (nic["card"], nic["device"]))
    text = request.get("UserData", "")
    answer = cloud.call(
        "run_instances",
        region,
        ImageId=request["ImageId"],
        InstanceType=request["InstanceType"],
        MinCount=1,
        MaxCount=1,
        KeyName=request.get("KeyName"),
        NetworkInterfaces=[_primary(primary)],
        UserData=text or None,
        DisableApiTermination=request.get("DisableApiTermination"),
        EbsOptimized=request.get("EbsOptimized"),
        BlockDeviceMappings=_plain_devices(request) or None,
        TagSpecifications=_tags(cloud, request, inputs),
    )
    return str(answer["Instances"][0]["InstanceId"])


def _primary(nic: Properties) -> dict[str, Any]:
    """The primary interface in the form that makes moto delete it with the instance."""
    if nic["existing"]:
        return {"DeviceIndex": 0, "NetworkInterfaceId": nic["existing"]}
    wanted = {"SubnetId": nic["subnet"], "Groups": nic["groups"] or None}
    return {
        "DeviceIndex": 0,
        "DeleteOnTermination": nic["delete"],
        **{key: value for key, value in wanted.items() if value},
    }


def _plain_devices(request: Properties) -> list[dict[str, Any]]:
    """The volumes without what moto does not keep."""
    devices = []
    for device in request.get("BlockDeviceMappings") or []:
        ebs = {
            key: value
            for key, value in device.get("Ebs", {}).items()
            if key in ("VolumeSize", "VolumeType", "Encrypted", "DeleteOnTermination", "SnapshotId")
        }
        if ebs:
            devices.append({"DeviceName": device["DeviceName"], "Ebs": {"DeleteOnTermination": True, **ebs}})
    return devices


def _tags(cloud: Session, request: Properties, inputs: Properties) -> list[dict[str, Any]] | None:
    """The instance's tags over the template's, and the template's tags of volumes."""
    specifications = {item["ResourceType"]: item["Tags"] for item in request.get("TagSpecifications") or []}
    own = cloud.tag_specification("instance", inputs)
    tags = {tag["Key"]: tag["Value"] for tag in specifications.get("instance", [])}
    tags |= {tag["Key"]: tag["Value"] for item in own or [] for tag in item["Tags"]}
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    wanted = [{"ResourceType": "instance", "Tags": pairs}] if pairs else []
    volume = {tag["Key"]: tag["Value"] for tag in specifications.get("volume", [])} | (inputs.get("volumeTags") or {})
    if volume:
        wanted.append(
            {"ResourceType": "volume", "Tags": [{"Key": key, "Value": value} for key, value in volume.items()]}
        )
    return wanted or None


def record(
    cloud: Session, request: Properties, name: str, reference: Properties | None, region: str | None
) -> Properties:
    """What the sandbox keeps of a launch, and what its host needs."""
    nics = launch.interfaces(request)
    text = request.get("UserData", "")
    keys = launch.authorized_keys(text)
    if request.get("KeyName"):
        pairs = cloud.call("describe_key_pairs", region, KeyNames=[request["KeyName"]], IncludePublicKey=True)
        keys += [pair["PublicKey"] for pair in pairs["KeyPairs"] if pair.get("PublicKey")]
    subnet_id = next((nic["subnet"] for nic in nics if nic["subnet"]), None)
    subnets = cloud.call("describe_subnets", region, SubnetIds=[subnet_id])["Subnets"] if subnet_id else []
    asked = [nic["public"] for nic in nics if nic["public"] is not None] or [request.get("AssociatePublicIpAddress")]
    by_subnet = len(nics) == 1 and bool(subnets and subnets[0].get("MapPublicIpOnLaunch"))
    return {
        "name": name,
        "instance_type": request["InstanceType"],
        "region": region or cloud.region,
        "nics": nics,
        "efa_count": launch.efa_count(nics),
        "root": launch.root_volume(request),
        "metadata": launch.metadata_options(request),
        "placement_group": request.get("Placement", {}).get("GroupName", ""),
        "template": reference,
        "public": bool(asked[0] if asked[0] is not None else by_subnet),
        "host_key": launch.host_key(text),
        "authorized_keys": keys,
        "request": {key: value for key, value in request.items() if key != "UserData"},
    }
