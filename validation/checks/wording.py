"""How findings are worded: counts, lists and whose expectation it is."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation, InstanceProfile
from validation.facts.missing import Missing, Reason


def profile_of(expected: Expectation) -> InstanceProfile:
    """The profile. The judge runs no check that needs one without it; a ValueError here is a defect."""
    if expected.profile is None:
        raise ValueError(f"no profile for {expected.instance_type!r}")
    return expected.profile


def counted(number: int, noun: str) -> str:
    """``1 GPU``, ``2 GPUs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Iterable[object], limit: int = 6) -> str:
    """``a, b, c``; the first ``limit`` and how many more there are."""
    texts = [str(item) for item in items]
    more = len(texts) - limit
    return ", ".join(texts) if more <= 0 else f"{', '.join(texts[:limit])} and {more} more"


def ranges(numbers: Iterable[int]) -> str:
    """``[0, 1, 2, 7]`` as ``0-2, 7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def equal_slots(expected: Expectation) -> bool:
    """Whether every GPU of the machine is wired as the others are: a cloud's are; anyone's own may use any slot."""
    return expected.profile is not None and expected.profile.provider != "local"


def not_there(value: object) -> bool:
    """True where the source has no such field, or says that it does not apply."""
    return isinstance(value, Missing) and value.reason in (Reason.ABSENT, Reason.NOT_APPLICABLE)


def version_tuple(text: str) -> tuple[int, ...]:
    """``580.105.08`` as (580, 105, 8), to compare versions as NVIDIA orders them. Raises ValueError otherwise."""
    return tuple(int(part) for part in text.split("."))


def is_version(text: str) -> bool:
    """True for a dotted row of numbers, which :func:`version_tuple` can order."""
    return all(part.isdecimal() for part in text.split("."))


def same_version(found: str, pin: str) -> bool:
    """True where ``found`` is the pinned version or lies in the pinned branch: 580 holds 580.105.08, not 5801."""
    return found == pin or found.startswith(f"{pin}.")


def at_least(found: str, floor: str) -> bool:
    """True where version ``found`` is not older than ``floor``."""
    return version_tuple(found) >= version_tuple(floor)
