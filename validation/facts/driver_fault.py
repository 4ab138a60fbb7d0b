"""The driver's own words for not working at all, wherever they stand in an output."""

from __future__ import annotations

import re

from validation.facts.gpu import DriverFault
from validation.facts.text import clean, pci_address

_CORRUPT = re.compile(r"infoROM is corrupted at gpu\s+(?P<address>[0-9A-Fa-f:]+\.[0-7])", re.I)
_HANDLE = re.compile(
    r"Unable to de(?:termine|tect) the device handle for (?:GPU|gpu)\s*(?P<index>\d+(?=:\s|\s))?:?\s*"
    r"(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])?"
)
# In this order: the first that matches names the line. Texts of nvidia-smi, the CUDA runtime and NVML.
_KINDS = (
    ("library-mismatch", re.compile(r"Driver/library version mismatch|LIB_RM_VERSION_MISMATCH", re.I)),
    (
        "no-access",
        re.compile(r"Failed to initialize NVML: (?:Unknown Error|Insufficient Permissions|GPU access blocked)", re.I),
    ),
    ("no-library", re.compile(r"ERROR_LIBRARY_NOT_FOUND|libnvidia-ml\.so\S*: cannot open shared object file", re.I)),
    (
        "gpu-lost",
        re.compile(r"Unable to de(?:termine|tect) the device handle for GPU|GPU is lost|ERROR_GPU_IS_LOST", re.I),
    ),
    (
        "not-loaded",
        re.compile(
            r"couldn't communicate with the NVIDIA driver|NVIDIA driver is not loaded|Driver Not Loaded"
            r"|NVML_ERROR_DRIVER_NOT_LOADED|No supported driver|Can't communicate with NVIDIA driver",
            re.I,
        ),
    ),
    ("no-devices", re.compile(r"^No devices (?:were )?found\.?$", re.I)),
    (
        "fabric-not-ready",
        re.compile(
            r"system not yet initialized|SYSTEM_NOT_READY|cudaErrorSystemNotReady|CUDA error(?: code)?:? 802\b", re.I
        ),
    ),
    ("not-loaded", re.compile(r"Failed to initialize NVML", re.I)),
    ("inforom-corrupt", re.compile(r"\binfoROM is corrupted\b", re.I)),
    ("no-matrix", re.compile(r"^Failed to (?:run topology matrix|display p2p capability matrix\b.*)$", re.I)),
)
# Gravest first: what stops every GPU, then what stops one, what warns of one, then what shows none and names no cause.
PARTIAL = ("gpu-lost", "inforom-corrupt", "no-matrix")
_OF_ONE = ("gpu-lost", "inforom-corrupt")

# Of each pattern, and of each of its alternatives, a part that is there whenever it matches, in lower case.
_WORDS = (
    "version mismatch", "version_mismatch", "device handle", "gpu is lost", "gpu_is_lost", "nvidia driver",
    "driver not loaded", "driver_not_loaded", "no supported driver", "no devices", "not yet initialized",
    "system_not_ready", "systemnotready", "cuda error", "initialize nvml", "topology matrix",
    "library_not_found", "libnvidia-ml",
    "capability matrix", "inforom",
)  # fmt: skip


def find(text: str, source: str) -> tuple[DriverFault, ...]:
    """Every line of the text in which the driver or its library says that it cannot work, in order, each once."""
    faults: dict[tuple[str, str], DriverFault] = {}
    plain = clean(text)
    if not _may_name(plain):  # most outputs are long and name no fault
        return ()
    for line in plain.split("\n"):
        stripped = line.strip()
        if len(stripped) > 400 or not _may_name(stripped):
            continue
        kind = next((kind for kind, pattern in _KINDS if pattern.search(stripped)), None)
        if kind:
            fault = DriverFault(source, kind, stripped, _which(stripped) if kind in _OF_ONE else "")
            faults.setdefault((kind, fault.gpu), fault)
    return tuple(faults.values())


def _may_name(text: str) -> bool:
    lowered = text.lower()
    return any(words in lowered for words in _WORDS)


def first(text: str, source: str) -> DriverFault | None:
    """The gravest of :func:`find`: one that stops every GPU before those of ``PARTIAL``, in their order."""
    return min(
        find(text, source), key=lambda fault: PARTIAL.index(fault.kind) if fault.kind in PARTIAL else -1, default=None
    )


def _which(line: str) -> str:
    """The GPU a line names: its PCI address, else its index, else nothing."""
    match = _HANDLE.search(line)
    corrupt = _CORRUPT.search(line)
    if corrupt:
        return pci_address(corrupt["address"]) or ""
    address = pci_address(match["address"]) if match and match["address"] else None
    if address:
        return address
    return match["index"] or "" if match else ""
