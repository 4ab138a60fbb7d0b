"""Have the links of RDMA ports dropped, and what have their drivers counted?"""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.rdma_counters import PortCounters, RdmaCounters
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_FLAPS_MAX = 5  # azurehpc-health-checks 0e0a1ac: so many in a day fail a node
_LINK_DOWNED = "link_downed"


class RdmaFlaps(Check):
    """No RDMA port's link has dropped again and again since its driver was loaded."""

    id = "rdma.flaps"
    title = "RDMA links that drop"
    why = "A link that drops for a moment ends a collective of all hosts, and is up again when somebody looks."
    source = "azurehpc-health-checks 0e0a1ac (5 in 24 h); gpud 4a8de33a; NVIDIA, mlx5 counters (link_downed)"
    remedy = "Look at cable and switch of this port; if it goes on, replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (RdmaCounters,)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if RdmaCounters not in facts and not expected.efa_count and _none(facts):
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "there is no RDMA port that counts")
            return
        ports = facts.need(RdmaCounters).ports
        flapping = [port for port in ports if port.counters.get(_LINK_DOWNED, 0) >= _FLAPS_MAX]
        for port in flapping:
            # A warning: since when the driver counts, it does not tell.
            count = port.counters[_LINK_DOWNED]
            message = f"its link dropped {count} times since the driver was loaded"
            yield self.finding(Verdict.WARN, port.name, message, measured=str(count), expected=f"below {_FLAPS_MAX}")
        if not flapping:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(ports), 'RDMA port')}; {_told(ports)}")


def _none(facts: Facts) -> bool:
    return "not found" in facts.gap(RdmaCounters).reason


def _told(ports: Iterable[PortCounters]) -> str:
    """What else was counted. Traffic of earlier jobs counts too, so alone it says nothing of now."""
    errors: dict[str, int] = {}
    for port in ports:
        for name, count in port.errors().items():
            errors[name] = errors.get(name, 0) + count
    seen = [f"{name} {count}" for name, count in sorted(errors.items()) if count]
    return f"counted since the driver was loaded: {listed(seen)}" if seen else "no error counted"
