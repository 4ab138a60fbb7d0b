"""Vendor words are sorted into three classes, and a Missing is never a number."""

from __future__ import annotations

import pytest

from validation.facts.missing import ABSENT, Missing, Reason, nvml_missing, sentinel

NOT_APPLICABLE = (
    "N/A", "[N/A]", "[Not Supported]", "Not Supported", "n/a", "Requested functionality has been deprecated",
    "[Requested functionality has been deprecated]", 'Deprecated, see "KMD version" instead',
)  # fmt: skip
COULD_NOT_LOOK = ("[Insufficient Permissions]", "Insufficient Permissions", "Unknown", "[Timeout]", "[Never seen word]")
FAULT = ("[Unknown Error]", "Unknown Error", "[GPU is lost]", "GPU is lost", "[GPU requires reset]", "ERR!")
VALUES = ("Not Active", "None", "Disabled", "0", "Pass-Through", "Default", "-", "Tesla T4", "[N/A] 5")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, Reason.NOT_APPLICABLE) for text in NOT_APPLICABLE),
        *((text, Reason.COULD_NOT_LOOK) for text in COULD_NOT_LOOK),
        *((text, Reason.FAULT) for text in FAULT),
    ],
)
def test_a_sentinel_is_sorted_by_its_meaning(text: str, reason: Reason) -> None:
    found = sentinel(f" {text} ")
    assert found == Missing(reason, text)


@pytest.mark.parametrize("text", VALUES)
def test_a_value_is_no_sentinel(text: str) -> None:
    assert sentinel(text) is None


def test_an_empty_text_is_absent() -> None:
    assert sentinel("  ") == ABSENT


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("NVML_ERROR_NOT_SUPPORTED", Reason.NOT_APPLICABLE),
        ("NVML_ERROR_FUNCTION_NOT_FOUND", Reason.ABSENT),
        ("NVML_ERROR_NO_PERMISSION", Reason.COULD_NOT_LOOK),
        ("NVML_ERROR_GPU_IS_LOST", Reason.FAULT),
        ("NVML_ERROR_RESET_REQUIRED", Reason.FAULT),
        ("NVML_ERROR_UNKNOWN", Reason.FAULT),
        ("NVML_ERROR_OF_A_LATER_DRIVER", Reason.COULD_NOT_LOOK),
        ("TypeError: a defect of the probe", Reason.COULD_NOT_LOOK),
    ],
)
def test_an_nvml_error_is_sorted_by_its_meaning(name: str, reason: Reason) -> None:
    assert nvml_missing(name).reason is reason


def test_a_missing_value_has_no_truth_value_and_no_order() -> None:
    with pytest.raises(TypeError):
        bool(ABSENT)
    with pytest.raises(TypeError):
        ABSENT < 5  # type: ignore[operator]  # noqa: B015 - the comparison itself must fail
