"""What AWS refuses at a launch and moto lets through, in AWS's error codes.

Pure: the request (RunInstances form), the instance type as DescribeInstanceTypes gives it, and a few facts. The words
of a message are AWS's where we know them and ours elsewhere; the codes are AWS's. Sources of the numbers:
EBS user guide and botocore 1.44.8 model (gp3 limits, 2026), "EFA and accelerated instance types" in the EC2 user
guide (interface layout), aws-ofi-nccl#53 (public address with several interfaces).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.cloud.errors import AwsError
from sandbox.cloud.launch import interfaces
from sandbox.cloud.values import Properties

USER_DATA_BYTES = 16384
AMI_ID = re.compile(r"^ami-([0-9a-f]{8}|[0-9a-f]{17})$")


@dataclass(frozen=True)
class VolumeLimits:
    """Bounds of one EBS volume type; sizes in GiB, throughput in MiB/s. ``ratio`` is IOPS per GiB."""

    size: tuple[int, int]
    iops: tuple[int, int] | None = None
    ratio: int | None = None
    throughput: tuple[int, int] | None = None
    iops_required: bool = False


VOLUMES = {
    "gp3": VolumeLimits((1, 65536), (3000, 80000), 500, (125, 2000)),
    "io1": VolumeLimits((4, 16384), (100, 64000), 50, iops_required=True),
    "io2": VolumeLimits((4, 65536), (100, 256000), 1000, iops_required=True),
    "gp2": VolumeLimits((1, 16384)),
    "st1": VolumeLimits((125, 16384)),
    "sc1": VolumeLimits((125, 16384)),
    "standard": VolumeLimits((1, 1024)),
}
GP3_BASELINE_IOPS = 3000
GP3_MIBPS_PER_IOPS = 0.25


@dataclass(frozen=True)
class Facts:
    """What the cloud knows at the moment of the launch."""

    type_info: dict[str, Any] | None
    zone: str
    zones_offered: frozenset[str]
    key_exists: bool
    placement_strategy: str | None  # None: the group named in the request does not exist


def check_launch(request: Properties, facts: Facts) -> None:
    """Let a launch that AWS would accept pass.

    Raises:
        AwsError: AWS would refuse it.
    """
    for judge in JUDGES:
        refusal = next(judge(request, facts), None)
        if refusal is not None:
            raise refusal


def _image(request: Properties, _: Facts) -> Iterator[AwsError]:
    image = request.get("ImageId")
    if not image:
        yield _error("MissingParameter", "The request must contain the parameter ImageId")
    elif not AMI_ID.match(image):
        yield _error("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')


def _type(request: Properties, facts: Facts) -> Iterator[AwsError]:
    name = request.get("InstanceType")
    if not name:
        yield _error("MissingParameter", "The request must contain the parameter InstanceType")
    elif facts.type_info is None:
        yield _error("InvalidParameterValue", f"Invalid value '{name}' for InstanceType.")
    elif facts.zone not in facts.zones_offered:
        offered = ", ".join(sorted(facts.zones_offered)) or "no zone of this region"
        yield _error(
            "Unsupported",
            f"Your requested instance type ({name}) is not supported in your requested Availability Zone "
            f"({facts.zone}). Please retry your request by not specifying an Availability Zone or choosing {offered}.",
        )


def _access(request: Properties, facts: Facts) -> Iterator[AwsError]:
    if request.get("KeyName") and not facts.key_exists:
        yield _error("InvalidKeyPair.NotFound", f"The key pair '{request['KeyName']}' does not exist")
    size = len(request.get("UserData", "").encode())
    if size > USER_DATA_BYTES:
        yield _error("InvalidParameterValue", f"User data is limited to {USER_DATA_BYTES} bytes, found {size}")
    hops = request.get("MetadataOptions", {}).get("HttpPutResponseHopLimit")
    if hops is not None and not 1 <= hops <= 64:
        yield _error("InvalidParameterValue", f"HttpPutResponseHopLimit {hops} must be between 1 and 64")


def _placement(request: Properties, facts: Facts) -> Iterator[AwsError]:
    group = request.get("Placement", {}).get("GroupName")
    if not group:
        return
    if facts.placement_strategy is None:
        yield _error("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
        return
    supported = _info(facts).get("PlacementGroupInfo", {}).get("SupportedStrategies", [])
    if supported and facts.placement_strategy not in supported:
        yield _error(
            "InvalidParameterCombination",
            f"{request['InstanceType']} does not support the placement strategy '{facts.placement_strategy}'",
        )
    if request.get("InstanceMarketOptions", {}).get("MarketType") == "capacity-block":
        yield _error("InvalidParameterCombination", "A Capacity Block launch cannot name a placement group")


def _combinations(request: Properties, _: Facts) -> Iterator[AwsError]:
    if not request.get("NetworkInterfaces"):
        return
    for name, words in (
        ("SubnetId", "an instance-level subnet ID"),
        ("SecurityGroupIds", "instance-level security groups"),
        ("PrivateIpAddress", "an instance-level private address"),
        ("AssociatePublicIpAddress", "an instance-level associatePublicIPAddress"),
    ):
        if request.get(name):
            yield _error(
                "InvalidParameterCombination",
                f"Network interfaces and {words} may not be specified on the same request",
            )


def _layout(request: Properties, facts: Facts) -> Iterator[AwsError]:
    nics = interfaces(request)
    name = request["InstanceType"]
    cards = {int(card["NetworkCardIndex"]): card for card in _info(facts)["NetworkInfo"].get("NetworkCards", [])}
    cards = cards or {0: {"MaximumNetworkInterfaces": _info(facts)["NetworkInfo"]["MaximumNetworkInterfaces"]}}
    if len(nics) > 1 and any(nic["public"] for nic in nics):
        yield _error(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with "
            "multiple network interfaces.",
        )
    seen: Counter[tuple[int, int]] = Counter((nic["card"], nic["device"]) for nic in nics)
    for (card, device), count in sorted(seen.items()):
        if card not in cards:
            yield _error("InvalidParameterValue", f"Network card index {card}: {name} has {len(cards)} network cards")
            return
        limit = cards[card]["MaximumNetworkInterfaces"]
        if device >= limit:
            yield _error(
                "InvalidParameterValue",
                f"Device index {device} on network card {card}: {name} allows {limit} interfaces on that card, "
                f"so device indexes 0 to {limit - 1}",
            )
        if count > 1:
            yield _error(
                "InvalidParameterValue",
                f"{count} network interfaces have device index {device} on network card {card}",
            )
    if (0, 0) not in seen:
        yield _error(
            "InvalidParameterValue", "No primary network interface: device index 0 on network card 0 is missing"
        )


def _efa(request: Properties, facts: Facts) -> Iterator[AwsError]:
    name = request["InstanceType"]
    nics = interfaces(request)
    efa = [nic for nic in nics if nic["type"] in ("efa", "efa-only")]
    unknown = sorted({nic["type"] for nic in nics} - {"interface", "efa", "efa-only"})
    if unknown:
        yield _error("InvalidParameterValue", f"Invalid value '{unknown[0]}' for InterfaceType.")
    if not efa:
        return
    network = _info(facts)["NetworkInfo"]
    if not network.get("EfaSupported"):
        yield _error("UnsupportedOperation", f"EFA interfaces are not supported on {name}")
        return
    limit = network["EfaInfo"]["MaximumEfaInterfaces"]
    if len(efa) > limit:
        yield _error("AttachmentLimitExceeded", f"{len(efa)} EFA interfaces requested; {name} allows {limit}")
    if any(nic["type"] == "efa-only" and (nic["card"], nic["device"]) == (0, 0) for nic in efa):
        yield _error(
            "InvalidParameterCombination", "The primary network interface cannot be efa-only: it has no IP address"
        )
    for card, count in Counter(nic["card"] for nic in efa).items():
        if count > 1:
            yield _error(
                "InvalidParameterCombination", f"{count} EFA interfaces on network card {card}; one is allowed"
            )
    if len(network.get("NetworkCards", [])) > limit and any(nic["card"] == 0 for nic in efa):
        yield _error("UnsupportedOperation", f"Network card 0 of {name} carries no EFA")


def _volumes(request: Properties, _: Facts) -> Iterator[AwsError]:
    for device in request.get("BlockDeviceMappings") or []:
        if device.get("Ebs"):
            yield from volume_errors(device["Ebs"])


def volume_errors(ebs: Properties) -> Iterator[AwsError]:
    """Why AWS would refuse this volume."""
    kind = ebs.get("VolumeType") or "gp3"
    if kind not in VOLUMES:
        yield _error("InvalidParameterValue", f"Value ({kind}) for parameter volumeType is invalid.")
        return
    limits = VOLUMES[kind]
    size, iops = ebs.get("VolumeSize"), ebs.get("Iops")
    if size is not None and not limits.size[0] <= size <= limits.size[1]:
        low, high = limits.size
        yield _error(
            "InvalidParameterValue", f"Volume of {size}GiB is invalid for {kind}; it takes {low} to {high} GiB"
        )
    if limits.iops_required and not iops:
        yield _error("MissingParameter", f"The parameter iops must be specified for {kind} volumes.")
    if iops:
        yield from _iops_errors(kind, limits, iops, size)
    if ebs.get("Throughput"):
        yield from _throughput_errors(kind, limits, ebs["Throughput"], iops or GP3_BASELINE_IOPS)


def _iops_errors(kind: str, limits: VolumeLimits, iops: int, size: int | None) -> Iterator[AwsError]:
    if limits.iops is None or limits.ratio is None:
        yield _error("InvalidParameterCombination", f"The parameter iops is not supported for {kind} volumes.")
        return
    low, high = limits.iops
    if not low <= iops <= high:
        yield _error("InvalidParameterValue", f"Volume iops of {iops} is invalid for {kind}; it takes {low} to {high}")
    baseline = kind == "gp3" and iops <= GP3_BASELINE_IOPS
    if size and not baseline and iops > limits.ratio * size:
        yield _error(
            "InvalidParameterValue",
            f"Iops to volume size ratio of {iops / size:.1f} is too high; maximum is {limits.ratio} for {kind}",
        )


def _throughput_errors(kind: str, limits: VolumeLimits, throughput: int, iops: int) -> Iterator[AwsError]:
    if limits.throughput is None:
        yield _error("InvalidParameterCombination", f"The parameter throughput is not supported for {kind} volumes.")
        return
    low, high = limits.throughput
    if not low <= throughput <= high:
        yield _error(
            "InvalidParameterValue",
            f"Volume throughput of {throughput}MiBps is invalid for {kind}; it takes {low} to {high}",
        )
    if throughput > GP3_MIBPS_PER_IOPS * iops:
        yield _error(
            "InvalidParameterValue",
            f"Throughput (MiBps) to iops ratio of {throughput / iops:.6f} is too high; "
            f"maximum is {GP3_MIBPS_PER_IOPS:.6f} MiBps per iops",
        )


def _info(facts: Facts) -> dict[str, Any]:
    return facts.type_info or {}


def _error(code: str, message: str) -> AwsError:
    return AwsError(code, message, action="RunInstances")


JUDGES: tuple[Callable[[Properties, Facts], Iterator[AwsError]], ...] = (
    _image,
    _type,
    _access,
    _placement,
    _combinations,
    _layout,
    _efa,
    _volumes,
)
