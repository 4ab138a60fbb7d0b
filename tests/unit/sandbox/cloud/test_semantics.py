"""The table of the emulated provider: consistent in itself, and the same names and types as the pulumi_aws classes."""

from __future__ import annotations

import importlib
import inspect
import warnings
from pathlib import Path
from typing import Any

import pulumi_aws
import pytest
from pulumi._types import input_type_py_to_pulumi_names

from profiles.errors import ProfileError
from sandbox.cloud import semantics
from sandbox.cloud.handlers import HANDLERS
from sandbox.cloud.values import UNKNOWN

TABLE = semantics.load()
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def sdk_class(name: str) -> Any:
    """The class; the SDK warns of its own deprecated classes when its modules are first used."""
    module, _, attribute = name.partition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(importlib.import_module(f"pulumi_aws.{module}"), attribute)


def wire_names(arguments: Any) -> dict[str, str]:
    """Pulumi's property name by the Python name."""
    return {wire: python for python, wire in input_type_py_to_pulumi_names(arguments).items()}


def annotation(arguments: Any, python_name: str) -> str:
    return str(inspect.signature(arguments.__init__).parameters[python_name].annotation)


def assert_type(kind: str, sdk: str, where: str) -> None:
    container = semantics.CONTAINER.match(kind)
    if container and container[1] == "map":
        assert "Mapping[str" in sdk, where
    elif container:
        assert "Sequence[" in sdk, where
        assert_type(container[2], sdk, where)
    elif kind in SCALARS:
        assert SCALARS[kind] in sdk, f"{where}: {sdk}"
    else:
        assert TABLE.objects[kind].class_.partition(".")[2] in sdk, f"{where}: {sdk}"


INPUTS = [
    pytest.param(owner, inputs, name, id=f"{owner}.{name}")
    for owner, inputs in [
        *((f"{resource.class_}Args", resource.inputs) for resource in TABLE.resources.values()),
        *((item.class_, item.inputs) for item in TABLE.objects.values()),
    ]
    for name in inputs
]


@pytest.mark.parametrize(("owner", "inputs", "name"), INPUTS)
def test_every_input_has_the_name_type_and_need_of_the_sdk_class(
    owner: str, inputs: dict[str, semantics.Property], name: str
) -> None:
    arguments = sdk_class(owner)
    names = wire_names(arguments)
    assert name in names
    assert_type(inputs[name].type, annotation(arguments, names[name]), f"{owner}.{name}")
    default = inspect.signature(arguments.__init__).parameters[names[name]].default
    assert inputs[name].required == (default is inspect.Parameter.empty)


@pytest.mark.parametrize("token", TABLE.resources)
def test_every_resource_has_its_token_and_its_outputs_on_the_sdk_class(token: str) -> None:
    resource = TABLE.resources[token]
    cls = sdk_class(resource.class_)
    assert cls.pulumi_type == token
    outputs = {name.replace("_", "") for name in dir(cls)}
    assert [name for name in resource.outputs if name.lower() not in outputs] == []


def test_every_required_input_of_the_sdk_is_in_the_table() -> None:
    for resource in TABLE.resources.values():
        arguments = sdk_class(f"{resource.class_}Args")
        names = {python: wire for wire, python in wire_names(arguments).items()}
        needed = {
            names[parameter.name]
            for parameter in inspect.signature(arguments.__init__).parameters.values()
            if parameter.name in names and parameter.default is inspect.Parameter.empty
        }
        assert needed <= set(resource.inputs)


def test_every_rule_has_a_source_and_every_source_is_used() -> None:
    used = {resource.source_of(name) for resource in TABLE.resources.values() for name in resource.inputs}
    used |= {prop.source for kind in TABLE.objects.values() for prop in kind.inputs.values()}
    in_code = {"tf-group-rule-source"}  # a rule of more than one property, in diff.py
    assert set(TABLE.sources) - used - in_code == set()
    assert all(source.text for source in TABLE.sources.values())


def test_every_resource_type_has_a_handler_and_the_reverse() -> None:
    assert set(HANDLERS) == set(TABLE.resources)


def test_the_table_is_of_the_installed_sdk() -> None:
    plugin = Path(pulumi_aws.__file__).with_name("pulumi-plugin.json").read_text()
    assert f'"version": "{TABLE.version}"' in plugin


