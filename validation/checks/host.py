"""Is the host itself as a host should be?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from profiles.models import Expectation
from validation.checks.base import Check
from validation.facts.host import HostInfo
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict


class InstanceType(Check):
    """The machine is of the type that it is judged as, where it says its type."""

    id = "host.instance_type"
    title = "Instance type"
    why = "Judged as another type, a good machine looks broken, and one with too little looks good."
    source = "DMI product name of EC2 Nitro instances (sys_vendor Amazon EC2)"
    remedy = "Correct the instance type that the host is judged as, or the host that stands at this address."
    fault_class = FaultClass.CONFIGURATION
    requires = (HostInfo,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        found = facts.need(HostInfo).instance_type
        if isinstance(found, Missing):
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the machine does not say its type")
        elif expected.profile is not None and expected.profile.provider == "local":
            message = f"the machine says it is a {found}; it is judged by a profile of one's own"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
        elif found == expected.instance_type:
            yield self.finding(Verdict.PASS, "host", f"the machine says it is a {found}", measured=found)
        else:
            message = f"the machine says it is a {found}, and is judged as a {expected.instance_type}"
            # A type that the catalogue does not know closes the gate by itself; whose word is wrong is then not known.
            verdict = Verdict.UNKNOWN if expected.profile is None else Verdict.FAIL
            remedy, wanted = self.remedy, expected.instance_type
            yield self.finding(
                verdict, "host", message, measured=found, expected=wanted, source="the stack", remedy=remedy
            )


class EvidenceRoot(Check):
    """The evidence was read below the directory that the expectation allows."""

    id = "host.evidence_root"
    title = "Root of the evidence"
    why = "Evidence read from a captured tree or a simulated host would make a real one look good."
    source = "the expectation: / for a real host"
    remedy = "Unset KILN_ROOT on the host, or allow the directory with evidenceRoot where the host is simulated."
    fault_class = FaultClass.OPERATOR
    safety = True
    requires = (HostInfo,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        root = facts.need(HostInfo).root
        path = PurePosixPath(root)
        below = expected.root != "/" and path.is_relative_to(expected.root) and ".." not in path.parts
        if root == expected.root or below:
            yield self.finding(Verdict.PASS, "host", f"evidence was read below {root}", measured=root)
        else:
            message = f"evidence was read below {root}, not below {expected.root}"
            yield self.finding(
                Verdict.FAIL, "host", message, measured=root, expected=expected.root, source="the expectation"
            )
