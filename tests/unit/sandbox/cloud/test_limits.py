"""What AWS refuses at a launch: each rule by its own test, with AWS's code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox.cloud.errors import AwsError
from sandbox.cloud.limits import Facts, check_launch, volume_errors

AMI = "ami-0123456789abcdef0"


def kind(name: str, cards: int, per_card: int, efa: int, strategies: tuple[str, ...] = ("cluster",)) -> dict[str, Any]:
    network: dict[str, Any] = {
        "MaximumNetworkInterfaces": cards * per_card,
        "NetworkCards": [{"NetworkCardIndex": card, "MaximumNetworkInterfaces": per_card} for card in range(cards)],
        "EfaSupported": efa > 0,
    }
    if efa:
        network["EfaInfo"] = {"MaximumEfaInterfaces": efa}
    return {"InstanceType": name, "NetworkInfo": network, "PlacementGroupInfo": {"SupportedStrategies": [*strategies]}}


P5 = kind("p5.48xlarge", 32, 2, 32)
P6 = kind("p6-b300.48xlarge", 17, 4, 16)
G5 = kind("g5.xlarge", 1, 4, 0)


def facts(info: dict[str, Any] | None = P5, **changes: Any) -> Facts:
    known = Facts(info, "us-east-1a", frozenset({"us-east-1a", "us-east-1b"}), True, None)
    return replace(known, **changes)


def nic(card: int, device: int, kind: str = "interface", **extra: Any) -> dict[str, Any]:
    return {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind, "SubnetId": "subnet-1", **extra}


def request(*nics: dict[str, Any], name: str = "p5.48xlarge", **extra: Any) -> dict[str, Any]:
    wanted: dict[str, Any] = {"ImageId": AMI, "InstanceType": name, "UserData": "", **extra}
    return {**wanted, "NetworkInterfaces": [*nics]} if nics else wanted


def refusal(wanted: dict[str, Any], known: Facts | None = None) -> AwsError:
    with pytest.raises(AwsError) as caught:
        check_launch(wanted, known or facts())
    return caught.value


CURRENT_P5 = [nic(0, 0), nic(0, 1, "efa-only"), *(nic(card, 0, "efa-only") for card in range(1, 32))]


def test_the_current_layout_of_33_interfaces_is_accepted() -> None:
    assert len(CURRENT_P5) == 33
    check_launch(request(*CURRENT_P5), facts())


def test_a_plain_launch_is_accepted() -> None:
    check_launch(request(name="g5.xlarge", SubnetId="subnet-1", AssociatePublicIpAddress=True), facts(G5))


@pytest.mark.parametrize(
    ("wanted", "known", "code", "words"),
    [
        ({**request(), "ImageId": "ami-latest"}, facts(), "InvalidAMIID.Malformed", 'expecting "ami-..."'),
        ({**request(), "ImageId": ""}, facts(), "MissingParameter", "ImageId"),
        ({**request(), "InstanceType": ""}, facts(), "MissingParameter", "InstanceType"),
        (request(name="p99.bogus"), facts(None), "InvalidParameterValue", "'p99.bogus' for InstanceType"),
        (request(), facts(zone="us-east-1e"), "Unsupported", "us-east-1a, us-east-1b"),
        (request(KeyName="k"), facts(key_exists=False), "InvalidKeyPair.NotFound", "'k' does not exist"),
        (request(UserData="x" * 16385), facts(), "InvalidParameterValue", "limited to 16384 bytes"),
        (
            request(MetadataOptions={"HttpPutResponseHopLimit": 65}),
            facts(),
            "InvalidParameterValue",
            "between 1 and 64",
        ),
        (request(Placement={"GroupName": "g"}), facts(), "InvalidPlacementGroup.Unknown", "'g' is unknown"),
        (
            request(Placement={"GroupName": "g"}),
            facts(placement_strategy="spread"),
            "InvalidParameterCombination",
            "strategy 'spread'",
        ),
        (
            request(Placement={"GroupName": "g"}, InstanceMarketOptions={"MarketType": "capacity-block"}),
            facts(placement_strategy="cluster"),
            "InvalidParameterCombination",
            "Capacity Block",
        ),
    ],
)
def test_a_wrong_launch_is_refused_with_the_code_of_aws(
    wanted: dict[str, Any], known: Facts, code: str, words: str
) -> None:
    error = refusal(wanted, known)
    assert error.code == code
    assert words in error.text
    assert str(error).startswith("operation error EC2: RunInstances, api error ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("SubnetId", "subnet-1"),
        ("SecurityGroupIds", ["sg-1"]),
        ("PrivateIpAddress", "10.0.0.4"),
        ("AssociatePublicIpAddress", True),
    ],
)
def test_interfaces_exclude_what_is_said_for_the_whole_instance(key: str, value: Any) -> None:
    assert refusal(request(nic(0, 0), **{key: value})).code == "InvalidParameterCombination"


@pytest.mark.parametrize(
    ("nics", "words"),
    [
        ([nic(0, 0, AssociatePublicIpAddress=True), nic(0, 1)], "multiple network interfaces"),
        ([nic(0, 0), nic(32, 0)], "p5.48xlarge has 32 network cards"),
        ([nic(0, 0), nic(1, 2)], "device indexes 0 to 1"),
        ([nic(0, 0), nic(1, 0), nic(1, 0)], "2 network interfaces have device index 0 on network card 1"),
        ([nic(0, 1)], "No primary network interface"),
        ([nic(0, 0), nic(1, 0, "efa_only")], "Invalid value 'efa_only'"),
        ([nic(0, 0, "efa-only")], "cannot be efa-only"),
        ([nic(0, 0, "efa"), nic(0, 1, "efa-only")], "2 EFA interfaces on network card 0"),
    ],
)
def test_a_wrong_layout_is_refused(nics: list[dict[str, Any]], words: str) -> None:
    assert words in refusal(request(*nics)).text


def test_efa_is_refused_on_a_type_without_it() -> None:
    error = refusal(request(nic(0, 0, "efa"), name="g5.xlarge"), facts(G5))
    assert error.code == "UnsupportedOperation"
    assert error.text == "EFA interfaces are not supported on g5.xlarge"


def test_more_efa_interfaces_than_the_type_has_are_refused() -> None:
    few = {**P5, "NetworkInfo": {**P5["NetworkInfo"], "EfaInfo": {"MaximumEfaInterfaces": 2}}}
    error = refusal(request(*CURRENT_P5), facts(few))
    assert (error.code, error.text) == ("AttachmentLimitExceeded", "32 EFA interfaces requested; p5.48xlarge allows 2")


def test_the_first_card_of_a_b300_carries_no_efa() -> None:
    name = "p6-b300.48xlarge"
    good = [nic(0, 0), *(nic(card, 0, "efa-only") for card in range(1, 17))]
    check_launch(request(*good, name=name), facts(P6))
    bad = [nic(0, 0), nic(0, 1, "efa-only")]
    assert refusal(request(*bad, name=name), facts(P6)).text == f"Network card 0 of {name} carries no EFA"


@pytest.mark.parametrize(
    "ebs",
    [
        {"VolumeType": "gp3", "VolumeSize": 8, "Iops": 3000},
        {"VolumeType": "gp3", "VolumeSize": 160, "Iops": 80000, "Throughput": 2000},
        {"VolumeType": "gp3", "VolumeSize": 65536},
        {"VolumeType": "gp3", "Throughput": 750},
        {"VolumeType": "io2", "VolumeSize": 100, "Iops": 100000},
        {"VolumeType": "gp2", "VolumeSize": 100},
        {},
    ],
)
def test_a_volume_within_the_limits_is_accepted(ebs: dict[str, Any]) -> None:
    assert list(volume_errors(ebs)) == []


@pytest.mark.parametrize(
    ("ebs", "code", "words"),
    [
        ({"VolumeType": "gp9"}, "InvalidParameterValue", "(gp9) for parameter volumeType"),
        ({"VolumeType": "gp3", "VolumeSize": 65537}, "InvalidParameterValue", "1 to 65536 GiB"),
        ({"VolumeType": "gp3", "VolumeSize": 0}, "InvalidParameterValue", "1 to 65536 GiB"),
        ({"VolumeType": "gp3", "VolumeSize": 8, "Iops": 16000}, "InvalidParameterValue", "ratio of 2000.0 is too high"),
        ({"VolumeType": "gp3", "Iops": 80001}, "InvalidParameterValue", "3000 to 80000"),
        ({"VolumeType": "gp3", "Iops": 2999}, "InvalidParameterValue", "3000 to 80000"),
        ({"VolumeType": "gp3", "Throughput": 9999, "Iops": 80000}, "InvalidParameterValue", "125 to 2000"),
        ({"VolumeType": "gp3", "Throughput": 751}, "InvalidParameterValue", "ratio of 0.250333 is too high"),
        ({"VolumeType": "io1", "VolumeSize": 100}, "MissingParameter", "iops must be specified for io1"),
        ({"VolumeType": "io1", "VolumeSize": 100, "Iops": 5001}, "InvalidParameterValue", "maximum is 50 for io1"),
        ({"VolumeType": "gp2", "Iops": 3000}, "InvalidParameterCombination", "iops is not supported for gp2"),
        ({"VolumeType": "io2", "Iops": 3000, "Throughput": 500}, "InvalidParameterCombination", "throughput"),
    ],
)
def test_a_volume_outside_the_limits_is_refused(ebs: dict[str, Any], code: str, words: str) -> None:
    error = next(volume_errors(ebs))
    assert error.code == code
    assert words in error.text


def test_every_volume_of_the_launch_is_judged() -> None:
    devices = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8}}, {"DeviceName": "/dev/sdb", "Ebs": {"Iops": 1}}]
    assert "iops of 1" in refusal(request(BlockDeviceMappings=devices)).text
