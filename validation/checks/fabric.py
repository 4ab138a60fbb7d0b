"""Is the NVLink fabric up, and the service that brings it up?"""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, listed, not_there, profile_of
from validation.facts.components import Components
from validation.facts.gpu import Fabric, Gpu, GpuInventory
from validation.facts.host import PciBus, Unit
from validation.facts.missing import ABSENT, Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_NOTHING_TO_MANAGE = "this machine has no NVSwitch to manage"
_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
# The words of each health field that mean "nothing is wrong"; a field that is not here must say False.
_GOOD_WORDS = {
    "bandwidth": {"full"},
    "partition_assigned": {"true"},
    "incorrect_configuration": {"none"},
    "gfm_state": {"connected"},  # driver 615
}
_SAYS_NOTHING = {"n/a", "", "not supported"}


class FabricState(PerGpuCheck):
    """Every GPU is registered with its NVLink fabric, and the fabric calls itself healthy."""

    id = "fabric.state"
    title = "NVLink fabric state"
    why = "CUDA stops with error 802 until the fabric is up; a degraded one says Completed and Success all the same."
    source = "captures of HGX H100, H200, B200 (clique 0 and zero UUID are healthy) and GB200 (they must not be zero)"
    remedy = "Restart Fabric Manager or reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    needs_profile = False  # without one, a fabric block that is there is judged all the same

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = expected.profile.links.fabric if expected.profile else None
        fabric = gpu.fabric
        if isinstance(fabric.state, Missing):
            if wanted is None and expected.profile is not None and not_there(fabric.state):
                return self.unspecified(gpu.label, "fabric kind", expected)
            if not_there(fabric.state) and (wanted is None or wanted.value == "none"):
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "these GPUs report no fabric")
            return self.missing(gpu.label, "fabric state", fabric.state, expected="Completed")
        if isinstance(fabric.status, Missing) and not not_there(fabric.status):
            return self.missing(gpu.label, "fabric status", fabric.status, expected="Success")
        trouble = _trouble(fabric) or (_nvl72_trouble(fabric) if wanted and wanted.value == "nvl72" else "")
        if not trouble:
            return None
        return self.finding(
            Verdict.FAIL,
            gpu.label,
            trouble,
            measured=f"{fabric.state} / {fabric.status}",
            expected="Completed / Success, healthy",
            source=expected.source_of(wanted.source) if wanted else "",
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"fabric Completed on each of {counted(len(gpus), 'GPU')}"


def _trouble(fabric: Fabric) -> str:
    """What is wrong with a fabric block that is there; empty where nothing is."""
    if fabric.state != "Completed":
        return f"fabric state is {fabric.state}"
    if fabric.status != "Success" and not not_there(fabric.status):
        return f"fabric state is Completed, but its status is {fabric.status}"
    summary = fabric.health_summary
    words = dict(fabric.health)
    bad = [f"{key} {value}" for key, value in words.items() if not _is_good(key, value)]
    if isinstance(summary, str) and summary.lower() not in {"healthy"} | _SAYS_NOTHING:
        return f"fabric health is {summary} ({listed(bad) or 'no detail'})"
    return f"fabric health: {listed(bad)}" if bad else ""


def _is_good(key: str, value: str) -> bool:
    word = value.strip().lower()
    return word in _SAYS_NOTHING or word in _GOOD_WORDS.get(key, {"false"})


def _nvl72_trouble(fabric: Fabric) -> str:
    """On a rack-wide fabric a zero clique or UUID means that the GPU belongs to no domain."""
    if isinstance(fabric.cluster_uuid, Missing) or fabric.cluster_uuid == _ZERO_UUID:
        return f"cluster UUID is {fabric.cluster_uuid}: the GPU belongs to no NVLink domain"
    if isinstance(fabric.clique_id, Missing) or fabric.clique_id == 0:
        return f"clique id is {fabric.clique_id}: the GPU belongs to no clique"
    return ""


def _needed(facts: Facts, expected: Expectation) -> tuple[bool, str]:
    """Whether Fabric Manager must run, and who says so: the profile, or the PCI bus where no source tells."""
    told = profile_of(expected).needs.fabric_manager
    if told is not None:
        return told.value, expected.source_of(told.source)
    # NVSwitches up to Hopper's are bridges (0680) on the bus of the host that has to manage them.
    count = sum(d.vendor_id == "10de" and d.class_id == "0680" for d in facts.need(PciBus).devices)
    return count > 0, f"{count} NVSwitch{'' if count == 1 else 'es'} on the PCI bus"


class FabricManager(Check):
    """Fabric Manager runs where there is NVSwitch, and is not asked for elsewhere."""

    id = "fabric.manager"
    title = "Fabric Manager"
    why = "Without it, or with another version than the driver's, it does not start and CUDA fails with error 802."
    source = "NVIDIA Fabric Manager user guide; NVIDIA/gpu-operator 544 and 610 (nothing to do without NVSwitch)"
    remedy = "Install nvidia-fabricmanager in exactly the driver's version, enable and start it."
    fault_class = FaultClass.SOFTWARE
    requires = (Unit,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        needed, source = _needed(facts, expected)
        if not needed:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", _NOTHING_TO_MANAGE, source=source)
            return
        unit = facts.need(Unit)
        state = f"{unit.active} ({unit.sub})"
        if unit.load != "loaded":
            message, verdict = f"{unit.name} is not installed (load state {unit.load})", Verdict.FAIL
        elif unit.active != "active" or unit.sub != "running":
            message, verdict = f"{unit.name} is {state}", Verdict.FAIL
        elif unit.enabled and not unit.enabled.startswith(("enabled", "static", "alias", "generated")):
            message, verdict = f"{unit.name} runs, but is {unit.enabled}: it will be gone after a reboot", Verdict.WARN
        else:
            message, verdict = f"{unit.name} is {state}", Verdict.PASS
        yield self.finding(verdict, "host", message, measured=state, expected="active (running)", source=source)


class FabricManagerVersion(Check):
    """Fabric Manager has exactly the driver's version."""

    id = "fabric.manager_version"
    title = "Fabric Manager's version"
    why = "Of another version than the driver it does not start after the next boot, and CUDA fails with error 802."
    source = "NVIDIA Fabric Manager user guide: the version must be identical to the driver's"
    remedy = "Install nvidia-fabricmanager in exactly the driver's version, and keep the two packages together."
    fault_class = FaultClass.SOFTWARE
    requires = (Components, GpuInventory)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        needed, source = _needed(facts, expected)
        if not needed:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", _NOTHING_TO_MANAGE, source=source)
            return
        driver, version = facts.need(GpuInventory).driver_version, facts.need(Components).fabric_manager
        if isinstance(driver, Missing):
            yield self.missing("host", "driver version", driver)
        elif version == ABSENT:
            message = "nv-fabricmanager was not found, so its version is not known"
            yield self.finding(Verdict.UNKNOWN, "host", message, measured="not found", expected=driver)
        elif isinstance(version, Missing):
            yield self.missing("host", "version of nv-fabricmanager", version, expected=driver)
        else:
            verdict = Verdict.PASS if version == driver else Verdict.FAIL
            message = f"Fabric Manager {version}, driver {driver}"
            yield self.finding(verdict, "host", message, measured=version, expected=driver, source=source)
