"""Lines as a parallel launcher prints them: each with the label of the rank or the pod that it came from."""

from __future__ import annotations

import re

from validation.facts.text import lines

# mpirun --tag-output: "[1,0]<stdout>:" and, since Open MPI 5, "[prterun-host-99@1,0]<stdout>: ". srun --label: "0: ".
# A log collector stamps a line with its time: "2026-01-05T10:00:00.123Z ".
# MPICH's -prepend-rank puts "[0] " before everything that is printed, in the middle of a line too.
LABEL = (
    r"(?:\[\d{1,4}\](?: |(?=[\s#]))|"
    r"\[[\w.@-]+,\d+(?:,[\w.-]+)?\]<std(?:out|err)>:[ ]?|\d{1,5}: |\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d) )"
)
_LABELS = re.compile(rf"^{LABEL}+")
_RANK = re.compile(r"^\[\d{1,4}\](?=[\s#])")


def unlabelled(text: str) -> list[str]:
    """The cleaned lines without their labels; what is no label stays.

    >>> unlabelled("[1,0]<stdout>:#  Rank  0\\n3: #\\n  16   4  float")
    ['#  Rank  0', '#', '  16   4  float']
    """
    return [_LABELS.sub("", _without_rank(line)) for line in lines(text)]


def _without_rank(line: str) -> str:
    rank = _RANK.match(line)
    return line.replace(rank[0], "").removeprefix(" ") if rank else line
