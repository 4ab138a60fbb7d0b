"""What a rule is: one short function over what is asked for, before any resource exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from images.lock import Image, ImageLock
from profiles.errors import Problem
from profiles.models import InstanceProfile
from stacks.settings import Settings


@dataclass(frozen=True)
class Asked:
    """Everything a rule may look at. ``profile`` and ``image`` are None where the catalogue or the lock has none."""

    settings: Settings
    profile: InstanceProfile | None
    image: Image | None
    lock: ImageLock


@dataclass(frozen=True)
class Finding:
    """What a rule found: ``rule`` is never renamed; a warning is shown and stops nothing."""

    rule: str
    problem: Problem
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.problem} [{self.rule}]"


Rule = Callable[[Asked], Iterable[Finding]]


def found(rule: str, path: str, value: object, expected: str, fix: str, *, warning: bool = False) -> Finding:
    """A finding in the words of its rule; ``value`` is shown as the user would write it."""
    shown = repr(value) if isinstance(value, str) else str(value)
    return Finding(rule, Problem(path, shown, expected, fix), warning)
