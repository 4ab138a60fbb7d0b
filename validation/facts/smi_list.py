"""The short outputs of nvidia-smi: ``-L`` and ``--version``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts import driver_fault
from validation.facts.fields import not_shown
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import short_lines, word

LIST_TOOL = "nvidia-smi -L"
VERSION_TOOL = "nvidia-smi --version"
_GPU = re.compile(r"^GPU (\d+): (.+?) \(UUID: ([^()]*?)\)$")
_MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^()]*?)\)$")
_UUID = re.compile(r"^(?:GPU|MIG)-\w[\w/-]*$")
_VERSION = re.compile(r"^([A-Za-z][\w -]*?)\s+:\s+(.*\S)\s*$")


@dataclass(frozen=True)
class MigDevice:
    """One slice of a GPU under MIG: profile (``1g.10gb``) and UUID."""

    gpu: int
    index: int
    profile: str
    uuid: str


@dataclass(frozen=True)
class GpuList:
    """``nvidia-smi -L``: the GPUs, and apart from them their MIG slices, which are not GPUs."""

    inventory: GpuInventory
    mig_devices: tuple[MigDevice, ...]


@dataclass(frozen=True)
class SmiVersion:
    """``driver`` is the kernel module's version; ``cuda_driver`` the newest CUDA it can run, not the toolkit."""

    smi: str
    driver: str
    cuda_driver: str | Missing = ABSENT
    nvml: str | Missing = ABSENT


def parse_list(text: str) -> GpuList:
    """GPUs and MIG slices. "No devices were found" is one line and no GPU: a ParseError that says so."""
    gpus: list[Gpu] = []
    slices: list[MigDevice] = []
    faults = driver_fault.find(text, LIST_TOOL)
    for number, line in enumerate(short_lines(text, LIST_TOOL), start=1):
        one, part = _GPU.match(line.rstrip()), _MIG.match(line.rstrip())
        if one:
            mig: bool | Missing = ABSENT
            gpus.append(Gpu(index=int(one[1]), name=word(one[2]), uuid=_uuid(one[3]), mig_enabled=mig))
        elif part and not gpus:
            raise ParseError(LIST_TOOL, number, "a MIG device before any GPU: the text's beginning is missing")
        elif part:
            slices.append(MigDevice(gpus[-1].index, int(part[2]), part[1], part[3]))
        elif line.strip() and not line.strip().startswith("$") and not driver_fault.find(line, LIST_TOOL):
            raise ParseError(LIST_TOOL, number, f"{line.strip()[:80]!r} is neither a GPU nor a MIG device")
    if not gpus:
        raise ParseError(LIST_TOOL, 1, f"no GPU; the tool said: {faults[0].text}" if faults else "no GPU is listed")
    indices = [gpu.index for gpu in gpus]
    if indices != sorted(set(indices)):
        raise ParseError(LIST_TOOL, 0, f"GPU indices {indices} are not in order")
    lost = tuple(fault.gpu or fault.text for fault in faults if fault.kind == "gpu-lost")
    omitted = not_shown(indices, lost)
    inventory = GpuInventory(source="nvidia-smi-l", gpus=tuple(gpus), lost=lost, omitted=omitted)
    return GpuList(inventory, tuple(slices))


def _uuid(text: str) -> str | Missing:
    """Who pastes a list may have put something else in its place: [removed], XXXX, dots."""
    return text if _UUID.match(text) else Missing(Reason.COULD_NOT_LOOK, text or "hidden")


def parse_version(text: str) -> SmiVersion:
    """Versions by name; drivers from 610 on call the driver KMD and say "Deprecated" under the old name."""
    found: dict[str, str | Missing] = {}
    for number, line in enumerate(short_lines(text, VERSION_TOOL), start=1):
        match = _VERSION.match(line)
        said = word(match[2]) if match else ABSENT
        if match and found.setdefault(match[1].lower(), said) != said and match[1].lower().endswith("version"):
            reason = f"{match[1]} is {match[2]} here and another one above: two outputs that differ"
            raise ParseError(VERSION_TOOL, number, reason, "Show one output at a time.")
    driver = found.get("kmd version", ABSENT)
    if isinstance(driver, Missing):
        driver = found.get("driver version", ABSENT)
    smi = found.get("nvidia-smi version", ABSENT)
    if isinstance(driver, Missing) or isinstance(smi, Missing):
        raise ParseError(VERSION_TOOL, 0, "no NVIDIA-SMI version or no DRIVER/KMD version")
    cuda = found.get("cuda umd version", ABSENT)
    cuda = found.get("cuda version", ABSENT) if isinstance(cuda, Missing) else cuda
    return SmiVersion(smi=smi, driver=driver, cuda_driver=cuda, nvml=found.get("nvml version", ABSENT))
