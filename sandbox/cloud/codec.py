"""Launch template and instance inputs in the form of EC2's API, and back.

Pulumi writes ``networkInterfaces[0].deleteOnTermination = "true"`` where the API has
``NetworkInterfaces[0].DeleteOnTermination = true``. The types in semantics.yaml drive both directions.
"""

from __future__ import annotations

from sandbox.cloud.semantics import CONTAINER, Property, Semantics
from sandbox.cloud.values import Properties, Value

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
API_NAMES = {
    "vpcSecurityGroupIds": "SecurityGroupIds",
    "TemplateNetworkInterface.securityGroups": "Groups",
    "iamInstanceProfile": "IamInstanceProfile",
}
BOOLEAN_TEXTS = frozenset({"associatePublicIpAddress", "deleteOnTermination", "encrypted", "ebsOptimized"})
NOT_DATA = frozenset({"name", "namePrefix", "description", "defaultVersion", "updateDefaultVersion", "region", "tags"})


def api_name(owner: str, name: str) -> str:
    """``NetworkInterfaces`` for ``networkInterfaces``; ``owner`` is the object type, "" at the top."""
    return API_NAMES.get(f"{owner}.{name}" if owner else name, name[0].upper() + name[1:])


def template_data(table: Semantics, inputs: Properties) -> Properties:
    """The ``LaunchTemplateData`` of a launch template's inputs."""
    known = table.resources[TEMPLATE].inputs
    data = {name: prop for name, prop in known.items() if name not in NOT_DATA}
    return _encode_object(table, data, inputs, owner="")


def template_inputs(table: Semantics, data: Properties) -> Properties:
    """The inputs that would give ``data``: what an import of a launch template needs."""
    known = {name: prop for name, prop in table.resources[TEMPLATE].inputs.items() if name not in NOT_DATA}
    return _decode_object(table, known, data, owner="")


def _encode_object(table: Semantics, known: dict[str, Property], value: Properties, *, owner: str) -> Properties:
    return {
        api_name(owner, name): _encode(table, prop.type, value[name], name=name)
        for name, prop in known.items()
        if value.get(name) is not None
    }


def _encode(table: Semantics, kind: str, value: Value, *, name: str) -> Value:
    container = CONTAINER.match(kind)
    if name == "tags":
        return [{"Key": key, "Value": text} for key, text in value.items()]
    if container and isinstance(value, list):
        return [_encode(table, container[2], item, name=name) for item in value]
    if kind in table.objects:
        return _encode_object(table, table.objects[kind].inputs, value, owner=kind)
    if name in BOOLEAN_TEXTS:
        return str(value).lower() == "true"
    return value


def _decode_object(table: Semantics, known: dict[str, Property], value: Properties, *, owner: str) -> Properties:
    found = {name: value.get(api_name(owner, name)) for name in known}
    return {
        name: _decode(table, known[name].type, item, name=name)
        for name, item in found.items()
        if item not in (None, [], {}, "")
    }


def _decode(table: Semantics, kind: str, value: Value, *, name: str) -> Value:
    container = CONTAINER.match(kind)
    if name == "tags":
        return {tag["Key"]: tag["Value"] for tag in value}
    if container and isinstance(value, list):
        return [_decode(table, container[2], item, name=name) for item in value]
    if kind in table.objects:
        return _decode_object(table, table.objects[kind].inputs, value, owner=kind)
    if name in BOOLEAN_TEXTS and isinstance(value, bool) and kind == "string":
        return str(value).lower()
    return value
