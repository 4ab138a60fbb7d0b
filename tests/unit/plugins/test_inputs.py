"""What a stack asked for reaches the expectation of each host."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.kiln.inputs import GateInputs, check

HOST: dict[str, Any] = {
    "name": "node-0",
    "address": "192.0.2.1",
    "instanceType": "p5.48xlarge",
    "user": "ubuntu",
    "privateKey": "very secret",
    "hostKey": "ssh-ed25519 AAAA",
}


def test_settings_that_nobody_asked_for_are_the_boards_own() -> None:
    wanted = GateInputs.read({"hosts": [HOST]}).targets[0].expectation
    assert (wanted.persistence, wanted.ecc, wanted.power_limit_w, wanted.mig) == (True, None, None, False)


def test_settings_that_were_asked_for_are_expected() -> None:
    host = {**HOST, "persistence": False, "ecc": False, "powerLimitW": 400.0, "mig": True}
    assert check({"hosts": [host]}) == []
    wanted = GateInputs.read({"hosts": [host]}).targets[0].expectation
    assert (wanted.persistence, wanted.ecc, wanted.power_limit_w, wanted.mig) == (False, False, 400.0, True)


@pytest.mark.parametrize(("name", "value"), [("ecc", "off"), ("persistence", 1), ("powerLimitW", "400 W")])
def test_a_setting_of_another_type_is_refused_by_its_property(name: str, value: object) -> None:
    assert [where for where, _ in check({"hosts": [{**HOST, name: value}]})] == [f"hosts[0].{name}"]
