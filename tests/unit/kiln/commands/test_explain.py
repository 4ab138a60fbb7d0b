from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from kiln.__main__ import main

XID = "[  100.0] NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
NVCC = """\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Tue_Oct_29_23:50:19_PDT_2024
Cuda compilation tools, release 12.6, V12.6.85
Build cuda_12.6.r12.6/compiler.35059454_0
"""


def explain(monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return main(["explain", "-", *words])


def test_a_fault_is_1_and_is_told_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(monkeypatch, XID) == 1
    text = capsys.readouterr().out
    assert text.startswith("kernel log (kernel-log): FAIL\n")
    assert "FAIL  0000:05:00.0  kernel.xid  [" in text
    assert "      -> " in text


def test_what_is_only_read_is_0_and_says_what_would_judge_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(monkeypatch, NVCC) == 0
    text = capsys.readouterr().out
    assert "versions: nvcc 12.6.85" in text
    assert "Not judged\n  needs what the stack asked for (kiln check, kiln validate): cuda.toolkit" in text


@pytest.mark.parametrize("text", ["", "hello\n"])
def test_what_is_not_recognised_is_3(
    monkeypatch: pytest.MonkeyPatch, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(monkeypatch, text) == 3
    assert "UNKNOWN" in capsys.readouterr().out


def test_json_is_one_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(monkeypatch, XID, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert {"schema", "kind", "facts", "findings", "not_judged", "verdict"} <= set(data)
    assert (data["kind"], data["verdict"]) == ("kernel-log", "FAIL")


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--kind", "bogus"], "--kind: found 'bogus'"), (["--profile", "p99.bogus"], "--profile: found 'p99.bogus'")],
)
def test_an_unknown_kind_or_profile_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(monkeypatch, NVCC, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_a_file_is_read_by_name_and_a_missing_one_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dmesg.txt").write_text(XID)
    assert main(["explain", str(tmp_path / "dmesg.txt")]) == 1
    assert main(["explain", str(tmp_path / "nothing")]) == 2
    assert "nothing: cannot be read" in capsys.readouterr().err


def test_a_table_without_header_is_read_by_the_fields_that_were_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{index}, NVIDIA H100 80GB HBM3, 00000000:{bus}:00.0\n" for index, bus in ((0, "53"), (1, "64")))
    table = tmp_path / "gpus.csv"
    table.write_text(rows)
    assert main(["explain", str(table), "--kind", "nvidia-smi-csv"]) == 3
    assert "--fields" in capsys.readouterr().out
    assert main(["explain", str(table), "--fields", "index,name,pci.bus_id", "--json"]) == 0
    gpus = json.loads(capsys.readouterr().out)["facts"]["GpuInventory"]["gpus"]
    assert [(gpu["index"], gpu["pci_address"]) for gpu in gpus] == [(0, "0000:53:00.0"), (1, "0000:64:00.0")]
    assert main(["explain", str(table), "--fields", "index,name"]) == 3
    assert "3 cells under 2 columns" in capsys.readouterr().out
