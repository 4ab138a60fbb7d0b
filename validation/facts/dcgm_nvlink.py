"""``dcgmi nvlink --link-status``: the NVLinks of each GPU, one letter a link."""

from __future__ import annotations

import re

from profiles.errors import ParseError
from validation.facts.gpu import Gpu, GpuInventory, NvLink
from validation.facts.missing import Missing, Reason
from validation.facts.text import lines

TOOL = "dcgmi nvlink"
_GPU = re.compile(r"^\s+gpuId (\d+):\s*$")
_LINKS = re.compile(r"^\s+([UDX_](?: [UDX_])*)\s*$")
_END = re.compile(r"^(?:Key:|NvSwitches:)")


def parse(text: str) -> GpuInventory:
    """Up is active; Down and Disabled are not; a link that is not supported is left out.

    Raises ParseError where a GPU has no line of letters, or the closing key is missing: the text is cut short.
    """
    found: dict[int, tuple[NvLink, ...] | Missing] = {}
    current, ended = -1, False
    for number, line in enumerate(lines(text), start=1):
        gpu, links = _GPU.match(line), _LINKS.match(line)
        if gpu and not ended:
            current = int(gpu[1])
        elif links and current >= 0 and not ended:
            if current in found:
                raise ParseError(TOOL, number, f"gpuId {current}: a second line of links")
            found[current] = _links(links[1].split())
            current = -1
        elif _END.match(line):
            ended = True
        if ended and current >= 0:
            raise ParseError(TOOL, number, f"gpuId {current}: no links")
    if not found or not ended:
        raise ParseError(TOOL, 0, "no GPU, or no closing key: the text is cut short")
    return GpuInventory(
        source="dcgmi-nvlink", gpus=tuple(Gpu(at, nvlinks=links) for at, links in sorted(found.items()))
    )


def _links(letters: list[str]) -> tuple[NvLink, ...] | Missing:
    links = tuple(NvLink(at, letter == "U") for at, letter in enumerate(letters) if letter != "_")
    return links or Missing(Reason.NOT_APPLICABLE, "Not Supported")
