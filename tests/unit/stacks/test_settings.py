"""Settings: the same keys as Pulumi.yaml, and everything wrong with them at once, by property path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.alias_generators import to_camel

from stacks import settings
from stacks.settings import InventoryHost, RootVolume, Settings


def declared(repository: Path) -> dict[str, dict[str, Any]]:
    config: dict[str, dict[str, Any]] = yaml.safe_load((repository / "Pulumi.yaml").read_text())["config"]
    return config


def test_pulumi_yaml_declares_exactly_the_settings_each_with_type_default_and_description(repository: Path) -> None:
    config = declared(repository)
    assert set(config) == {to_camel(name) for name in Settings.model_fields}
    for key, entry in config.items():
        assert {"type", "default", "description"} <= set(entry), key


def test_the_defaults_of_pulumi_yaml_are_those_of_the_settings(repository: Path) -> None:
    raw = {key: entry["default"] for key, entry in declared(repository).items()}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in raw.items()}
    assert settings.read(texts) == (Settings(), [])


def test_values_come_as_texts_and_objects_as_json() -> None:
    found, problems = settings.read(
        {
            "count": "3",
            "driver": "580",
            "rootVolume": '{"sizeGib": 500, "iops": 4000}',
            "inventory": '[{"name": "a", "address": "192.0.2.1", "instanceType": "g5.xlarge", "acceptNew": true}]',
        }
    )
    assert problems == []
    assert found.count == 3
    assert found.driver == "580"
    assert found.root_volume == RootVolume.model_validate({"sizeGib": 500, "iops": 4000})
    assert found.inventory == (
        InventoryHost.model_validate(
            {"name": "a", "address": "192.0.2.1", "instanceType": "g5.xlarge", "acceptNew": True}
        ),
    )


PROBLEMS = [
    ({"count": "many"}, "count: found 'many'; expected a whole number"),
    ({"count": "1.5"}, "count: found 1.5; expected a whole number"),
    ({"provider": "gcp"}, "provider: found 'gcp'; expected one of aws, static"),
    ({"burnIn": "toast"}, "burnIn: found 'toast'; expected one of none, quick"),
    ({"rootVolume": '{"sizeGib": "big"}'}, "rootVolume.sizeGib: found 'big'; expected a whole number"),
    ({"rootVolume": "7"}, "rootVolume: found 7; expected an object"),
    ({"inventory": '[{"name": "a"}]'}, "inventory[0].address: found nothing; expected a value"),
    (
        {"rootVolume": '{"iopss": 1}'},
        "rootVolume.iopss: found a key that does not exist; expected iops perhaps; there are iops, sizeGib, ",
    ),
]


@pytest.mark.parametrize(("config", "text"), PROBLEMS, ids=[text[:40] for _, text in PROBLEMS])
def test_a_wrong_value_is_named_by_its_property_path(config: dict[str, str], text: str) -> None:
    found, problems = settings.read(config)
    assert any(str(problem).startswith(text) for problem in problems), [str(problem) for problem in problems]
    assert found == Settings()


def test_all_problems_are_told_at_once_and_the_right_values_are_kept() -> None:
    found, problems = settings.read({"count": "x", "colour": "red", "sshPort": "{}", "driver": "580"})
    assert sorted(problem.path for problem in problems) == ["colour", "count", "sshPort"]
    assert found == Settings.model_validate({"driver": "580"})


def test_an_unknown_key_gets_the_nearest_one() -> None:
    _, problems = settings.read({"instancetype": "p5.48xlarge"})
    assert str(problems[0]).startswith("instancetype: found a key that does not exist; expected instanceType perhaps")


def test_a_private_key_is_never_shown() -> None:
    _, problems = settings.read({"sshPrivateKey": ["BEGIN"]})  # type: ignore[dict-item]
    assert "BEGIN" not in str(problems[0])
    assert "BEGIN" not in repr(Settings.model_validate({"sshPrivateKey": "BEGIN"}))
