"""Values on their way between the engine and the provider."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.provider.experimental.property_value import PropertyValue

from sandbox.cloud.values import UNKNOWN, has_unknown, plain, plain_map, wire, wire_map


@pytest.mark.parametrize("value", [True, False, 3, 2.5, "text", [1, "a", [True]], {"a": {"b": [1, 2]}}, UNKNOWN])
def test_a_value_survives_the_way_to_the_engine_and_back(value: Any) -> None:
    back = plain(PropertyValue.unmarshal(wire(value).marshal()))
    assert back == value
    assert type(back) is type(value)


def test_whole_numbers_are_integers_though_the_engine_sends_floats() -> None:
    assert repr(plain(PropertyValue(3.0))) == "3"


def test_nulls_are_left_out_in_both_directions() -> None:
    assert plain_map({"a": PropertyValue(None), "b": PropertyValue("x")}) == {"b": "x"}
    assert list(wire_map({"a": None, "b": 1})) == ["b"]


@pytest.mark.parametrize(
    ("value", "unknown"),
    [(UNKNOWN, True), ({"a": [UNKNOWN]}, True), ({"a": ["x"]}, False), (None, False)],
)
def test_an_unknown_value_is_found_at_any_depth(value: Any, unknown: bool) -> None:
    assert has_unknown(value) is unknown
