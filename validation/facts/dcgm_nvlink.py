"""``dcgmi nvlink``: the NVLinks of each GPU, one letter a link (``-s``), and the error counters of one GPU (``-e``).

Formats: NVIDIA/DCGM dcgmi/Nvlink.cpp, read from 2.4 to 4.6.0 (2026-07), and runs of users.
"""

from __future__ import annotations

import json
import re

from profiles.errors import ParseError
from validation.facts.dcgm import closed
from validation.facts.gpu import Gpu, GpuInventory, NvLink
from validation.facts.missing import Missing, Reason
from validation.facts.nvlink_errors import LinkErrors, NvLinkErrors
from validation.facts.text import clean, lines

TOOL = "dcgmi nvlink"
_SIGN = re.compile(r"^\s+gpuId \d+:\s*$|NVLINK Error Counts", re.M)
ERRORS = "NVLINK Error Counts"
_GPU = re.compile(r"^\s*gpuId (\d+):\s*$")
_LINKS = re.compile(r"^\s*([UDX_](?: [UDX_])*)\s*$")
_END = re.compile(r"^\s*(?:Key:|NvSwitches:)")
_ROW = re.compile(r"^\|(?P<name>[^|]*)(?:\|(?P<value>[^|]*))?\|\s*$")
_LINK = re.compile(r"^Link (\d+)$")
_ID = re.compile(r"^GPU (\d+)$")
_RATE = re.compile(r"\bBER$")  # an error rate is no count


def is_it(text: str) -> bool:
    """Told by a GPU of the states, or the name of the counters."""
    return _SIGN.search(text) is not None


def parse(text: str) -> GpuInventory | NvLinkErrors:
    """The states, or the counters."""
    return _errors(text) if ERRORS in text else _states(text)


def _states(text: str) -> GpuInventory:
    """Up is active; Down and Disabled are not; a link that is not supported is left out.

    Raises ParseError where a GPU has no line of letters, or the closing key is missing: the text is cut short.
    """
    found: dict[int, tuple[NvLink, ...] | Missing] = {}
    current, ended = -1, False
    for number, line in enumerate(lines(text), start=1):
        gpu, links = _GPU.match(line), _LINKS.match(line)
        if gpu and not ended:
            if current >= 0:
                raise ParseError(TOOL, number, f"gpuId {current}: no links")
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


def _errors(text: str) -> NvLinkErrors:
    """Raises ParseError where links have unequal sets of counters, or the table does not end: the text is cut short."""
    gpu, cells = _json_cells(text) if clean(text).lstrip().startswith("{") else _table_cells(text)
    sets = {link: frozenset(name for at, name, _ in cells if at == link) for link, _, _ in cells}
    if not cells or len(set(sets.values())) > 1:
        raise ParseError(TOOL, 0, f"GPU {gpu}: no counters, or not the same ones for every link; the text is cut short")
    counters = tuple(
        LinkErrors(gpu, link, f"{name}s" if name.endswith(" Error") else name, int(value))  # as nvidia-smi names them
        for link, name, value in cells
        if value.isdigit() and not _RATE.search(name)
    )
    if counters:
        return NvLinkErrors((gpu,), counters)
    return NvLinkErrors((gpu,), (), ((gpu, Missing(Reason.NOT_APPLICABLE, cells[0][2])),))


def _table_cells(text: str) -> tuple[int, list[tuple[int, str, str]]]:
    gpu, link = -1, -1
    cells = []
    for line in lines(text):
        row = _ROW.match(line)
        if row is None:
            continue
        name, value = row["name"].strip(), (row["value"] or "").strip()
        if match := _ID.match(name):
            gpu = int(match[1])
        elif match := _LINK.match(name):
            link = int(match[1])
        elif name.startswith("-> "):
            cells.append((link, name[3:], value))
    if gpu < 0 or not closed(text):
        raise ParseError(TOOL, 0, "no 'GPU N' in the heading, or no closing rule: the text is cut short")
    return gpu, cells


def _json_cells(text: str) -> tuple[int, list[tuple[int, str, str]]]:
    try:
        data = json.loads(clean(text))
        gpu = next(int(match[1]) for line in data["header"] if (match := _ID.match(line)))
        cells = [
            (int(name.removeprefix("Link ")), counter, str(entry["value"]))
            for name, link in data["body"].items()
            for counter, entry in link["children"].items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole report: {error!r}") from error
    return gpu, cells
