"""How the GPUs are set: modes, limits, and whether anybody is using them before the test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from profiles.models import Expectation
from validation.checks.base import THE_STACK, Check
from validation.checks.per_gpu import PerGpuCheck, sold_without_ecc
from validation.checks.wording import counted, listed, not_there
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.facts.vgpu import in_grace
from validation.verdict import FaultClass, Finding, Verdict

# Boards that every driver can slice, so that every driver tells their mode. Source: NVIDIA MIG user guide 620.
_MIG_BOARDS = re.compile(r"\b(?:A100|A800|A30|H100|H800|H200|H20|G?B200|G?B300)\b")
# A virtual GPU is named after its board and its share: NVIDIA L4-3Q, NVIDIA A10-4Q, GRID T4-8Q. Source: goldens of g6f;
# the tables of virtual GPU types in vgpu_unlock.
_VIRTUAL = re.compile(r"-\d+[ABCQ]$")
_IDLE_MEMORY_SHARE = 0.02  # of the total: a context of a few hundred MiB on a small board, nothing on an idle one


class Mig(PerGpuCheck):
    """MIG is on where the stack asked for it, and off elsewhere."""

    id = "gpu.mig"
    title = "MIG mode"
    why = "A sliced GPU has a fraction of the memory and no NVLink; some images and clouds leave MIG on."
    source = "capture of an H100 with MIG; Alibaba Cloud: look at MIG after the start of an ebmgn7e"
    remedy = "Turn MIG to what the stack says (nvidia-smi -mig 0 or 1) and reset the GPU."
    fault_class = FaultClass.CONFIGURATION
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = "on" if expected.mig else "off"
        mode, pending = gpu.mig_enabled, gpu.mig_pending
        if isinstance(mode, Missing):
            if not_there(mode) and not expected.mig and not _MIG_BOARDS.search(str(gpu.name)):
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "this board has no MIG")
            return self.missing(gpu.label, "MIG mode", mode, expected=wanted)
        if mode is not expected.mig:
            seen = "on" if mode else "off"
            return self.finding(Verdict.FAIL, gpu.label, f"MIG is {seen}", measured=seen, expected=wanted)
        if isinstance(pending, Missing) and pending.reason is Reason.COULD_NOT_LOOK:
            return self.missing(gpu.label, "MIG mode after the next reset", pending, expected=wanted)
        if not isinstance(pending, Missing) and pending is not mode:
            message = f"MIG is {wanted}, and will be {'on' if pending else 'off'} after the next reset"
            return self.finding(Verdict.FAIL, gpu.label, message, measured="change pending", expected=wanted)
        return None

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:
        return f"MIG is {'on' if expected.mig else 'off'} on {counted(len(gpus), 'GPU')}"


class Persistence(PerGpuCheck):
    """Persistence mode is on: the driver stays loaded between programs."""

    id = "gpu.persistence"
    title = "Persistence mode"
    why = "Without it the driver unloads between programs: each start takes seconds, and settings are lost."
    source = "aws-k8s-tester 9c7b987a; NVIDIA driver persistence guide"
    remedy = "Enable nvidia-persistenced in the image."
    fault_class = FaultClass.SOFTWARE
    needs_profile = False

    def not_applicable(self, expected: Expectation) -> str:
        return "" if expected.persistence else "the stack does not ask for persistence mode"

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        if gpu.persistence is True:
            return None
        if isinstance(gpu.persistence, Missing):
            return self.missing(gpu.label, "persistence mode", gpu.persistence, expected="on")
        # It costs time and no correctness: a warning, so that an image without it still opens the gate.
        return self.finding(Verdict.WARN, gpu.label, "persistence mode is off", measured="off", expected="on")

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"persistence mode is on on {counted(len(gpus), 'GPU')}"


class EccMode(PerGpuCheck):
    """ECC is on where the board has it, unless the stack asked for it to be off."""

    id = "ecc.mode"
    title = "ECC mode"
    why = "With ECC off a flipped bit is a wrong result that nobody counts."
    source = "captures per board in profiles/boards"
    remedy = "Turn ECC to what was asked for (nvidia-smi -e 1 or 0) and reboot."
    fault_class = FaultClass.CONFIGURATION
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        board = expected.profile.gpu.ecc if expected.profile else None
        mode = gpu.ecc.enabled
        if board is not None and board.value is False:
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "this board has no ECC")
        desk = "" if expected.profile else sold_without_ecc(gpu)
        if desk and (mode is False or not_there(mode)):
            message = f"{desk}: a board without ECC, or one sold with it off"
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, message)
        wanted = expected.ecc is not False
        words = {True: "on", False: "off"}
        if isinstance(mode, Missing):
            return self.missing(gpu.label, "ECC mode", mode, expected=words[wanted])
        source = THE_STACK if expected.ecc is not None else expected.source_of(board.source) if board else ""
        say = partial(self.finding, Verdict.FAIL, gpu.label, expected=words[wanted], source=source)
        if mode is not wanted:
            return say(f"ECC is {words[mode]}", measured=words[mode])
        if gpu.ecc.enabled_next is (not wanted):
            message = f"ECC is {words[mode]}, and will be {words[not mode]} after the next reset"
            return say(message, measured="change pending")
        return None

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:
        mode = "off, as asked for," if expected.ecc is False else "on"
        return f"ECC is {mode} on {counted(len(gpus), 'GPU')}"


class Idle(PerGpuCheck):
    """Nobody uses a GPU before the test."""

    id = "gpu.idle"
    title = "Idle before the test"
    why = "A process left over takes memory and time from the job, and from every measurement here."
    source = (
        "aws-k8s-tester 9c7b987a (no process before and after); utilisation is stale in captures, so it is not read"
    )
    remedy = "Stop what runs on the GPU, and validate again."
    fault_class = FaultClass.OPERATOR
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        if isinstance(gpu.processes, Missing):
            return self.missing(gpu.label, "processes", gpu.processes, expected="0")
        if gpu.processes:
            message = "1 process runs on it" if gpu.processes == 1 else f"{gpu.processes} processes run on it"
            return self.finding(Verdict.WARN, gpu.label, message, measured=str(gpu.processes), expected="0")
        used, total = gpu.memory_used_mib, gpu.memory_total_mib
        if isinstance(used, Missing) and not not_there(used):
            return self.missing(gpu.label, "memory in use", used)
        if isinstance(used, Missing) or isinstance(total, Missing) or used <= _IDLE_MEMORY_SHARE * total:
            return None
        message = f"{used:.0f} MiB are in use, and no process shows"
        return self.finding(Verdict.WARN, gpu.label, message, measured=f"{used:.0f} MiB", expected="idle")

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"no process on {counted(len(gpus), 'GPU')}"


GRACE = "Read it again some minutes after boot: no licence yet, and not slowed yet. If it stays, give it its token."


class VgpuLicense(PerGpuCheck):
    """A virtual GPU is licensed."""

    id = "gpu.vgpu_license"
    title = "vGPU licence"
    why = "An unlicensed virtual GPU is slowed to a crawl some minutes after boot."
    source = "aws-k8s-tester 9c7b987a golden of g6f.xlarge"
    remedy = "Give the guest its licence token, and look at the clock and at the way to the licence server."
    fault_class = FaultClass.CONFIGURATION
    safety = True
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        virtual = isinstance(gpu.virtualization, str) and gpu.virtualization.lower().replace(" ", "") == "vgpu"
        virtual = virtual or bool(_VIRTUAL.search(str(gpu.name)))
        state = gpu.vgpu_license
        if isinstance(state, Missing):
            if not virtual:
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "not a virtual GPU")
            return self.missing(gpu.label, "vGPU licence", state, expected="Licensed")
        if state.lower().startswith("licensed"):
            return None
        verdict = Verdict.UNKNOWN if in_grace(state) else Verdict.FAIL
        message, remedy = f"licence: {state}", GRACE if in_grace(state) else ""
        return self.finding(verdict, gpu.label, message, measured=state, expected="Licensed", remedy=remedy)

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"{counted(len(gpus), 'virtual GPU')} licensed"


class Identity(Check):
    """Every GPU has a UUID of its own."""

    id = "gpu.uuid"
    title = "UUID of each GPU"
    why = "The UUID is how a bad unit is known again; a serial is not unique (two GPUs of a GB200 board share one)."
    source = "capture of a p6e-gb200.36xlarge"
    remedy = "Replace the host: a board without its own UUID cannot be followed."
    fault_class = FaultClass.REPLACE_NOW
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        gpus = facts.need(GpuInventory).gpus
        seen: dict[str, Gpu] = {}
        trouble = False
        for gpu in gpus:
            if isinstance(gpu.uuid, Missing):
                trouble = True
                yield self.missing(gpu.label, "UUID", gpu.uuid)
            elif gpu.uuid in seen:
                trouble = True
                message = f"has the UUID of {seen[gpu.uuid].label}"
                yield self.finding(Verdict.FAIL, gpu.label, message, measured=gpu.uuid, expected="a UUID of its own")
            else:
                seen[gpu.uuid] = gpu
        if not gpus:
            yield self.finding(Verdict.UNKNOWN, "host", "no GPU answered, so none was looked at")
        elif not trouble:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(gpus), 'GPU')}, each with its own UUID")


class Firmware(Check):
    """All GPUs of the host have one VBIOS and one GSP firmware."""

    id = "gpu.firmware"
    title = "VBIOS and GSP firmware"
    why = "A board with another firmware than its neighbours was swapped or half updated, and behaves differently."
    source = "azurehpc-health-checks 0e0a1ac; imbue-ai/cluster-health"
    remedy = "Replace the host, or have its firmware brought to one version."
    fault_class = FaultClass.OPERATOR
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        gpus = facts.need(GpuInventory).gpus
        if not gpus:
            yield self.finding(Verdict.UNKNOWN, "host", "no GPU answered, so none was looked at")
            return
        unread = [self.missing(gpu.label, "VBIOS", gpu.vbios) for gpu in gpus if isinstance(gpu.vbios, Missing)]
        without = [label for same in _models(gpus) for label in _without_gsp(same)]
        versions = {
            "VBIOS": {str(gpu.vbios) for gpu in gpus if not isinstance(gpu.vbios, Missing)},
            "GSP firmware": {str(gpu.gsp_firmware) for gpu in gpus if not isinstance(gpu.gsp_firmware, Missing)},
        }
        mixed = list(_mixed(gpus))
        yield from unread
        if without:  # boards before Turing, and drivers that run without it, have none on any GPU
            message = f"GSP firmware runs on some GPUs and not on {listed(without)}"
            yield self.finding(Verdict.WARN, "host", message, measured="mixed", expected="one GSP firmware")
        for what, found in mixed:
            message = f"{len(found)} versions of {what}: {listed(found)}"
            yield self.finding(Verdict.WARN, "host", message, measured=listed(found), expected=f"one {what}")
        if not unread and not mixed and not without:
            text = ", ".join(f"{what} {listed(sorted(found))}" for what, found in versions.items() if found)
            yield self.finding(Verdict.PASS, "host", f"{text} on {counted(len(gpus), 'GPU')}")


def _models(gpus: tuple[Gpu, ...]) -> list[list[Gpu]]:
    """The GPUs by model: boards of two models never share a VBIOS, and an old one has no GSP beside a new one."""
    return [[gpu for gpu in gpus if gpu.name == model] for model in dict.fromkeys(gpu.name for gpu in gpus)]


def _without_gsp(same: list[Gpu]) -> list[str]:
    """Those that run without GSP firmware, where others of the model run with it."""
    without = [gpu.label for gpu in same if isinstance(gpu.gsp_firmware, Missing)]
    return without if len(without) < len(same) else []


def _mixed(gpus: tuple[Gpu, ...]) -> Iterator[tuple[str, list[str]]]:
    """What differs among GPUs of one model."""
    for same in _models(gpus):
        vbios, gsp = [gpu.vbios for gpu in same], [gpu.gsp_firmware for gpu in same]
        for what, values in (("VBIOS", vbios), ("GSP firmware", gsp)):
            found = {str(value) for value in values if not isinstance(value, Missing)}
            if len(found) > 1:
                yield what, sorted(found)
