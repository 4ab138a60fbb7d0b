"""Matrices as drivers print them and as people paste them: tabs that are no column, cells empty or run together."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import topo, topo_p2p
from validation.facts.missing import ABSENT, Missing, Reason

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


LABELS = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"


def shown(*rows: str) -> str:
    return LABELS + "".join(f"{row}\n" for row in rows)


@pytest.mark.parametrize(
    ("first", "second", "cpus", "node"),
    [
        ("0-15\t0\t\tN/A", "0-15\t0\t\tN/A", frozenset(range(16)), 0),  # drivers 535 to 590: two tabs before the last
        ("0-15\t\t\tN/A", "0-15\t\t\tN/A", frozenset(range(16)), ABSENT),  # no NUMA node told
        ("0-15\t\tN/A\t\tN/A", "0-15\t\tN/A\t\tN/A", frozenset(range(16)), Missing(Reason.NOT_APPLICABLE, "N/A")),
        ("\t\t\tN/A", "\t\t\tN/A", ABSENT, ABSENT),  # no CPU either
        ("0x3,00000001\t1\t\t4", "0x3\t1\t\t4", frozenset({0, 32, 33}), 1),  # a mask; GPU memory is a node
        ("0-15\t0-1\t\tN/A", "0-15\t0-1\t\tN/A", frozenset(range(16)), Missing(Reason.COULD_NOT_LOOK, "0-1")),
    ],
)
def test_affinity_cells_are_read_wherever_the_tool_leaves_them_empty(
    first: str, second: str, cpus: object, node: object
) -> None:
    found = topo.parse(shown(f"GPU0\t X \tPHB\t{first}", f"GPU1\tPHB\t X \t{second}"))
    assert (found.cpu_affinity[0], found.numa[0], found.links[0, 1]) == (cpus, node, "PHB")


@pytest.mark.parametrize("cpus", ["0,2,4,6,8,10", "0-3,8-11,16-19"])
def test_a_cpu_list_of_six_numbers_may_be_cut_and_is_no_list(cpus: str) -> None:
    found = topo.parse(f"\tGPU0\tCPU Affinity\nGPU0\t X \t{cpus}\n")
    assert found.cpu_affinity[0] == Missing(Reason.COULD_NOT_LOOK, f"{cpus}: nvidia-smi prints 6 numbers of a list")


def test_blanks_in_place_of_tabs_leave_the_links_and_no_affinity_where_a_cell_is_empty() -> None:
    text = shown("GPU0\t X \tNV4\t0-7\t\tN/A", "GPU1\tNV4\t X \t0-7\t\tN/A").expandtabs(8)
    found = topo.parse(text)
    untold = Missing(Reason.COULD_NOT_LOOK, "an empty cell, and no tabs to tell which")
    assert (found.links[1, 0], found.cpu_affinity[0], found.numa[1]) == ("NV4", untold, untold)
    with pytest.raises(ParseError, match="GPU1: 2 cells under 5 columns"):
        topo.parse(text[: text.rindex("0-7")])


def test_labels_and_cells_that_a_paste_ran_together_come_apart_where_they_fit() -> None:
    text = (
        "GPU0GPU1NIC0  NIC1    NIC2    CPU Affinity\n"
        "GPU0     X      PIX     NODESYS     PHB     0-7\n"
        "GPU1    PIX      X      SYSNODE     PHB     0-7\n"
    )
    found = topo.parse(text)
    assert (found.links[0, 1], found.nics) == ("PIX", ("NIC0", "NIC1", "NIC2"))
    assert found.nic_links == {
        (0, 0): "NODE",
        (0, 1): "SYS",
        (0, 2): "PHB",
        (1, 0): "SYS",
        (1, 1): "NODE",
        (1, 2): "PHB",
    }


def test_labels_run_together_over_rows_that_lack_a_cell_are_named_and_not_shifted() -> None:
    text = "      GPU0 GPU1 NIC8NIC9 CPU Affinity\nGPU0  X  PIX  SYS  0-7\nGPU1 PIX  X   SYS  0-7\n"
    with pytest.raises(ParseError, match="4 cells under 5 columns; the header runs NIC8NIC9 together"):
        topo.parse(text)


def test_rows_that_a_narrow_terminal_broke_are_joined() -> None:
    text = (
        "        GPU0    GPU1    GPU2\n        NIC0    CPU Affinity    NUMA Affinity\n"
        "GPU0     X      NV6     NV6\n    SYS     0-7     0\n"
        "GPU1    NV6      X      NV6\n    SYS     0-7     0\n"
        "GPU2    NV6     NV6      X\n    SYS     8-15    1\n"
        "NIC0    SYS     SYS     SYS\n     X\n"
    )
    found = topo.parse(text)
    assert (set(found.links.values()), found.nics, found.numa) == ({"NV6"}, ("NIC0",), {0: 0, 1: 0, 2: 1})
    with pytest.raises(ParseError, match="no row for GPU"):
        topo.parse(text[: text.index("GPU2    NV6")])


@pytest.mark.parametrize("end", ["```\n", "root@host:~# lspci\n", "Legend:\n", "The pairs are what we ordered.\n"])
def test_what_follows_the_rows_without_a_blank_line_ends_them(end: str) -> None:
    text = shown("GPU0\t X \tSYS\t0-7\t0\t\tN/A", "GPU1\tSYS\t X \t8-15\t1\t\tN/A")
    assert topo.parse(text + end) == topo.parse(text)
    with pytest.raises(ParseError, match=r"no row for GPU \[1\]"):
        topo.parse(text[: text.index("GPU1\tSYS")] + end)


def test_a_second_matrix_in_the_text_is_said_and_neither_is_judged() -> None:
    first = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n\n"
    with pytest.raises(
        ParseError, match=r"line 5: a second matrix begins here \(the first: line 1\); give one at a time"
    ):
        topo.parse(first + ENDED)
    with pytest.raises(ParseError, match="a second matrix"):
        topo_p2p.parse(ENDED + ENDED)


@pytest.mark.parametrize("other", ["GPU0\t X \tCNS\nGPU1\tCNS\t X \n", "> GPU0 GPU1\n> GPU0 X CNS\n> GPU1 CNS X\n"])
def test_rows_of_another_matrix_without_its_header_are_said_and_neither_is_judged(other: str) -> None:
    whole = "\tGPU0\tGPU1\nGPU0\t X \tOK\nGPU1\tOK\t X \n"
    for text in (f"{whole}\n{other}", f"{whole}Next:\n{other}", f"{other}\n{whole}"):
        with pytest.raises(ParseError, match="is a row of another matrix; give one at a time"):
            topo_p2p.parse(text)
    assert topo_p2p.parse(f"GPU0 is on the left\n{whole}\nGPU1 OK, says the operator\n") == topo_p2p.parse(whole)


def test_a_mask_longer_than_any_machine_has_cpus_is_not_read_bit_by_bit() -> None:
    row = "GPU0\t X \t0x" + "f" * 1_000_000
    with pytest.raises(ParseError):
        topo.parse(f"\tGPU0\tCPU Affinity\n{row}\n")


def test_words_of_old_drivers_and_one_that_no_driver_explains_are_kept_as_printed() -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPSB\tSOC\nGPU1\tPSB\t X \tUnknown\nGPU2\tSOC\tN/A\t X \n"
    assert topo.parse(text).links == {
        (0, 1): "PSB", (0, 2): "SOC", (1, 0): "PSB", (1, 2): "Unknown", (2, 0): "SOC", (2, 1): "N/A",
    }  # fmt: skip


def test_a_legend_names_the_network_cards_whatever_stands_behind_the_name() -> None:
    rows = "\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tSYS\nNIC0\tPIX\t X \tSYS\nNIC1\tSYS\tSYS\t X \n\n"
    legend = "NIC Legend:\n\n  NIC0: rdmap16s27\n  NIC1: irdma0  -> ens5 10.1.0.0/24\n"
    assert topo.parse(rows + legend).nics == ("rdmap16s27", "irdma0")


@pytest.mark.parametrize(
    ("command", "capability"),
    [
        ("$ nvidia-smi topo -p2p rw\n", "rw"),
        ("=== topo -p2p n (NVLink)\n", "n"),
        ("topo --p2pstatus a\n", "a"),
        ("", ""),
    ],
)
def test_the_capability_is_what_the_text_says_was_asked_and_none_where_it_does_not(
    command: str, capability: str
) -> None:
    assert topo_p2p.parse(command + ENDED, "").capability == capability
    assert topo_p2p.parse(ENDED).capability == "r"
