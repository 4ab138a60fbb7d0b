"""``nvidia-smi topo -p2p CAPABILITY``: whether each pair of GPUs can reach the other's memory."""

from __future__ import annotations

import re

from validation.facts.host import P2pMatrix
from validation.facts.matrix import Words, read
from validation.facts.text import lines

TOOL = "nvidia-smi topo -p2p"
# OK; CNS, GNS, TNS: chipset, GPU, topology not supported; NS: not supported; DR: disabled by regkey; U: unknown.
_WORDS = Words("OK", "CNS", "GNS", "TNS", "NS", "DR", "U")
_COMMAND = re.compile(r"topo\s+(?:-p2p|--p2pstatus)\s+([rwnap]+)\b")


def parse(text: str, capability: str = "r") -> P2pMatrix:
    """The whole matrix; legend lines are not read. ``capability`` is used where the text does not echo the command."""
    matrix = read(text, TOOL, _WORDS)
    echoed = next((match[1] for line in lines(text) if (match := _COMMAND.search(line))), capability)
    gpus = tuple(sorted(matrix.gpus))
    return P2pMatrix(
        capability=echoed,
        gpus=gpus,
        status={
            (one, two): matrix.gpus[one].cells[matrix.gpu_columns[two]] for one in gpus for two in gpus if one != two
        },
    )
