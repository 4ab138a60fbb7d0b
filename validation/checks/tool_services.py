"""What the states of systemd units mean, taken alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.facts.services import Service, Services
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

# Units that a GPU host needs, or that carry its work. Of the others a failure is told, and nothing else.
_OURS = re.compile(
    r"nvidia|dcgm|nvsm|fabric|nvlsm|imex|docker|containerd|crio|kubelet|slurmd|efa|openibd|rdma|the unit|^unit \d"
)
_FABRIC_MANAGER = "nvidia-fabricmanager"
_WHERE_NVSWITCH = "on a machine without NVSwitch it has nothing to do: disable it there"


class ServicesRun(Check):
    """The units of systemd that a GPU host needs run."""

    id = "tool.services"
    title = "systemd units"
    why = "A driver's daemon that failed at boot is missed first by the job that needed it."
    source = "systemd: unit states; NVIDIA/gpu-operator 610 (Fabric Manager fails where there is no NVSwitch)"
    remedy = "Look at journalctl -u UNIT, mend what it says, and start the unit again."
    fault_class = FaultClass.SOFTWARE
    requires = (Services,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        services = facts.need(Services).services
        ours = [one for one in services if _OURS.search(one.unit.name)]
        for service in ours:
            yield self._judged(service, expected)
        for service in services:
            if service not in ours and service.unit.active == "failed":
                message = f"failed{_how(service)}; it is none of those that a GPU needs"
                yield self.finding(Verdict.WARN, service.unit.name, message)
        if not ours:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "no unit that a GPU host needs is among them")

    def _judged(self, service: Service, expected: Expectation) -> Finding:
        unit = service.unit
        verdict, message = _state(service)
        if unit.name.startswith(_FABRIC_MANAGER) and verdict is not Verdict.PASS:
            needed = expected.profile.needs.fabric_manager if expected.profile else None
            if service.idle if needed is None else not needed.value:
                message = f"{message}, and has nothing to do: this machine has no NVSwitch"
                return self.finding(Verdict.NOT_APPLICABLE, unit.name, message)
            message = message if needed is not None else f"{message}; {_WHERE_NVSWITCH}"
        return self.finding(verdict, unit.name, message, measured=f"{unit.active} ({unit.sub})", expected="active")


def _state(service: Service) -> tuple[Verdict, str]:
    unit = service.unit
    if unit.load != "loaded":
        what = {"not-found": "is not installed", "masked": "is masked"}.get(
            unit.load, f"cannot be loaded ({unit.load})"
        )
        return Verdict.WARN, what
    if unit.active == "active":
        later = unit.enabled == "disabled"
        return (
            (Verdict.WARN, "runs, and is disabled: it will be gone after a reboot")
            if later
            else (Verdict.PASS, unit.sub)
        )
    if unit.active == "failed":
        return Verdict.FAIL, f"failed{_how(service)}"
    if unit.sub == "auto-restart":
        return Verdict.FAIL, f"fails and is started again and again{_how(service)}"
    if unit.active in ("activating", "reloading", "unknown"):
        return Verdict.UNKNOWN, f"is {unit.active} ({unit.sub}): not there yet"
    return Verdict.WARN, f"is {unit.active} ({unit.sub})"


def _how(service: Service) -> str:
    result = f" ({service.result})" if service.result and service.result != "success" else ""
    return f"{result}: {service.why}" if service.why else result
