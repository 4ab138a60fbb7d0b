"""What a change of a resource's inputs does: nothing, an update, a restart or a replacement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sandbox.cloud.semantics import CONTAINER, OnChange, Property, ResourceType, Semantics
from sandbox.cloud.values import Properties, Value

Kind = Literal["add", "delete", "update"]
STRENGTH: tuple[OnChange, ...] = ("update", "restart", "replace")
RULE_SOURCES = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")


@dataclass(frozen=True)
class Change:
    """One changed input. ``path`` is written as Pulumi writes it, ``name`` is the top-level property."""

    path: str
    name: str
    kind: Kind
    on_change: OnChange


@dataclass(frozen=True)
class Diff:
    """All changes of one resource, and whether the old one must go before the new one is made."""

    changes: tuple[Change, ...] = field(default=())
    delete_before_replace: bool = False

    @property
    def replaces(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.on_change == "replace")

    @property
    def restarts(self) -> bool:
        return any(change.on_change == "restart" for change in self.changes)


def compare(table: Semantics, token: str, old: Properties, new: Properties) -> Diff:
    """The difference between the inputs that made the resource and the inputs that the program has now.

    ``old`` are the last inputs, brought up to date by a refresh; so what changed behind Pulumi's back shows as well.
    An input that the program leaves out and the cloud fills in is no change.
    """
    resource = table.resources[token]
    changes = [
        change
        for name, prop in resource.inputs.items()
        for change in _property_changes(table, prop, old.get(name), new.get(name), path=name, name=name)
    ]
    changes = [_adjusted(change, token, old, new) for change in changes]
    replaced = any(change.on_change == "replace" for change in changes)
    return Diff(tuple(changes), delete_before_replace=replaced and _same_name(resource, old, new))


def _adjusted(change: Change, token: str, old: Properties, new: Properties) -> Change:
    """Rules that depend on more than one property; their sources are in semantics.yaml."""
    on_change = change.on_change
    if token == "aws:ec2/instance:Instance" and change.name in ("userData", "userDataBase64"):  # noqa: S105 - a type token
        on_change = "replace" if new.get("userDataReplaceOnChange") is True else "restart"
    if token.startswith("aws:vpc/securityGroup") and change.name in RULE_SOURCES:
        same_source = {name for name in RULE_SOURCES if name in old} == {name for name in RULE_SOURCES if name in new}
        on_change = "update" if same_source else "replace"
    if token == "aws:ec2/vpc:Vpc" and change.name == "instanceTenancy" and new.get("instanceTenancy") == "default":  # noqa: S105 - a type token
        on_change = "update"
    return Change(change.path, change.name, change.kind, on_change)


def _same_name(resource: ResourceType, old: Properties, new: Properties) -> bool:
    """A name that the program fixes is unique in the cloud, so two of it cannot exist at once."""
    name = resource.autoname
    return bool(name) and name in new and old.get(name) == new[name] and name not in new.get("__defaults", [])


def _property_changes(
    table: Semantics, prop: Property, old: Value, new: Value, *, path: str, name: str
) -> Iterator[Change]:
    if new is None and (old is None or prop.computed):
        return
    if old is None or new is None:
        if _empty(old) and _empty(new):
            return
        yield Change(path, name, "add" if old is None else "delete", prop.on_change)
        return
    if _canonical(table, prop.type, old) == _canonical(table, prop.type, new):
        return
    yield from _value_changes(table, prop, old, new, path=path, name=name)


def _value_changes(
    table: Semantics, prop: Property, old: Value, new: Value, *, path: str, name: str
) -> Iterator[Change]:
    """The changed leaves where both sides have the same shape, else the property as a whole."""
    container = CONTAINER.match(prop.type)
    if prop.type in table.objects and isinstance(old, dict) and isinstance(new, dict):
        for key, inner in table.objects[prop.type].inputs.items():
            stronger = max(inner.on_change, prop.on_change, key=STRENGTH.index)
            rule = inner.model_copy(update={"on_change": stronger})
            yield from _property_changes(table, rule, old.get(key), new.get(key), path=f"{path}.{key}", name=name)
        return
    if container and container[1] == "map" and isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            if old.get(key) != new.get(key):
                kind: Kind = "add" if key not in old else "delete" if key not in new else "update"
                yield Change(f"{path}{_key(key)}", name, kind, prop.on_change)
        return
    if (
        container
        and container[1] == "list"
        and isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
    ):
        item = prop.model_copy(update={"type": container[2]})
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _property_changes(table, item, before, after, path=f"{path}[{index}]", name=name)
        return
    yield Change(path, name, "update", prop.on_change)


def _key(key: str) -> str:
    return f".{key}" if key.replace("_", "a").isalnum() else f'["{key}"]'


def _empty(value: Value) -> bool:
    return value is None or value == [] or value == {}


def _canonical(table: Semantics, kind: str, value: Value) -> object:
    """The value in a form in which equal means equal to the cloud: sets have no order, empty is absent."""
    container = CONTAINER.match(kind)
    if container and isinstance(value, list):
        items = [_canonical(table, container[2], item) for item in value]
        return sorted(items, key=repr) if container[1] == "set" else items
    if kind in table.objects and isinstance(value, dict):
        inputs: Mapping[str, Property] = table.objects[kind].inputs
        return {
            key: _canonical(table, inputs[key].type, item)
            for key, item in sorted(value.items())
            if key in inputs and not _empty(item)
        }
    return value