def test_an_unknown_property_is_refused_by_its_path() -> None:
    nic = {"networkInterfaces": [{"deviceIndex": 0}, {"deviceIndx": 1}]}
    _, failures = TABLE.check("aws:ec2/launchTemplate:LaunchTemplate", nic)
    assert [failure.path for failure in failures] == ["networkInterfaces[1].deviceIndx"]
    assert "not a property" in failures[0].reason


@pytest.mark.parametrize(
    ("inputs", "path", "reason"),
    [
        ({"vpcId": "vpc-1", "mapPublicIpOnLaunch": "maybe"}, "mapPublicIpOnLaunch", "expected a boolean"),
        ({"vpcId": 7.5}, "vpcId", "expected a string"),
        ({"vpcId": "vpc-1", "tags": ["a"]}, "tags", "expected a map"),
        ({"vpcId": "vpc-1", "tags": {"a": ["b"]}}, "tags.a", "expected a string"),
        ({}, "vpcId", "is required"),
    ],
)
def test_a_wrong_value_is_refused_by_its_path(inputs: dict[str, Any], path: str, reason: str) -> None:
    _, failures = TABLE.check("aws:ec2/subnet:Subnet", inputs)
    assert [failure.path for failure in failures] == [path]
    assert reason in failures[0].reason


def test_a_list_where_an_object_belongs_is_refused() -> None:
    _, failures = TABLE.check("aws:ec2/instance:Instance", {"rootBlockDevice": [1], "vpcSecurityGroupIds": "sg-1"})
    assert {failure.path: failure.reason.split(",")[0] for failure in failures} == {
        "rootBlockDevice": "expected an object",
        "vpcSecurityGroupIds": "expected a list",
    }


def test_defaults_are_filled_in_and_text_is_read_as_what_it_says() -> None:
    filled, failures = TABLE.check(
        "aws:ec2/instance:Instance",
        {"launchTemplate": {"id": "lt-1"}, "sourceDestCheck": "false", "rootBlockDevice": {"volumeSize": "100"}},
    )
    assert failures == []
    assert filled["launchTemplate"] == {"id": "lt-1", "version": "$Default"}
    assert filled["sourceDestCheck"] is False
    assert filled["rootBlockDevice"]["volumeSize"] == 100
    assert filled["userDataReplaceOnChange"] is False


def test_numbers_and_booleans_become_the_text_that_a_string_property_takes() -> None:
    filled, failures = TABLE.check(
        "aws:ec2/launchTemplate:LaunchTemplate",
        {"ebsOptimized": True, "networkInterfaces": [{"deleteOnTermination": True}]},
    )
    assert failures == []
    assert filled["ebsOptimized"] == "true"
    assert filled["networkInterfaces"][0]["deleteOnTermination"] == "true"


def test_a_value_that_is_not_known_yet_has_every_type() -> None:
    inputs = {"vpcId": UNKNOWN, "mapPublicIpOnLaunch": UNKNOWN, "tags": UNKNOWN}
    assert TABLE.check("aws:ec2/subnet:Subnet", inputs)[1] == []


def test_only_inputs_are_kept_of_what_the_cloud_says() -> None:
    observed = {"arn": "arn:x", "ami": "ami-1", "rootBlockDevice": {"volumeId": "vol-1", "volumeSize": 8}}
    assert TABLE.only_inputs("aws:ec2/instance:Instance", observed) == {
        "ami": "ami-1",
        "rootBlockDevice": {"volumeSize": 8},
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("source: tf-vpc", "source: tf-none"), "names the source 'tf-none'"),
        (("cidrBlock: {type: string, on_change: replace}", "cidrBlock: {type: text}"), "unknown type 'text'"),
        (("on_change: restart", "on_change: perhaps"), "on_change"),
        (("autoname: keyName", "autoname: label"), "autoname 'label' is not an input"),
    ],
)
def test_a_wrong_table_names_what_is_wrong(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    file = tmp_path / "semantics.yaml"
    file.write_text(semantics.FILE.read_text().replace(*change))
    with pytest.raises(ProfileError, match=words):
        semantics.load(file)
