"""Texts of any size and depth: read in time that grows with the text, or refused in one short line."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.explain import explain
from validation.facts import lspci
from validation.verdict import Verdict

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        '{"device_count": 1, "devices": ' + DEEP,
        '{"blockdevices": ' + DEEP,
        '{"lscpu": [{"field": ' + DEEP,
        '{"fio version": "fio-3.28", "jobs": ' + DEEP,
        '{"DCGM Diagnostic": ' + DEEP,
        '/usr/local/cuda-12.6/version.json:{"cuda": ' + DEEP,
    ],
)
def test_a_document_nested_without_end_is_no_document(text: str) -> None:
    explanation = explain(text)
    assert explanation.verdict is Verdict.UNKNOWN
    assert len(explanation.findings[0].message) < 600


def test_a_long_list_that_is_wrong_is_told_in_a_short_message() -> None:
    explanation = explain("GPU 0: NVIDIA H100 (UUID: GPU-1)\n" * 5_000)
    assert explanation.verdict is Verdict.UNKNOWN
    assert len(explanation.findings[0].message) < 600


def test_a_bus_of_many_functions_is_read_in_linear_time() -> None:
    row = "{:02x}:{:02x}.{} 3D controller [0302]: NVIDIA [10de:2330] (rev a1)\n"
    text = "".join(row.format(n % 256, n // 256 % 32, n // 8192 % 8) for n in range(20_000))
    assert len(lspci.parse(text).devices) == 20_000
    with pytest.raises(ParseError, match=r"listed twice: 0000:00:00\.0"):
        lspci.parse(text + "00:00.0 3D controller [0302]: NVIDIA [10de:2330] (rev a1)\n")


def test_a_table_of_thousands_of_gpus_is_told_as_any_other() -> None:
    rows = "".join(f"{n}, NVIDIA H100 80GB HBM3, GPU-{n}, 0\n" for n in range(3_000))
    text = f"index, name, uuid, ecc.errors.uncorrected.volatile.total\n{rows}"
    assert "ecc.uncorrected" in {finding.check for finding in explain(text).findings}


@pytest.mark.parametrize(
    "text",
    [
        "GPU 00000000:01:00.0\n    a" + " " * 50_000 + "b\n",
        "NVIDIA-SMI version : " + "1" * 50_000 + " " * 50_000 + "x\n",
        "proc'd: 1 (1 Gflop/s)\n" + "1" * 50_000,
        "NVRM: " * 8_000,
        "\n" * 100_000,
        " \n" * 100_000,
        "\r" * 100_000,
        "\x1c" * 100_000,
        "1%  proc'd: 1 (1 Gflop/s)  errors: " + "0 - errors: " * 20_000,
        " " * 100_000 + "x\n",
        "\r" * 100_000 + "\nx\n",
        "\xa0" * 100_000 + "\nx\n",
        "00:00:" * 20_000,
        "00:00.0 x\n" + " " * 100_000 + "x\n",
        "NUMA node0 CPU(s): " + " " * 100_000 + "x\n",
        "CPU op-mode(s):\n" + " " * 100_000 + "x\n",
        "available: 1 nodes (0)\nnode 0 cpus: " + "1" * 50_000 + "\n",
        "|   0  " + "a " * 50_000,
        "index" + " " * 50_000 + "name, uuid\n",
        "index, " + "[" * 50_000,
        "GPU " + "9" * 5_000 + ": NVIDIA H100 (UUID: GPU-0)\n",
    ],
)
def test_an_endless_line_is_read_or_refused_in_time(text: str) -> None:
    assert explain(text).verdict is Verdict.UNKNOWN  # a pattern that backtracks would take minutes here
