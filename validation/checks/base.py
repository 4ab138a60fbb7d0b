"""What a check is: one short class, pure, that turns facts and an expectation into findings.

The judge (validation/judge.py) runs it. A check never returns "nothing": no finding is UNKNOWN. It does not catch:
a missing fact raises FactGapError, a crash is UNKNOWN with its traceback, both set by the judge.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable

from profiles.models import Expectation
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

# What to do where the profile has no value: the type's profile says so itself, or it is a hole in the profile.
NOTHING_TO_MEND = "Nothing to mend: no source tells what is right here. A capture of a good host of this type would."
ADD_THE_VALUE = "Add the value to the profile, with its source; until then the profile may list the check as advisory."
# Whose expectation it is where the stack's settings decide; no profile of a type excuses what was asked for.
THE_STACK = "the stack"
_LOOK_AGAIN = "Find out why this could not be looked at, and validate again."
# What to do about a value that is not there. A fault has the remedy of its check.
_REMEDIES = {
    Reason.NOT_APPLICABLE: "The driver says that this GPU has no such thing: look whether instance type, profile and "
    "driver version are the right ones.",
    Reason.COULD_NOT_LOOK: "Make it readable, as root and with a driver that answers, and validate again.",
    Reason.ABSENT: "No tool that ran prints it: look at the driver's version and at the evidence, and validate again.",
}


class Check(abc.ABC):
    """A check.

    ``id`` is never renamed. ``requires`` are the fact types without which it is UNKNOWN. ``remedy`` is a sentence;
    ``why`` says what goes wrong otherwise, ``source`` who says so. Both appear in docs/checks.md.
    """

    id: str
    title: str
    why: str
    source: str
    remedy: str
    fault_class: FaultClass
    requires: tuple[type, ...] = ()
    needs_profile: bool = True  # False: judged without knowing the instance type
    optional: bool = False  # True: what it could not look at closes no gate, since not every good host tells it
    safety: bool = False  # True: its FAIL closes the gate even where a profile lists the check as advisory

    @abc.abstractmethod
    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        """Findings for every subject looked at. Subjects leave the host out: ``GPU3``, ``GPU3/link7`` or ``host``."""

    def excusable(self, finding: Finding) -> bool:
        """Whether a profile that lists this check as advisory lets one of its findings only warn."""
        return finding.source != THE_STACK and not (self.safety and finding.verdict is Verdict.FAIL)

    def finding(
        self,
        verdict: Verdict,
        subject: str,
        message: str,
        *,
        measured: str = "",
        expected: str = "",
        source: str = "",
        fault_class: FaultClass | None = None,
        remedy: str = "",
        evidence: str = "",
    ) -> Finding:
        """A finding of this check; remedy and fault class are the check's own unless given, and only on trouble.

        What was not seen accuses nobody: the remedy of an UNKNOWN is to look again, unless a better one is given.
        """
        trouble = verdict in (Verdict.WARN, Verdict.UNKNOWN, Verdict.FAIL)
        own = _LOOK_AGAIN if verdict is Verdict.UNKNOWN else self.remedy
        fault = (fault_class or self.fault_class) if verdict is Verdict.FAIL else fault_class
        return Finding(
            check=self.id,
            subject=subject,
            verdict=verdict,
            message=message,
            measured=measured,
            expected=expected,
            source=source,
            remedy=(remedy or own) if trouble else "",
            fault_class=fault,
            evidence=evidence,
        )

    def missing(self, subject: str, what: str, value: Missing, *, expected: str = "") -> Finding:
        """The finding for a value that is not there: a fault the driver reports is FAIL, everything else UNKNOWN."""
        verdict = Verdict.FAIL if value.reason is Reason.FAULT else Verdict.UNKNOWN
        remedy = _REMEDIES.get(value.reason, "")
        return self.finding(verdict, subject, f"{what}: {value}", measured=str(value), expected=expected, remedy=remedy)

    def unspecified(self, subject: str, what: str, expected: Expectation, seen: str = "") -> Finding:
        """UNKNOWN: the profile gives no value to judge against, because no source does. ``seen``: what there is."""
        told = f"{what} (seen: {seen})" if seen else what
        message = f"the profile of {expected.instance_type} gives no {told}, so there is nothing to judge against"
        advisory = expected.profile is not None and self.id in expected.profile.advisory
        remedy = NOTHING_TO_MEND if advisory else ADD_THE_VALUE
        return self.finding(Verdict.UNKNOWN, subject, message, expected=f"a {what} in the profile", remedy=remedy)
