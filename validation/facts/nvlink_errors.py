"""``nvidia-smi nvlink -e``: error counters of each NVLink since the driver was loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.missing import Missing, Reason
from validation.facts.nvlink import DOTS, HEADER
from validation.facts.text import lines

TOOL = "nvidia-smi nvlink -e"
_COUNTER = re.compile(r"^Link (\d+): (.+?)(?:: | )(\d+|N/A|\[?Not Supported\]?)$")
# Blackwell also prints error rates: "Link 0: Effective BER: 15e-255". They are no counts.
_RATE = re.compile(r"^Link (\d+): (.*\bBER)(?:: | )(\S+)$")
_SENTENCE = re.compile(
    r"does not have or support nvlink|not supported for devices in mig mode|all links are inactive", re.I
)


@dataclass(frozen=True)
class LinkErrors:
    """One counter of one link; ``name`` as the driver prints it ("CRC Errors")."""

    gpu: int
    link: int
    name: str
    count: int


@dataclass(frozen=True)
class NvLinkErrors:
    """Every counter. ``without`` maps a GPU that prints none to the driver's word or sentence on why.

    ``omitted`` names what the text itself says it left out: rows of dots.
    """

    gpus: tuple[int, ...]
    counters: tuple[LinkErrors, ...]
    without: tuple[tuple[int, Missing], ...] = ()
    omitted: tuple[str, ...] = ()


def parse(text: str) -> NvLinkErrors:
    """Raises ParseError where a GPU has neither counters nor a sentence, or its links have unequal sets of counters."""
    gpus: list[int] = []
    cells: list[tuple[int, int, str, str]] = []
    without: dict[int, Missing] = {}
    omitted: list[str] = []
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        header, cell = HEADER.match(stripped), _COUNTER.match(stripped) or _RATE.match(stripped)
        if header:
            gpus.append(int(header[1]))
        elif cell and gpus:
            cells.append((gpus[-1], int(cell[1]), cell[2].rstrip(":"), cell[3]))
        elif _SENTENCE.search(stripped) and gpus:
            reason = Reason.COULD_NOT_LOOK if "mig" in stripped.lower() else Reason.NOT_APPLICABLE
            without[gpus[-1]] = Missing(reason, stripped)
        elif DOTS.match(stripped):
            omitted.append(f"line {number} says that lines were left out")
        elif stripped and not stripped.startswith("$"):
            why = "a counter before any GPU: the text's beginning is missing"
            raise ParseError(TOOL, number, why if cell else f"{stripped[:80]!r} is neither a GPU nor a counter")
    if not gpus:
        raise ParseError(TOOL, 1, "no line 'GPU N: NAME'")
    if not omitted:
        _check(gpus, cells, set(without))
    counters = tuple(LinkErrors(gpu, link, name, int(value)) for gpu, link, name, value in cells if value.isdigit())
    for gpu in {gpu for gpu, *_ in cells} - {item.gpu for item in counters}:
        without[gpu] = Missing(Reason.NOT_APPLICABLE, next(value for at, _, _, value in cells if at == gpu))
    told = tuple(sorted(without.items(), key=lambda pair: pair[0]))
    return NvLinkErrors(tuple(gpus), counters, told, tuple(omitted))


def _check(gpus: list[int], cells: list[tuple[int, int, str, str]], without: set[int]) -> None:
    for gpu in gpus:
        links: dict[int, set[str]] = {}
        for at, link, name, _ in cells:
            if at == gpu:
                links.setdefault(link, set()).add(name)
        if not links and gpu not in without:
            raise ParseError(TOOL, 0, f"GPU {gpu}: neither counters nor a reason; the text is cut short")
        if len({frozenset(names) for names in links.values()}) > 1:
            raise ParseError(TOOL, 0, f"GPU {gpu}: not every link has the same counters; the text is cut short")
