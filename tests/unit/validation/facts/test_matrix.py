"""Matrices as drivers 535 and 550 end their lines: with a tab that is no column."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import topo_p2p

ENDED = " \t\x1b[4mGPU0\tGPU1\t\x1b[0m\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\nLegend:\n"


def test_a_tab_at_the_end_of_each_line_is_no_column() -> None:
    assert topo_p2p.parse(ENDED).status == {(0, 1): "CNS", (1, 0): "CNS"}


def test_a_single_gpu_is_a_matrix_without_a_pair() -> None:
    matrix = topo_p2p.parse(" \t\x1b[4mGPU0\t\x1b[0m\n GPU0\tX\t\n")
    assert (matrix.gpus, matrix.status) == ((0,), {})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (" GPU0\tX\t\t\n", "is no link"),
        (" GPU0\tX\t\n", "is no link"),
        (" GPU0\tX\tCNS\tCNS\t\n", "4 cells under 2 columns"),
    ],
)
def test_a_cell_that_is_gone_or_too_many_is_not_taken_for_that_tab(row: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        topo_p2p.parse(ENDED.replace(" GPU0\tX\tCNS\t\n", row))
