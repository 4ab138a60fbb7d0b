"""Can containers be given the GPUs?"""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import listed
from validation.facts.components import Components
from validation.facts.host_state import HostState
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict


class ContainerGpus(Check):
    """Where the container toolkit is installed, a container runtime is told of it, or devices are described for CDI."""

    id = "software.container_gpus"
    title = "GPUs for containers"
    why = "With the toolkit installed and no runtime told of it, containers start and see no GPU."
    source = "NVIDIA container toolkit, installation guide: nvidia-ctk runtime configure, nvidia-ctk cdi generate"
    remedy = "Run nvidia-ctk runtime configure for the runtime and restart it, or nvidia-ctk cdi generate."
    fault_class = FaultClass.SOFTWARE
    requires = (HostState, Components)
    needs_profile = False
    optional = True

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        state, toolkit = facts.need(HostState), facts.need(Components).container_toolkit
        pinned = expected.software.container_toolkit is not None
        told = [*(path for path, nvidia in state.runtimes.items() if nvidia), *state.cdi]
        if isinstance(toolkit, Missing) and not pinned:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "no container toolkit is installed, and none is pinned")
        elif told:
            yield self.finding(Verdict.PASS, "host", f"containers can be given GPUs: {listed(told, limit=3)}")
        else:
            others = f" (of others: {listed(state.runtimes, limit=3)})" if state.runtimes else ""
            message = f"the container toolkit is there, and no configuration of a runtime names it{others}"
            verdict = Verdict.FAIL if pinned else Verdict.WARN
            yield self.finding(verdict, "host", message, measured="not configured", expected="configured")
