"""Faults of the emulated cloud: refusals that are counted, launches that take long."""

from __future__ import annotations

import pytest

from profiles.errors import ConfigError
from sandbox.cloud.errors import AwsError
from sandbox.cloud.faults import CloudFaults


def test_no_capacity_refuses_as_often_as_asked_and_only_that_host() -> None:
    faults = CloudFaults()
    faults.inject("no-capacity", "node-0", 2)
    assert faults.launch("node-1", "p5.48xlarge") == 0
    for _ in range(2):
        with pytest.raises(AwsError, match=r"api error InsufficientInstanceCapacity: .*p5\.48xlarge capacity"):
            faults.launch("node-0", "p5.48xlarge")
    assert faults.launch("node-0", "p5.48xlarge") == 0


def test_no_capacity_without_a_number_lasts_until_it_is_cleared() -> None:
    faults = CloudFaults()
    faults.inject("no-capacity", "*", 0)
    for _ in range(3):
        with pytest.raises(AwsError):
            faults.launch("any", "g5.xlarge")
    faults.clear()
    assert faults.launch("any", "g5.xlarge") == 0


def test_a_slow_launch_takes_the_seconds_of_its_host_or_of_every_host() -> None:
    faults = CloudFaults()
    faults.inject("slow-create", "*", 2)
    faults.inject("slow-create", "node-0", 5)
    assert faults.launch("node-0", "g5.xlarge") == 5
    assert faults.launch("node-1", "g5.xlarge") == 2


@pytest.mark.parametrize(
    ("name", "value", "words"), [("lightning", 1, "no-capacity, slow-create, vanish"), ("slow-create", -1, "negative")]
)
def test_a_wrong_fault_is_refused(name: str, value: float, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CloudFaults().inject(name, "*", value)
