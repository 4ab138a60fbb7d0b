"""``nvidia-smi topo -m``: how each pair of GPUs is connected, and to which CPUs and NUMA node each GPU belongs."""

from __future__ import annotations

import re

from validation.facts.host import Pair, Topology
from validation.facts.matrix import AFFINITY, GPU_LABEL, Matrix, Row, Words, read
from validation.facts.missing import ABSENT, Missing, Reason, sentinel
from validation.facts.text import cpu_list, lines

TOOL = "nvidia-smi topo -m"
# SOC and PSB: what old drivers print for SYS and for a switch on the board. ICN and a number: the T-Head PPU's own
# interconnect. Unknown: what nvidia-smi 470 and 535 print for a level that they have no word for.
_WORDS = Words(
    r"NV\d+", r"ICN\d+", "PIX", "PXB", "PHB", "PSB", "NODE", "SYS", "SOC", "C2C", "N/A", "Unknown"
)  # fmt: skip
UNTOLD = ("N/A", "Unknown")
_LEGEND = re.compile(r"^\s*(NIC\d+):\s*(\S+)")
_MASK = re.compile(r"^0x[0-9a-fA-F]{1,2048}(?:,[0-9a-fA-F]{8}){0,255}$")
_CPU_NUMBERS = 6  # what nvidia-smi 470 and 535 print of a CPU list at most: "0,2,4,6,8,10" of 32 CPUs


def parse(text: str) -> Topology:
    """The whole matrix. Raises ParseError where a row, a column or a label is missing, cut or run together."""
    matrix = read(text, TOOL, _WORDS)
    gpus = tuple(sorted(matrix.gpus))
    links: dict[Pair, str] = {
        (one, two): matrix.gpus[one].cells[matrix.gpu_columns[two]] for one in gpus for two in gpus if one != two
    }
    nic_columns = [at for at, name in enumerate(matrix.columns) if name not in AFFINITY and not GPU_LABEL.match(name)]
    legend = {match[1]: match[2] for line in lines(text) if (match := _LEGEND.match(line))}
    return Topology(
        gpus=gpus,
        links=links,
        cpu_affinity={index: _cpus(matrix, row) for index, row in matrix.gpus.items()},
        numa={index: _node(matrix, row) for index, row in matrix.gpus.items()},
        nics=tuple(legend.get(matrix.columns[at], matrix.columns[at]) for at in nic_columns),
        nic_links={(gpu, nic): matrix.gpus[gpu].cells[at] for gpu in gpus for nic, at in enumerate(nic_columns)},
    )


def _cell(matrix: Matrix, row: Row, label: str) -> str | Missing:
    if label not in matrix.columns:
        return ABSENT
    if not matrix.affinity:
        return Missing(Reason.COULD_NOT_LOOK, "an empty cell, and no tabs to tell which")
    printed = row.cells[matrix.columns.index(label)]
    found = sentinel(printed)
    return printed if found is None else found


def _cpus(matrix: Matrix, row: Row) -> frozenset[int] | Missing:
    """The CPUs near the GPU; Missing where the tool has cut the list, or may have."""
    printed = _cell(matrix, row, AFFINITY[0])
    if isinstance(printed, Missing):
        return printed
    if _MASK.match(printed):
        mask = int(printed.replace(",", ""), 16)
        return frozenset(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)
    if len(re.findall(r"\d+", printed)) >= _CPU_NUMBERS:
        return Missing(Reason.COULD_NOT_LOOK, f"{printed}: nvidia-smi prints {_CPU_NUMBERS} numbers of a list")
    return cpu_list(printed, TOOL, row.line)


def _node(matrix: Matrix, row: Row) -> int | Missing:
    """The NUMA node. A range (``0-1``) says that the platform does not tell where the GPU is: not a node."""
    printed = _cell(matrix, row, AFFINITY[1])
    if isinstance(printed, Missing):
        return printed
    nodes = cpu_list(printed, TOOL, row.line)
    return next(iter(nodes)) if len(nodes) == 1 else Missing(Reason.COULD_NOT_LOOK, printed)
