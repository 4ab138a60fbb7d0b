"""The expectation: the type's profile, overridden by what the stack asked for."""

from __future__ import annotations

import pytest

from profiles.errors import ConfigError
from profiles.expectation import expect


def test_the_stack_overrides_the_pins_of_the_software_profile() -> None:
    expected = expect("p5.48xlarge", software="dlami-base-2026-01", cuda="12.6", efa_count=32)
    assert (expected.software.driver, expected.software.cuda, expected.efa_count) == ("580.105.08", "12.6", 32)
    assert expected.root == "/"


def test_an_unknown_type_has_no_profile_and_is_no_error() -> None:
    assert expect("quantum.large", efa_count=3).profile is None


@pytest.mark.parametrize(
    ("instance_type", "count", "message"),
    [
        ("g5.xlarge", 1, "efaCount: found 1; expected 0 to 0 (g5.xlarge)"),
        ("p5.48xlarge", 33, "efaCount: found 33; expected 0 to 32 (p5.48xlarge)"),
        ("quantum.large", -1, "efaCount: found -1; expected 0 or more"),
    ],
)
def test_more_efas_than_the_type_carries_is_refused(instance_type: str, count: int, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        expect(instance_type, efa_count=count)
    assert message in str(error.value)


def test_a_source_is_named_with_its_text_and_date() -> None:
    expected = expect("p5.48xlarge")
    assert expected.source_of("golden").startswith("profile p5.48xlarge (aws-k8s-tester 9c7b987a golden")
