"""What the driver says is broken on a board beyond its memory rows, or waits for a reset to be repaired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from profiles.models import Expectation
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, listed, not_there
from validation.facts.gpu import DriverFault, Gpu, GpuInventory, Repairs
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict


class GpuRepair(PerGpuCheck):
    """No repair of a memory channel or a TPC is pending, and no memory is beyond repair."""

    id = "gpu.repair"
    title = "Repair of channels and TPCs"
    why = "The GPU works on with a part that it wants to take out of use, and the job meets that part first."
    source = (
        "nvidia-smi -q of drivers 580 to 595 (Channel and TPC Repair Pending, Unrepairable Memory); "
        "NVML nvmlDeviceGetRepairStatus"
    )
    remedy = "Reboot once, so that the repair is made, and validate again."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        repairs = gpu.repairs
        if repairs.unrepairable_memory is True:
            return self.finding(
                Verdict.FAIL,
                gpu.label,
                "the driver says that it has memory which cannot be repaired",
                measured="unrepairable memory",
                expected="none",
                fault_class=FaultClass.REPLACE_NOW,
                remedy="Replace the host.",
            )
        pending = [name for name, value in _pending(repairs).items() if value is True]
        if pending:
            message = f"repair pending: {listed(pending)}"
            return self.finding(Verdict.FAIL, gpu.label, message, measured=listed(pending), expected="no repair")
        return _untold(self, gpu, {**_pending(repairs), "unrepairable memory": repairs.unrepairable_memory})

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"no repair pending on {counted(len(gpus), 'GPU')}"


def _pending(repairs: Repairs) -> dict[str, bool | Missing]:
    return {"memory channel": repairs.channel_pending, "TPC": repairs.tpc_pending}


class Inforom(PerGpuCheck):
    """The infoROM of every GPU passes its checksums."""

    id = "gpu.inforom"
    title = "InfoROM"
    why = "The infoROM keeps what the board remembers of errors and repairs; corrupted, it forgets, and modes with it."
    source = "NVML nvmlDeviceValidateInforom; nvidia-smi's manual, return value 14; DCGM 4.6.0 and gcm check it"
    remedy = "Replace the host; on your own machine, have the vendor write the board's infoROM anew."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        fault = facts.need(DriverFault) if DriverFault in facts else None
        if fault is not None and fault.kind == "inforom-corrupt":
            yield self._corrupt(fault.gpu or "host", fault.text)
            return
        inventory = facts.need(GpuInventory)
        labels = {str(gpu.pci_address): gpu.label for gpu in inventory.gpus}
        subjects = [labels.get(name, "host") for name in inventory.warned]
        yield from (self._corrupt(subject, "nvidia-smi warns of it") for subject in subjects)
        found = list(super().evaluate(facts, expected))
        told = found if not subjects else [one for one in found if one.verdict is Verdict.FAIL]
        yield from (one for one in told if one.subject not in subjects)

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        corrupt = gpu.repairs.inforom_corrupt
        if corrupt is True:
            return self._corrupt(gpu.label, "its checksums are wrong")
        return _untold(self, gpu, {"infoROM": corrupt})

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"the infoROM is valid on {counted(len(gpus), 'GPU')}"

    def _corrupt(self, subject: str, why: str) -> Finding:
        return self.finding(
            Verdict.FAIL, subject, f"the infoROM is corrupted: {why}", measured="corrupted", expected="valid"
        )


def _untold(check: PerGpuCheck, gpu: Gpu, values: dict[str, bool | Missing]) -> Finding | None:
    """What to make of values that are not there; None where one at least was told, and none is an error.

    Drivers before 570 have none of them, and a board may lack any: only an error in place of a value closes the gate.
    """
    missing = {name: value for name, value in values.items() if isinstance(value, Missing)}
    for name, value in missing.items():
        if value.reason is Reason.FAULT:
            return check.missing(gpu.label, name, value)
    if len(missing) < len(values):
        return None
    name, value = next(iter(missing.items()))
    if not_there(value):
        return check.finding(Verdict.NOT_APPLICABLE, gpu.label, f"the driver does not tell: {listed(values)}")
    return replace(check.missing(gpu.label, name, value), required=False)
