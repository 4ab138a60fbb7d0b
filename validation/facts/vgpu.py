"""The vGPU licence block of ``nvidia-smi -q``, alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "nvidia-smi -q (vGPU licence)"
_HEAD = re.compile(r"^\s*(?:vGPU Software|GRID) Licensed Product\s*$")
_FIELD = re.compile(r"^\s+(Product Name|License Status)\s*: (.*\S)\s*$")


@dataclass(frozen=True)
class VgpuLicense:
    """One vGPU's licence: product, and the driver's words on its state (``Licensed (Expiry: N/A)``)."""

    product: str
    status: str

    @property
    def licensed(self) -> bool:
        return self.status.lower().startswith("licensed")


@dataclass(frozen=True)
class VgpuLicenses:
    licenses: tuple[VgpuLicense, ...]


def parse(text: str) -> VgpuLicenses:
    """Every licence block. Raises ParseError where one has no status."""
    blocks: list[dict[str, str]] = []
    for line in lines(text):
        field = _FIELD.match(line)
        if _HEAD.match(line):
            blocks.append({})
        elif field and blocks:
            blocks[-1][field[1]] = field[2]
    if not blocks:
        raise ParseError(TOOL, 0, "no block 'vGPU Software Licensed Product'")
    for block in blocks:
        if "License Status" not in block:
            raise ParseError(TOOL, 0, "a licence without a status: the text is cut short")
    return VgpuLicenses(tuple(VgpuLicense(block.get("Product Name", ""), block["License Status"]) for block in blocks))
