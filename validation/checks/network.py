"""Are the network devices there that the stack asked for?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.host import EfaModule, EfaNics
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict


class EfaCount(Check):
    """libfabric sees as many EFA NICs as the stack asked for."""

    id = "efa.count"
    title = "EFA NICs"
    why = "With fewer EFAs than asked the job runs over fewer, or over TCP, and nobody notices but the bill."
    source = "fi_info of p4d (one NIC has up to three records: NICs are counted, not lines)"
    remedy = "Create the instance again with interface type efa or efa-only on every card: it cannot be added later."
    fault_class = FaultClass.CONFIGURATION
    requires = (EfaNics,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        wanted = expected.efa_count
        if wanted == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the stack asked for no EFA")
            return
        nics = facts.need(EfaNics).nics
        measured, asked = counted(len(nics), "EFA NIC"), counted(wanted, "EFA NIC")
        say = partial(self.finding, measured=measured, expected=asked, source="the stack")
        if len(nics) == wanted:
            yield say(Verdict.PASS, "host", f"{asked}, as asked for")
        elif len(nics) > wanted:
            message = f"{measured}, {wanted} asked for"
            remedy = "Correct efaCount, or the instance's network interfaces."
            yield say(Verdict.WARN, "host", message, remedy=remedy)
        elif EfaModule in facts and not facts.need(EfaModule).loaded:
            message = f"{len(nics)} of {asked}: the EFA kernel module is not loaded"
            remedy = "Install the EFA driver (aws-efa-installer), load it, and validate again."
            yield say(Verdict.FAIL, "host", message, fault_class=FaultClass.SOFTWARE, remedy=remedy)
        else:
            there = f" (there: {listed(nics)})" if nics else ""
            yield say(Verdict.FAIL, "host", f"{len(nics)} of {asked}{there}")
