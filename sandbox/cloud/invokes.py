"""The provider functions that programs look things up with."""

from __future__ import annotations

from collections.abc import Callable

from profiles.errors import ConfigError
from sandbox.cloud.session import ACCOUNT, Session
from sandbox.cloud.values import Properties


def _caller_identity(_: Session, __: Properties) -> Properties:
    return {"accountId": ACCOUNT, "arn": f"arn:aws:iam::{ACCOUNT}:user/sandbox", "userId": "SANDBOX", "id": ACCOUNT}


def _region(cloud: Session, args: Properties) -> Properties:
    region = args.get("region") or args.get("name") or cloud.region
    return {
        "region": region,
        "name": region,
        "id": region,
        "description": f"sandbox of {region}",
        "endpoint": f"ec2.{region}.amazonaws.com",
    }


def _availability_zones(cloud: Session, args: Properties) -> Properties:
    region = args.get("region")
    zones = cloud.call("describe_availability_zones", region)["AvailabilityZones"]
    return {
        "id": region or cloud.region,
        "names": [zone["ZoneName"] for zone in zones],
        "zoneIds": [zone["ZoneId"] for zone in zones],
        "groupNames": [region or cloud.region],
        "region": region or cloud.region,
    }


FUNCTIONS: dict[str, Callable[[Session, Properties], Properties]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
}


def answer(cloud: Session, token: str, args: Properties) -> Properties:
    """What the function ``token`` returns.

    Raises:
        ConfigError: the sandbox does not have it.
    """
    if token not in FUNCTIONS:
        raise ConfigError(f"the sandbox does not emulate {token}; it has {', '.join(sorted(FUNCTIONS))}")
    return FUNCTIONS[token](cloud, args)
