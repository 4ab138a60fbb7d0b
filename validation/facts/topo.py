"""``nvidia-smi topo -m``: how each pair of GPUs is connected, and to which CPUs and NUMA node each GPU belongs."""

from __future__ import annotations

import re

from validation.facts.host import Pair, Topology
from validation.facts.matrix import AFFINITY, GPU_LABEL, Matrix, Row, read
from validation.facts.missing import ABSENT, Missing, Reason, sentinel
from validation.facts.text import cpu_list, lines

TOOL = "nvidia-smi topo -m"
# Old drivers print SOC for SYS; ICN and a number is the T-Head PPU's own interconnect.
_CELL = re.compile(r"^(?:NV\d+|ICN\d+|PIX|PXB|PHB|NODE|SYS|SOC|C2C|N/A)$")
_LEGEND = re.compile(r"^\s*(NIC\d+):\s*(\S+)\s*$")


def parse(text: str) -> Topology:
    """The whole matrix. Raises ParseError where a row, a column or a label is missing, cut or run together."""
    matrix = read(text, TOOL, _CELL)
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


def _cell(matrix: Matrix, row: Row, label: str) -> str | None:
    return row.cells[matrix.columns.index(label)] if label in matrix.columns else None


def _cpus(matrix: Matrix, row: Row) -> frozenset[int] | Missing:
    printed = _cell(matrix, row, AFFINITY[0])
    if printed is None:
        return ABSENT
    found = sentinel(printed)
    return cpu_list(printed, TOOL, row.line) if found is None else found


def _node(matrix: Matrix, row: Row) -> int | Missing:
    """The NUMA node. A range (``0-1``) says that the platform does not tell where the GPU is: not a node."""
    printed = _cell(matrix, row, AFFINITY[1])
    if printed is None:
        return ABSENT
    found = sentinel(printed)
    if found is not None:
        return found
    nodes = cpu_list(printed, TOOL, row.line)
    return next(iter(nodes)) if len(nodes) == 1 else Missing(Reason.COULD_NOT_LOOK, printed)
