"""Values that are not there. One place sorts vendor text into the four reasons; a Missing is never a number."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import NoReturn


class Reason(enum.Enum):
    """Why a value is missing. The first three are what a tool says; ABSENT is what it does not say at all."""

    NOT_APPLICABLE = "not applicable"  # N/A, [N/A], [Not Supported], "... has been deprecated"
    COULD_NOT_LOOK = "could not look"  # [Insufficient Permissions], a query that failed
    FAULT = "fault"  # [Unknown Error], [GPU is lost], [GPU requires reset]
    ABSENT = "absent"  # this output has no such field


@dataclass(frozen=True)
class Missing:
    """A value that is not there, with the vendor's own words. It has no arithmetic, no order and no truth value."""

    reason: Reason
    text: str = ""

    def __bool__(self) -> NoReturn:
        raise TypeError("a Missing value has no truth value: decide by its reason")

    def __str__(self) -> str:
        return f"{self.reason.value} ({self.text})" if self.text else self.reason.value


ABSENT = Missing(Reason.ABSENT)

# Words that stand in place of a value, lower case, without brackets. Sources: nvidia-smi of drivers 460 to 610.
# "Not Active", "None" and "Disabled" are values: a throttle reason, a recovery action, a mode.
_WHOLE = {
    "n/a": Reason.NOT_APPLICABLE,
    "not supported": Reason.NOT_APPLICABLE,
    "not available": Reason.NOT_APPLICABLE,
    "not applicable": Reason.NOT_APPLICABLE,
    "insufficient permissions": Reason.COULD_NOT_LOOK,
    "no permission": Reason.COULD_NOT_LOOK,
    "permission denied": Reason.COULD_NOT_LOOK,
    "not found": Reason.COULD_NOT_LOOK,
    "function not found": Reason.COULD_NOT_LOOK,
    "unknown": Reason.COULD_NOT_LOOK,
    "timeout": Reason.COULD_NOT_LOOK,
    "in use": Reason.COULD_NOT_LOOK,
    "no data": Reason.COULD_NOT_LOOK,
    "unknown error": Reason.FAULT,
    "gpu is lost": Reason.FAULT,
    "gpu requires reset": Reason.FAULT,
    "gpu reset required": Reason.FAULT,
    "reset required": Reason.FAULT,
    "err!": Reason.FAULT,
    "error": Reason.FAULT,
}
_PARTS = (
    ("deprecated", Reason.NOT_APPLICABLE),  # "Requested functionality has been deprecated", 'Deprecated, see "..."'
    ("gpu is lost", Reason.FAULT),
    ("requires reset", Reason.FAULT),
    ("insufficient permission", Reason.COULD_NOT_LOOK),
)

# NVML return codes by name. A function the library lacks is a field this driver does not have.
_NVML = {
    "NVML_ERROR_NOT_SUPPORTED": Reason.NOT_APPLICABLE,
    "NVML_ERROR_DEPRECATED": Reason.NOT_APPLICABLE,
    "NVML_ERROR_FUNCTION_NOT_FOUND": Reason.ABSENT,
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH": Reason.ABSENT,
    "NVML_ERROR_GPU_IS_LOST": Reason.FAULT,
    "NVML_ERROR_RESET_REQUIRED": Reason.FAULT,
    "NVML_ERROR_UNKNOWN": Reason.FAULT,
    "NVML_ERROR_IRQ_ISSUE": Reason.FAULT,
    "NVML_ERROR_CORRUPTED_INFOROM": Reason.FAULT,
    "NVML_ERROR_INSUFFICIENT_POWER": Reason.FAULT,
}


@functools.lru_cache(maxsize=1024)  # asked of every value, and most are the same few words
def sentinel(text: str) -> Missing | None:
    """The Missing that a vendor's word stands for, or None where the text is a value.

    >>> sentinel("[N/A]").reason is Reason.NOT_APPLICABLE
    True
    >>> sentinel("[Insufficient Permissions]").reason is Reason.COULD_NOT_LOOK
    True
    >>> sentinel("GPU is lost").reason is Reason.FAULT
    True
    >>> sentinel("Not Active") is None
    True
    """
    word = text.strip()
    if not word:
        return ABSENT
    bare = word[1:-1].strip() if word.startswith("[") and word.endswith("]") else word
    lowered = bare.lower()
    reason = _WHOLE.get(lowered)
    if reason is None:
        reason = next((kind for part, kind in _PARTS if part in lowered), None)
    if reason is None:
        # A bracketed word that nobody knows is not a value either: nvidia-smi brackets only what it could not print.
        reason = Reason.COULD_NOT_LOOK if bare != word else None
    return Missing(reason, word) if reason else None


def nvml_missing(name: str) -> Missing:
    """The Missing for an NVML return code by name; a code not listed is "could not look", never a value."""
    return Missing(_NVML.get(name, Reason.COULD_NOT_LOOK), name)
