from __future__ import annotations

from typing import Any

import pytest

from kiln import facts_view

PAIRS = {
    f"{one}-{two}": "NV18" if {one, two} != {1, 2} else "SYS" for one in range(3) for two in range(3) if one != two
}
LONG = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus. " * 2


@pytest.mark.parametrize(
    ("fact", "rows"),
    [
        ({"version": "12.6", "open": True, "rate": 26.5, "nics": []}, ["version: 12.6", "open: yes", "rate: 26.5"]),
        ({"cpus": [0, 1, 2, 3, 8, 10, 11]}, ["cpus: 0-3 8 10-11"]),
        ({"ecc": {"missing": "not applicable", "text": "N/A"}}, ["ECC: not applicable (N/A)"]),
        ({"ecc": {"missing": "absent", "text": ""}}, ["ECC: absent"]),
        ({"versions": {"nvcc": "12.6.85"}}, ["versions: nvcc 12.6.85"]),
        ({"links": {f"0-{n}": "NV18" for n in range(7)} | {"1-2": "SYS"}}, ["links: NV18 (7 entries); SYS (1-2)"]),
        (
            {"links": PAIRS},
            ["links:", "     0     1     2", "  0  -     NV18  NV18", "  1  NV18  -     SYS", "  2  NV18  SYS   -"],
        ),
        ({"links": {}}, []),
        ("text", ["text"]),
    ],
)
def test_a_fact_is_told_in_short(fact: Any, rows: list[str]) -> None:
    assert facts_view.lines({"Fact": fact}) == ["Fact", *(f"  {row}" for row in rows)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memory_total_mib", "memory total (MiB)"),
        ("rate_gbps", "rate (GB/s)"),
        ("rate_gbit_s", "rate (Gbit/s)"),
        ("read_bytes_s", "read (bytes/s)"),
        ("ecc.enabled", "ECC enabled"),
        ("c", "c"),
    ],
)
def test_a_field_is_named_in_words_with_its_unit(name: str, words: str) -> None:
    assert facts_view.words(name) == words


def test_the_kind_of_a_fact_is_its_heading() -> None:
    assert [facts_view.title(name) for name in ("GpuInventory", "NumaMap", "Topology", "P2pMatrix")] == [
        "GPU inventory",
        "NUMA map",
        "Topology",
        "P2P matrix",
    ]


def test_what_all_items_share_is_said_once_and_what_differs_is_a_table() -> None:
    links = [{"index": n, "active": True} for n in range(18)]
    none = {"missing": "not applicable", "text": "N/A"}
    gpus = [
        {
            "index": n,
            "label": f"GPU{n}",
            "name": "H100",
            "serial": n,
            "ecc": {"on": True},
            "fan": none,
            "nvlinks": links,
        }
        for n in (0, 1)
    ]
    assert facts_view.lines({"Gpus": {"gpus": gpus}}) == [
        "GPUs",
        "  GPUs: 2",
        "    all: name H100, NVLinks 18 (active yes)",
        "    ECC: on yes",
        "    not applicable: fan",
        "          serial",
        "    GPU0  0",
        "    GPU1  1",
    ]


def test_more_columns_than_the_width_takes_are_a_second_table() -> None:
    items = [{"name": f"GPU{n}", **{f"field{at}": f"{n}" * 40 for at in range(3)}} for n in (0, 1)]
    rows = facts_view.lines({"F": {"items": items}})
    assert [row.split()[0] for row in rows[2:]] == ["field0", "GPU0", "GPU1", "field2", "GPU0", "GPU1"]
    assert max(map(len, rows)) <= facts_view.WIDTH + 4


def test_the_lines_of_a_log_are_wrapped_and_named_by_their_number() -> None:
    rows = facts_view.lines({"Log": {"events": [{"line": n, "text": f"{n} {LONG}"} for n in (3, 9)]}})
    assert [row for row in rows if not row.startswith("      ")][2:] == [
        row for row in rows if row.startswith(("    line 3: ", "    line 9: "))
    ]
    assert len([row for row in rows if row.startswith("    line ")]) == 2
    assert max(map(len, rows)) <= facts_view.WIDTH + 4


def test_a_long_list_is_cut_and_says_so() -> None:
    rows = facts_view.lines({"F": {"items": [{"index": n, "value": n} for n in range(100)]}})
    assert rows[-1] == "    and 60 more, all of them in --json"


def test_a_fact_cannot_write_escape_codes_or_lines() -> None:
    assert facts_view.lines({"F": {"a": "\x1b[2J\nb"}}) == ["F", "  a: \\x1b[2J b"]
    item = {"name": "\x1b[1mx", "v\x07": "\r\n1"}
    shown = "\n".join(facts_view.lines({"F": {"items": [item, {"name": "y", "v\x07": "2"}]}}))
    assert not {"\x1b", "\x07", "\r"} & set(shown)
