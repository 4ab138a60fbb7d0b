"""Values that are not there. One place sorts vendor text into the four reasons; a Missing is never a number."""

from __future__ import annotations

import enum
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
