from __future__ import annotations

from typing import Any

import pytest

from kiln import facts_view


@pytest.mark.parametrize(
    ("fact", "rows"),
    [
        (
            {"version": "12.6", "open": True, "rate": 26.5, "nics": []},
            ["version: 12.6", "open: yes", "rate: 26.5", "nics: none"],
        ),
        ({"cpus": [0, 1, 2, 3, 8, 10, 11]}, ["cpus: 0-3 8 10-11"]),
        ({"ecc": {"missing": "not applicable", "text": "N/A"}}, ["ecc: not applicable (N/A)"]),
        ({"ecc": {"missing": "absent", "text": ""}}, ["ecc: absent"]),
        ({"versions": {"nvcc": "12.6.85"}}, ["versions: nvcc 12.6.85"]),
        ({"links": {f"0-{n}": "NV18" for n in range(7)} | {"1-2": "SYS"}}, ["links: NV18 (7 entries); SYS (1-2)"]),
        ({"links": {}}, []),
        ("text", ["text"]),
    ],
)
def test_a_fact_is_told_in_short(fact: Any, rows: list[str]) -> None:
    assert facts_view.lines({"Fact": fact}) == ["Fact", *(f"  {row}" for row in rows)]


def test_what_all_items_share_is_said_once_and_what_differs_is_named() -> None:
    links = [{"index": n, "active": True} for n in range(18)]
    gpus = [
        {"index": n, "label": f"GPU{n}", "name": "H100", "serial": n, "ecc": {"on": True}, "nvlinks": links}
        for n in (0, 1)
    ]
    assert facts_view.lines({"Gpus": {"gpus": gpus}}) == [
        "Gpus",
        "  gpus: 2",
        "    all: name H100, ecc.on yes, nvlinks 18 (active yes)",
        "    GPU0: serial 0",
        "    GPU1: serial 1",
    ]


def test_a_fact_cannot_write_escape_codes_or_lines() -> None:
    assert facts_view.lines({"F": {"a": "\x1b[2J\nb"}}) == ["F", "  a: \\x1b[2J b"]
