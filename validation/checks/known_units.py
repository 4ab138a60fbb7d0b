"""Has a GPU that was rejected before come back?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from profiles.models import Expectation, KnownBad
from validation.checks.base import Check
from validation.checks.wording import counted
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.host import HostInfo
from validation.facts.store import Facts
from validation.units import is_key, is_virtual
from validation.verdict import FaultClass, Finding, Verdict

_FORGET = "kiln units forget"


class KnownBadUnit(Check):
    """No GPU of the host was rejected before, on another host or on this one."""

    id = "gpu.known_bad"
    title = "No rejected GPU came back"
    why = "A host that is given back is sold again: the replacement can be the very unit that was rejected."
    source = "NVML: the UUID is the board's for good; two GPUs of a GB200 share a serial (p6e-gb200.36xlarge, 2026)"
    remedy = f"Replace the host again and tell the provider the UUID; after a repair: {_FORGET} UUID."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        gpus = facts.need(GpuInventory).gpus
        if not gpus:
            yield self.finding(Verdict.UNKNOWN, "host", "no GPU answered, so none was compared")
            return
        if expected.known_bad_gap:
            message = f"the memory of bad units could not be read: {expected.known_bad_gap}"
            remedy = "Mend or remove the file; without it nothing is known to be bad."
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy)
            return
        if not expected.known_bad:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "no GPU is known to be bad")
            return
        yield from self._compared(gpus, expected.known_bad, _own_instance(facts))

    def _compared(self, gpus: tuple[Gpu, ...], known: tuple[KnownBad, ...], own: str) -> Iterator[Finding]:
        real = [gpu for gpu in gpus if not is_virtual(gpu)]
        found = [*(f for gpu in real for f in self._one(gpu, known, own)), *self._whole(gpus, known, own)]
        yield from found
        if not real:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "virtual GPUs have no UUID of a board")
        elif not found:
            units = counted(len({unit.uuid for unit in known}), "GPU")
            yield self.finding(Verdict.PASS, "host", f"none of {counted(len(gpus), 'GPU')} is among {units} known bad")

    def _one(self, gpu: Gpu, known: tuple[KnownBad, ...], own: str) -> Iterator[Finding]:
        if isinstance(gpu.uuid, str) and is_key(gpu.uuid):
            same = [unit for unit in known if unit.uuid.lower() == gpu.uuid.lower() and not unit.whole_host]
            if same:
                # One answer a GPU: a replacement that came back outweighs a host that never left.
                unit = min(same, key=lambda unit: _is_here(unit, own))
                yield self._returned(gpu.label, unit, unit.uuid, here=_is_here(unit, own))
            return
        message = f"its UUID ({gpu.uuid}) names no board, so it cannot be compared with the bad units"
        alike = [unit for unit in known if unit.serial and unit.serial == gpu.serial and unit.board == gpu.name]
        if alike:
            message += f"; its serial {gpu.serial} is that of {alike[0].uuid}, rejected on {alike[0].date}"
        remedy = "Make the UUID readable (nvidia-smi -L), and validate again."
        yield self.finding(Verdict.UNKNOWN, gpu.label, message, measured=str(gpu.uuid), remedy=remedy)

    def _whole(self, gpus: tuple[Gpu, ...], known: tuple[KnownBad, ...], own: str) -> Iterator[Finding]:
        """Faults of a host as a whole: it is the same host if more than half of its GPUs are."""
        there = {gpu.uuid.lower() for gpu in gpus if isinstance(gpu.uuid, str) and not is_virtual(gpu)}
        hosts: dict[tuple[str, str], list[KnownBad]] = {}
        for unit in known:
            if unit.whole_host and unit.uuid.lower() in there:
                hosts.setdefault((unit.host, unit.instance_id), []).append(unit)
        for units in hosts.values():
            same = {unit.uuid.lower() for unit in units}
            if 2 * len(same) > len(gpus):
                text = f"the host with {len(same)} of these {counted(len(gpus), 'GPU')} ({units[0].uuid}, ...)"
                yield self._returned("host", units[0], text, here=_is_here(units[0], own))

    def _returned(self, subject: str, unit: KnownBad, what: str, *, here: bool) -> Finding:
        was = f"{what} was rejected on {unit.date} on host {unit.host} for {unit.check}"
        if not here:
            message = f"{was}: the provider returned the same unit"
            return self.finding(Verdict.FAIL, subject, message, measured=unit.uuid, expected="another unit")
        # The host never left, so the other checks have the last word: it may have been repaired where it stands.
        message = f"{was}, and was not replaced: the other checks judge it as it is now"
        remedy = f"Replace the host; or after a repair: {_FORGET} {unit.uuid}."
        return self.finding(Verdict.WARN, subject, message, measured=unit.uuid, expected="another unit", remedy=remedy)


def _own_instance(facts: Facts) -> str:
    own = facts.need(HostInfo).instance_id if HostInfo in facts else ""
    return own if isinstance(own, str) else ""


def _is_here(unit: KnownBad, own: str) -> bool:
    return unit.here or (bool(own) and unit.instance_id == own)
