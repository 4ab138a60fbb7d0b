"""``nvidia-smi nvlink -s``: which NVLinks of each GPU are up."""

from __future__ import annotations

import re
from dataclasses import replace

from profiles.errors import ParseError
from validation.facts import driver_fault
from validation.facts.fields import not_shown
from validation.facts.gpu import Gpu, GpuInventory, NvLink
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import lines, word

TOOL = "nvidia-smi nvlink -s"
HEADER = re.compile(r"^GPU (\d+): (.+?)(?: \(UUID: (\S+)\)(?P<more> .*)?)?$")
_LINK = re.compile(r"^Link (\d+): (?:(\d+(?:\.\d+)?) GB/s|<inactive>)$", re.IGNORECASE)
_ALL_DOWN = re.compile(r"all links are inactive", re.IGNORECASE)
_NONE = re.compile(r"does not have or support nvlink|nvlink (?:is )?not supported", re.IGNORECASE)
_MIG = re.compile(r"nvlink queries are not supported|not supported for devices in mig mode", re.IGNORECASE)
# Links that ``nvlink -s`` lists for a board, up or down. Fewer lines than that are a text cut short.
# Source: captures of drivers 460 to 590, and facts on boards (V100 6, A100 12, the others 18), 2026-08.
_SLOTS = (
    ("V100-SXM", 6),
    ("A100-SXM", 12),
    *((name, 18) for name in ("H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200", "NVIDIA GB200", "NVIDIA GB300")),
)
DOTS = re.compile(r"^\[?(?:\.{3,}|…)\]?$")  # a paste with its middle left out
_MIG_DEVICE = re.compile(r"^\s*MIG .*Device\s+\d+:")


def parse(text: str) -> GpuInventory:
    """GPUs with name, UUID and links. ``omitted`` names what the text itself says it left out: rows of dots.

    ``nvlinks`` is empty where the driver says that all links are inactive, NOT_APPLICABLE where the board has none,
    COULD_NOT_LOOK where the driver refuses (MIG). Raises ParseError where a GPU has neither links nor such a sentence.
    """
    found: dict[int, Gpu] = {}
    links: dict[int, list[NvLink] | Missing] = {}
    omitted: list[str] = []
    current = -1
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        header = HEADER.match(stripped)
        if header:
            current = _header(found, header, number)
        if DOTS.match(stripped):
            omitted.append(f"line {number} says that lines were left out")
            continue
        rest = (header["more"] or "").strip() if header else stripped
        if rest and not _MIG_DEVICE.match(line):
            _note(links, current, rest, number)
    if not found:
        raise ParseError(TOOL, 1, "no line 'GPU N: NAME'")
    gpus = [replace(one, nvlinks=_links(one, links, whole=not omitted)) for _, one in sorted(found.items())]
    if not omitted:
        _same_length(gpus)
    lost = tuple(fault.gpu or fault.text for fault in driver_fault.find(text, TOOL) if fault.kind == "gpu-lost")
    omitted = omitted or list(not_shown([gpu.index for gpu in gpus], lost))
    return GpuInventory(source="nvlink-s", gpus=tuple(gpus), lost=lost, omitted=tuple(omitted))


def _header(found: dict[int, Gpu], header: re.Match[str], number: int) -> int:
    index = int(header[1])
    if index in found:
        raise ParseError(TOOL, number, f"GPU {index} is listed twice")
    found[index] = Gpu(index=index, name=word(header[2]), uuid=word(header[3]))
    return index


def _links(gpu: Gpu, links: dict[int, list[NvLink] | Missing], *, whole: bool) -> tuple[NvLink, ...] | Missing:
    """The links of one GPU, or why it has none; of a text that is not whole, those that are shown."""
    value = links.get(gpu.index)
    if value is None:
        if whole:
            raise ParseError(TOOL, 0, f"GPU {gpu.index}: neither links nor a reason; the text is cut short")
        return ABSENT
    if isinstance(value, Missing):
        return value
    return _numbered(gpu, value) if whole else tuple(value)


def _note(links: dict[int, list[NvLink] | Missing], current: int, line: str, number: int) -> None:
    """One line below a GPU's header: a link, or the driver's sentence on why there are none to list."""
    match = _LINK.match(line)
    if current < 0:
        if match:
            raise ParseError(TOOL, number, "a link before any GPU: the text's beginning is missing")
        return
    if match:
        entry = links.setdefault(current, [])
        if isinstance(entry, Missing):
            raise ParseError(TOOL, number, f"GPU {current}: a link after {entry.text!r}")
        rate = float(match[2]) if match[2] else ABSENT
        entry.append(NvLink(index=int(match[1]), active=match[2] is not None, rate_gbps=rate))
    elif _ALL_DOWN.search(line):
        links.setdefault(current, [])
    elif _NONE.search(line):
        links.setdefault(current, Missing(Reason.NOT_APPLICABLE, line))
    elif _MIG.search(line):
        links.setdefault(current, Missing(Reason.COULD_NOT_LOOK, line))
    elif driver_fault.find(line, TOOL):
        links.setdefault(current, Missing(Reason.FAULT, line))
    else:
        raise ParseError(TOOL, number, f"GPU {current}: {line[:80]!r} is neither a link nor a known sentence")


def _numbered(gpu: Gpu, links: list[NvLink]) -> tuple[NvLink, ...]:
    """The links by number. The driver lists all of a board, from 0 without a gap; anything less is a cut text."""
    indices = [link.index for link in links]
    if indices != list(range(len(indices))):
        raise ParseError(TOOL, 0, f"{gpu.label}: links {indices} are not numbered 0 to {len(indices) - 1}")
    slots = next((count for part, count in _SLOTS if part in str(gpu.name)), 0)
    if links and len(links) < slots:
        raise ParseError(TOOL, 0, f"{gpu.label}: {len(links)} links listed; a {gpu.name} lists {slots}: cut short")
    return tuple(links)


def _same_length(gpus: list[Gpu]) -> None:
    """GPUs of one model list the same number of links; a shorter one ends where the text was cut."""
    longest: dict[str, int] = {}
    for gpu in gpus:
        if not isinstance(gpu.nvlinks, Missing) and gpu.nvlinks:
            longest[str(gpu.name)] = max(longest.get(str(gpu.name), 0), len(gpu.nvlinks))
    for gpu in gpus:
        count = 0 if isinstance(gpu.nvlinks, Missing) else len(gpu.nvlinks)
        if 0 < count < longest[str(gpu.name)]:
            raise ParseError(
                TOOL, 0, f"{gpu.label}: {count} links listed, {longest[str(gpu.name)]} on others: cut short"
            )
