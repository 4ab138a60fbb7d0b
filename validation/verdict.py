"""Verdicts, findings, and how they combine. The gate's one rule lives here.

A gate opens only if at least one thing was judged good and nothing required is FAIL or UNKNOWN.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Verdict(str, enum.Enum):
    """What one check, one host or one stack came to."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    NOT_APPLICABLE = "NOT_APPLICABLE"  # the profile says that this machine has no such thing
    WARN = "WARN"
    UNKNOWN = "UNKNOWN"  # we could not look
    FAIL = "FAIL"

    @property
    def opens_gate(self) -> bool:
        return self in (Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.WARN)


class FaultClass(str, enum.Enum):
    """What kind of action mends a fault."""

    REBOOT_ONCE = "reboot-once"
    REPLACE_NOW = "replace-now"
    SOFTWARE = "software"
    CONFIGURATION = "configuration"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Finding:
    """What one check says about one subject.

    ``subject`` is ``host/GPU3``, ``host/GPU3/link7``, ``host`` or ``stack``. ``measured`` and ``expected`` are short
    texts with units; ``source`` says whose expectation it is. ``evidence`` names the evidence item it rests on.
    An advisory finding (``required`` false) never closes the gate.
    """

    check: str
    subject: str
    verdict: Verdict
    message: str
    measured: str = ""
    expected: str = ""
    source: str = ""
    remedy: str = ""
    fault_class: FaultClass | None = None
    evidence: str = ""
    required: bool = True

    def to_dict(self) -> dict[str, object]:
        return {
            "check": self.check,
            "subject": self.subject,
            "verdict": self.verdict.value,
            "message": self.message,
            "measured": self.measured,
            "expected": self.expected,
            "source": self.source,
            "remedy": self.remedy,
            "fault_class": self.fault_class.value if self.fault_class else None,
            "evidence": self.evidence,
            "required": self.required,
        }

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Finding:
        fields = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        fields["verdict"] = Verdict(str(data["verdict"]))
        fault = data.get("fault_class")
        fields["fault_class"] = FaultClass(str(fault)) if fault else None
        return cls(**fields)  # type: ignore[arg-type]


def combine(findings: Iterable[Finding]) -> Verdict:
    """The verdict of a host from its findings.

    FAIL if a required finding is FAIL; else UNKNOWN if a required one is UNKNOWN, or if nothing was judged good;
    else WARN if anything warns (an advisory FAIL or UNKNOWN counts as a warning); else PASS.
    """
    found = list(findings)
    required = {finding.verdict for finding in found if finding.required}
    if Verdict.FAIL in required:
        return Verdict.FAIL
    if Verdict.UNKNOWN in required:
        return Verdict.UNKNOWN
    if not required & {Verdict.PASS, Verdict.WARN}:
        return Verdict.UNKNOWN
    everything = {finding.verdict for finding in found}
    if everything & {Verdict.WARN, Verdict.FAIL, Verdict.UNKNOWN}:
        return Verdict.WARN
    return Verdict.PASS


def combine_hosts(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a stack from its hosts': the worst; a stack without hosts was not judged, so UNKNOWN."""
    seen = set(verdicts)
    for verdict in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS):
        if verdict in seen:
            return verdict
    return Verdict.UNKNOWN


def combine_stack(hosts: Iterable[Verdict], findings: Iterable[Finding] = ()) -> Verdict:
    """As :func:`combine_hosts`, with what was found about the hosts together; that makes nothing better."""
    trouble = {
        finding.verdict if finding.required or finding.verdict.opens_gate else Verdict.WARN for finding in findings
    }
    return combine_hosts({combine_hosts(hosts), *trouble} - {Verdict.PASS, Verdict.NOT_APPLICABLE} or {Verdict.PASS})


def exit_code(verdict: Verdict) -> int:
    """0 gate open, 1 closed by FAIL, 3 closed by UNKNOWN only."""
    return {Verdict.FAIL: 1, Verdict.UNKNOWN: 3}.get(verdict, 0)
