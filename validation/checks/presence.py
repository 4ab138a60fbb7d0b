"""Are the GPUs there, are they the right ones, and does the driver hold all that the bus shows?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from functools import partial

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, listed, profile_of
from validation.facts.gpu import DriverFault, Gpu, GpuInventory
from validation.facts.host import PciBus
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_SIGNED = ("tlimit_margin_c", "temperature_c")
_PLAIN = (str, tuple, Missing, type(None))  # most values: they have no fields to look into
_HOTTEST_C = 150.0  # shutdown thresholds of captures lie between 90 and 104


class GpuCount(Check):
    """The driver answers for as many GPUs as the instance type has."""

    id = "gpu.count"
    title = "GPU count"
    why = "Machines boot with a GPU missing and no error anywhere; the job then fails in the middle, without a reason."
    source = "aws/eks-node-monitoring-agent PR 121 (g6e.12xlarge with 3 of 4 GPUs); NVIDIA/aicr 1858"
    remedy = "Replace the host: a GPU that is missing at boot rarely comes back."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    requires = (GpuInventory,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        count = profile_of(expected).gpu.count
        found = len(facts.need(GpuInventory).gpus)
        say = partial(
            self.finding,
            measured=counted(found, "GPU"),
            expected=counted(count.value, "GPU"),
            source=expected.source_of(count.source),
        )
        if found == count.value:
            yield say(Verdict.PASS, "host", f"{found} of {counted(count.value, 'GPU')} found")
        elif found < count.value:
            yield say(Verdict.FAIL, "host", f"{found} of {counted(count.value, 'GPU')} found")
        else:
            message = f"{counted(found, 'GPU')} found, more than {expected.instance_type} has"
            remedy = "Correct the instance type that the host is judged as."
            yield say(Verdict.FAIL, "host", message, fault_class=FaultClass.CONFIGURATION, remedy=remedy)


class GpuName(PerGpuCheck):
    """Every GPU has exactly the product name of the instance type's board."""

    id = "gpu.name"
    title = "GPU model"
    why = "A name that only begins alike is another board: NVIDIA L4 is neither an L40 nor the vGPU profile L4-3Q."
    source = "aws/aws-k8s-tester 9c7b987a goldens; names as NVML prints them"
    remedy = "Correct the instance type, or replace the host if the type is right."
    fault_class = FaultClass.REPLACE_NOW

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        names = profile_of(expected).gpu.names
        if isinstance(gpu.name, Missing):
            return self.missing(gpu.label, "product name", gpu.name, expected=listed(names.value))
        if gpu.name in names.value:
            return None
        return self.finding(
            Verdict.FAIL,
            gpu.label,
            f"is a {gpu.name}, not a {names.value[0]}",
            measured=gpu.name,
            expected=" or ".join(names.value),
            source=expected.source_of(names.source),
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"all {len(gpus)} are {gpus[0].name}"


class GpuLost(Check):
    """No GPU is listed by the driver but lost."""

    id = "gpu.lost"
    title = "No GPU is lost"
    why = "A lost GPU stays listed, so counting lines counts it."
    source = "NVML return 15 (GPU is lost); nvidia-smi exit status 15"
    remedy = "Replace the host: a lost GPU needs a power cycle, which a guest reboot does not give."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        fault = facts.need(DriverFault) if DriverFault in facts else None
        if fault is not None and fault.kind == "gpu-lost":
            yield self._lost(fault.gpu or "a GPU", fault.text)
            return
        inventory = facts.need(GpuInventory)
        for gpu in inventory.lost:
            yield self._lost(gpu, "the driver lists it and cannot reach it")
        if not inventory.lost:
            yield self.finding(Verdict.PASS, "host", f"none of {counted(len(inventory.gpus), 'GPU')} is lost")

    def _lost(self, gpu: str, text: str) -> Finding:
        subject = f"GPU{gpu}" if gpu.isdigit() else gpu
        message = f"lost: {text}"
        return self.finding(Verdict.FAIL, subject, message, measured="lost", expected="every listed GPU answers")


# Azure/azhpc-diagnostics issue 77 (2022-04): a healthy V100 prints an error for its power now and then.
_POWER_PASSES = "Read it again: the power alone reads as an error now and then. If it stays, reboot once."


class GpuReadable(PerGpuCheck):
    """The driver answers every question about a GPU, if only with "not applicable"."""

    id = "gpu.readable"
    title = "Every value can be read"
    why = "A GPU that is dying answers some questions and returns an error for the others."
    source = "nvidia-smi: [Unknown Error], [GPU requires reset]; NVML return codes"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        silent = facts.need(GpuInventory).silent
        for tool in silent:
            message = f"{tool}; another tool answered, but what breaks one may break the next"
            yield self.finding(
                Verdict.UNKNOWN, "host", message, measured="no answer", expected="an answer of every tool"
            )
        found = list(super().evaluate(facts, expected))
        yield from (one for one in found if not silent or one.verdict is not Verdict.PASS)

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        bad = list(_faults(gpu))
        if not bad:
            odd = list(_impossible(gpu))
            message = f"values that cannot be: {listed(odd)}"
            return self.finding(Verdict.UNKNOWN, gpu.label, message, measured=listed(odd)) if odd else None
        message = f"the driver returns an error for {listed(f'{name} ({value.text})' for name, value in bad)}"
        measured = counted(len(bad), "error")
        if all(name == "power_draw_w" and value.text.strip("[]").lower() == "unknown error" for name, value in bad):
            return self.finding(
                Verdict.UNKNOWN, gpu.label, message, measured=measured, expected="no error", remedy=_POWER_PASSES
            )
        return self.finding(Verdict.FAIL, gpu.label, message, measured=measured, expected="no error")

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"no error in any value of {counted(len(gpus), 'GPU')}"


def _impossible(part: object, prefix: str = "") -> Iterator[str]:
    """Numbers below zero, which no count, size, clock or power is, and heat that no board survives."""
    for name, value in vars(part).items():
        if isinstance(value, (int, float)):
            if value < 0 and name not in _SIGNED:
                yield f"{prefix}{name} {value:g}"
            elif name == "temperature_c" and value > _HOTTEST_C:
                yield f"{name} {value:g}"
        elif not isinstance(value, _PLAIN) and is_dataclass(value):
            yield from _impossible(value, f"{prefix}{name}.")


def _faults(part: object, prefix: str = "") -> Iterator[tuple[str, Missing]]:
    """Every field, nested ones too, that the driver answered with an error."""
    for name, value in vars(part).items():
        if isinstance(value, Missing):
            if value.reason is Reason.FAULT:
                yield f"{prefix}{name}", value
        elif not isinstance(value, _PLAIN) and is_dataclass(value):
            yield from _faults(value, f"{prefix}{name}.")


class GpuPciBus(Check):
    """Every NVIDIA GPU on the PCI bus answers, and the driver holds it."""

    id = "gpu.pci_bus"
    title = "GPUs on the PCI bus"
    why = "A GPU that died stays on the bus with all configuration bytes 0xff: a count of devices passes."
    source = "lspci (rev ff) of a GPU fallen off the bus; NVIDIA/NVSentinel PR 684 and 833"
    remedy = "Replace the host."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    requires = (PciBus, GpuInventory)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        bus = {device.address: device for device in facts.need(PciBus).nvidia_gpus}
        dead = sorted(address for address, device in bus.items() if device.dead)
        for address in dead:
            message = "is on the bus, but its configuration space reads all ones (rev ff): it fell off the bus"
            yield self.finding(Verdict.FAIL, address, message, measured="dead", expected="answers on PCI")
        inventory = facts.need(GpuInventory)
        unknown = [gpu for gpu in inventory.gpus if isinstance(gpu.pci_address, Missing)]
        for gpu in unknown:
            assert isinstance(gpu.pci_address, Missing)
            yield self.missing(gpu.label, "PCI address", gpu.pci_address)
        held = {str(gpu.pci_address) for gpu in inventory.gpus if gpu not in unknown}
        orphans = sorted(set(bus) - held - set(dead)) if not unknown else []
        for address in orphans:
            message = "is on the PCI bus, but the driver does not hold it"
            yield self.finding(Verdict.FAIL, address, message, measured="no driver", expected="held by the driver")
        absent = sorted(held - set(bus))
        for address in absent:
            message = "is held by the driver, but the bus does not show it: the bus listing is not whole"
            yield self.finding(Verdict.UNKNOWN, address, message, remedy="Read the PCI bus again.")
        doubles = list(self._doubles(inventory.gpus))
        yield from doubles
        if not bus and not inventory.gpus:
            yield self.finding(Verdict.UNKNOWN, "host", "no NVIDIA GPU on the PCI bus, and none held by the driver")
        elif not (dead or unknown or orphans or absent or doubles):
            yield self.finding(Verdict.PASS, "host", f"the driver holds all {counted(len(bus), 'GPU')} of the PCI bus")

    def _doubles(self, gpus: tuple[Gpu, ...]) -> Iterator[Finding]:
        """Two GPUs at one address are one GPU counted twice, or a reading that cannot be right."""
        first: dict[str, Gpu] = {}
        for gpu in gpus:
            if isinstance(gpu.pci_address, Missing):
                continue
            other = first.setdefault(gpu.pci_address, gpu)
            if other is not gpu:
                message = f"has the PCI address of {other.label}: one of the two is not there"
                yield self.finding(Verdict.UNKNOWN, gpu.label, message, measured=gpu.pci_address)


class GpuMemory(PerGpuCheck):
    """Every GPU offers the memory of its board."""

    id = "gpu.memory"
    title = "GPU memory"
    why = "A board that lost part of its memory, or another board under the same name, runs until the model is loaded."
    source = "NVML totals of healthy boards (facts per board in profiles/boards); Xid 168 (reduced memory)"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = profile_of(expected).gpu.memory_mib
        text = f"{wanted.floor:.0f} to {wanted.ceiling:.0f} MiB"
        total = gpu.memory_total_mib
        if isinstance(total, Missing):
            return self.missing(gpu.label, "memory total", total, expected=text)
        if wanted.floor <= total <= wanted.ceiling:
            return None
        # More than the board has is no measurement: it keeps the gate shut, but accuses nobody.
        verdict = Verdict.FAIL if total < wanted.floor else Verdict.UNKNOWN
        return self.finding(
            verdict,
            gpu.label,
            f"offers {total:.0f} MiB of memory",
            measured=f"{total:.0f} MiB",
            expected=text,
            source=expected.source_of(wanted.source),
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"{gpus[0].memory_total_mib:.0f} MiB on each of {counted(len(gpus), 'GPU')}"
