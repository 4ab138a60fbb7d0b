"""vGPU licences: the block of ``nvidia-smi -q`` in a guest, alone, and ``nvidia-smi vgpu -q`` on the host of guests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import clean, lines

TOOL = "nvidia-smi -q (vGPU licence)"
_HEAD = re.compile(r"^\s*(?:(?:vGPU Software|GRID) Licensed Product\s*$|vGPU ID\s*:)")
_FIELD = re.compile(r"^\s+(Product Name|vGPU Name|License Status)\s*: (.*\S)\s*$")
_NONE = re.compile(r"^[ \t]*Active vGPUs\s*: 0\s*$", re.MULTILINE)


def in_grace(status: str) -> bool:
    """Whether there is no licence yet, and the vGPU still runs at full speed (NVML: UNLICENSED_UNRESTRICTED, R510)."""
    return status.lower().startswith("unlicensed (unrestricted")


@dataclass(frozen=True)
class VgpuLicense:
    """One vGPU's licence: product, and the driver's words on its state (``Licensed (Expiry: N/A)``)."""

    product: str
    status: str

    @property
    def licensed(self) -> bool:
        return self.status.lower().startswith("licensed")

    @property
    def untold(self) -> bool:
        """The host knows of no licence state of a guest that has loaded no driver."""
        return self.status.lower().startswith("n/a")


@dataclass(frozen=True)
class VgpuLicenses:
    licenses: tuple[VgpuLicense, ...]


def parse(text: str) -> VgpuLicenses:
    """Every licence block; none on a host that runs no vGPU. Raises ParseError where one has no status."""
    blocks: list[dict[str, str]] = []
    for line in lines(text):
        field = _FIELD.match(line)
        if _HEAD.match(line):
            blocks.append({})
        elif field and blocks:
            blocks[-1][field[1]] = field[2]
    if not blocks and not _NONE.search(clean(text)):
        raise ParseError(TOOL, 0, "no block 'vGPU Software Licensed Product'")
    for block in blocks:
        if "License Status" not in block:
            raise ParseError(TOOL, 0, "a licence without a status: the text is cut short")
    names = [block.get("Product Name") or block.get("vGPU Name") or "" for block in blocks]
    found = (VgpuLicense(name, block["License Status"]) for name, block in zip(names, blocks, strict=True))
    return VgpuLicenses(tuple(found))
