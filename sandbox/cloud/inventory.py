"""What exists in the emulated cloud: moto's resources and those the sandbox keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sandbox.cloud.session import Session

REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1")


def resources(home: Path, region: str | None = None) -> dict[str, list[str]]:
    """Ids by kind, without what every new account has (the default VPC and its parts); {} where nothing is left."""
    session = Session(home, region or "us-east-1", {})
    found: dict[str, list[str]] = {}
    for name in (region,) if region else REGIONS:
        for kind, ids in _of_region(session, name).items():
            found.setdefault(kind, []).extend(ids)
    for kind, records in session.control.get("/kept").items():
        found.setdefault(kind, []).extend(records)
    found.setdefault("hosts", []).extend(item["id"] for item in session.control.get("/instances"))
    found.setdefault("addresses", []).extend(session.control.get("/addresses"))
    return {kind: sorted(set(ids)) for kind, ids in found.items() if ids}


def _of_region(session: Session, region: str) -> dict[str, list[str]]:
    vpcs = session.call("describe_vpcs", region)["Vpcs"]
    default = {vpc["VpcId"] for vpc in vpcs if vpc.get("IsDefault")}
    instances = [
        instance
        for reservation in session.call("describe_instances", region)["Reservations"]
        for instance in reservation["Instances"]
        if instance["State"]["Name"] != "terminated"
    ]

    def listed(action: str, key: str, name: str) -> list[str]:
        return [item[name] for item in session.call(action, region)[key] if _is_own(item, default)]

    return {
        "vpcs": [vpc["VpcId"] for vpc in vpcs if vpc["VpcId"] not in default],
        "subnets": listed("describe_subnets", "Subnets", "SubnetId"),
        "security-groups": listed("describe_security_groups", "SecurityGroups", "GroupId"),
        "route-tables": listed("describe_route_tables", "RouteTables", "RouteTableId"),
        "internet-gateways": [
            item["InternetGatewayId"]
            for item in session.call("describe_internet_gateways", region)["InternetGateways"]
            if not any(attachment["VpcId"] in default for attachment in item["Attachments"])
        ],
        "network-interfaces": listed("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
        "launch-templates": [
            item["LaunchTemplateId"] for item in session.call("describe_launch_templates", region)["LaunchTemplates"]
        ],
        "key-pairs": [item["KeyName"] for item in session.call("describe_key_pairs", region)["KeyPairs"]],
        "volumes": [item["VolumeId"] for item in session.call("describe_volumes", region)["Volumes"]],
        "elastic-ips": [item["AllocationId"] for item in session.call("describe_addresses", region)["Addresses"]],
        "instances": [instance["InstanceId"] for instance in instances],
    }


def _is_own(item: dict[str, Any], default_vpcs: set[str]) -> bool:
    """False for what belongs to a default VPC."""
    return item.get("VpcId") not in default_vpcs
