"""Every error Kiln raises on purpose. Each says what, where, and the next step.

::

    KilnError                 what went wrong, and what to do
    |-- ConfigError           settings, inventory, profile or command line are wrong   (exit 2)
    |   `-- ProfileError      a catalogue file is wrong: file, line, key path
    |-- LookError             something could not be looked at                         (exit 3)
    |   |-- HostError         a host: which stage was not reached, what was last seen
    |   `-- ParseError        a tool's output: which tool, which line, why
    `-- CloudError            a cloud or engine call failed                            (exit 3)

The command line prints ``str(error)`` and exits with ``error.exit_code``; a traceback only with ``--debug``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_REASON_MAX = 400


class KilnError(Exception):
    """An error with a way out. ``message`` says what and where; ``remedy`` says what to do."""

    exit_code = 2

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.remedy}" if self.remedy else self.message


@dataclass(frozen=True)
class Problem:
    """One wrong value: ``path`` as the user wrote it (``hosts[0].volume.iops``), found, expected, and the fix."""

    path: str
    found: str
    expected: str
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: found {self.found}; expected {self.expected}"
        return f"{text}. {self.fix}" if self.fix else text


class ConfigError(KilnError):
    """Settings, inventory, profile or command line are wrong; all problems at once."""

    def __init__(self, message: str, problems: Sequence[Problem] = (), *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [self.message, *(f"  - {problem}" for problem in self.problems)]
        if self.remedy:
            lines.append(f"  -> {self.remedy}")
        return "\n".join(lines)


class ProfileError(ConfigError):
    """A file of the catalogue is wrong."""


class LookError(KilnError):
    """Something could not be looked at: never a pass, never a fault of the hardware."""

    exit_code = 3


class HostError(LookError):
    """A host could not be looked at.

    ``stage`` is the first stage not reached (``reachable``, ``authenticated``, ``cloud-init``, ``driver``,
    ``probe``); ``last_seen`` is what was seen last.
    """

    def __init__(self, host: str, stage: str, last_seen: str, *, remedy: str = "") -> None:
        super().__init__(f"{host}: stage '{stage}' not reached; last seen: {last_seen}", remedy=remedy)
        self.host = host
        self.stage = stage
        self.last_seen = last_seen


class ParseError(LookError):
    """The output of ``tool`` could not be read whole: ``line`` (1-based, 0 where no line is to blame) and why.

    The reason may quote the output, which may be endless: more than 400 characters are cut off. ``remedy`` says what to
    do where capturing the same output again would not help; it is not part of the text.
    """

    def __init__(self, tool: str, line: int, reason: str, remedy: str = "") -> None:
        reason = reason if len(reason) <= _REASON_MAX else f"{reason[:_REASON_MAX]} ..."
        where = f"line {line}: " if line else ""
        super().__init__(f"{tool}: {where}{reason}", remedy=remedy)
        self.tool = tool
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return self.message


class CloudError(KilnError):
    """A cloud call or the Pulumi engine failed."""

    exit_code = 3
