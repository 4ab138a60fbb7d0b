"""Plain Python values for what travels between the Pulumi engine and the emulated provider.

The engine sends every number as a float and an unknown value as one fixed string. :func:`plain` gives whole numbers as
``int`` and leaves the unknown marker as it is; :func:`wire` goes back. Secrets need no care here: the provider tells
the engine that it does not accept them, so the engine sends plain values and marks the results itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.rpc import UNKNOWN

Value: TypeAlias = Any  # None, bool, int, float, str, list[Value] or dict[str, Value]
Properties: TypeAlias = dict[str, Value]

__all__ = ["UNKNOWN", "Properties", "Value", "has_unknown", "plain", "plain_map", "wire", "wire_map"]


def plain(value: PropertyValue) -> Value:
    """The value as plain Python; assets and resource references are kept as their own types."""
    inner = value.value
    if isinstance(inner, float) and inner.is_integer():
        return int(inner)
    if isinstance(inner, Mapping):
        return {key: plain(item) for key, item in inner.items()}
    if isinstance(inner, Sequence) and not isinstance(inner, str):
        return [plain(item) for item in inner]
    return inner


def plain_map(values: Mapping[str, PropertyValue]) -> Properties:
    """Every property as plain Python; nulls are left out, as a program that says nothing leaves them out."""
    return {key: plain(item) for key, item in values.items() if item.value is not None}


def wire(value: Value) -> PropertyValue:
    """The plain value in the form that the engine reads."""
    if isinstance(value, bool) or value is None:
        return PropertyValue(value)
    if isinstance(value, int):
        return PropertyValue(float(value))
    if isinstance(value, Mapping):
        return PropertyValue({str(key): wire(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return PropertyValue([wire(item) for item in value])
    return PropertyValue(value)


def wire_map(values: Mapping[str, Value]) -> dict[str, PropertyValue]:
    """Every property that has a value, in the form that the engine reads."""
    return {key: wire(item) for key, item in values.items() if item is not None}


def has_unknown(value: Value) -> bool:
    """True where the value, or anything in it, is not known before other resources exist."""
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_unknown(item) for item in value)
    return bool(value == UNKNOWN)
