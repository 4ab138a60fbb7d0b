"""A paste: every output in it is explained, the worst verdict stands, and no kernel line is passed over."""

from __future__ import annotations

import json

import pytest

from validation.explain_paste import explain_paste
from validation.verdict import Verdict

LIST = "GPU 0: NVIDIA L4 (UUID: GPU-0)\n"
NO_LINKS = f"{LIST}\tDevice does not have or support Nvlink\n"
CSV = "index, uuid, temperature.gpu, ecc.errors.uncorrected.volatile.total\n0, GPU-0, 40, 0\n"
XID = "[  812.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"


def kinds(text: str) -> list[tuple[str, str, Verdict]]:
    return [
        (output.command, output.explanation.kind, output.explanation.verdict) for output in explain_paste(text).outputs
    ]


def test_one_output_is_explained_as_without_the_paste_around_it() -> None:
    document = explain_paste(f"$ nvidia-smi -L\n{LIST}").to_dict()
    assert document["kind"] == "nvidia-smi-l"
    assert "outputs" not in document


def test_several_outputs_are_explained_each_and_the_worst_verdict_stands() -> None:
    text = f"```\n$ nvidia-smi -L\n{LIST}```\n$ nvidia-smi nvlink -s\n{NO_LINKS}$ dmesg | grep Xid\n{XID}"
    assert [(command, kind) for command, kind, _ in kinds(text)] == [
        ("nvidia-smi -L", "nvidia-smi-l"),
        ("nvidia-smi nvlink -s", "nvlink-s"),
        ("dmesg | grep Xid", "kernel-log"),
    ]
    found = explain_paste(text)
    assert found.verdict is Verdict.FAIL
    document = found.to_dict()
    assert [output["kind"] for output in document["outputs"]] == ["nvidia-smi-l", "nvlink-s", "kernel-log"]
    assert json.loads(json.dumps(document)) == document


def test_a_kernel_line_inside_another_output_is_judged_all_the_same() -> None:
    assert kinds(CSV)[0][2] is Verdict.PASS
    assert [(kind, verdict) for _, kind, verdict in kinds(CSV + XID)][-1] == ("kernel-log", Verdict.FAIL)


@pytest.mark.parametrize("wrap", ["    {}", "> {}", "    # {}"])
def test_an_indented_or_quoted_output_is_read(wrap: str) -> None:
    text = "\n".join(wrap.format(line) for line in NO_LINKS.splitlines())
    assert kinds(text)[0][1:] == ("nvlink-s", Verdict.NOT_APPLICABLE)


@pytest.mark.parametrize("wrap", ["\ufeff{}", "> {}", "\x1b[4m{}\x1b[0m", "{}\nops@n1:~$ "])
def test_two_commands_are_two_outputs_however_the_paste_was_made(wrap: str) -> None:
    text = f"$ nvidia-smi -L\n{LIST}$ nvidia-smi nvlink -s\n{NO_LINKS}"
    pasted = "\n".join(wrap.format(line) for line in text.splitlines()) if wrap.startswith((">", "\x1b")) else ""
    assert kinds(pasted or wrap.format(text)) == kinds(text)
    assert [kind for _, kind, _ in kinds(text)] == ["nvidia-smi-l", "nvlink-s"]


def test_two_tables_in_a_row_are_two_outputs() -> None:
    text = f"{CSV}\nindex, name\n0, NVIDIA L4\n"
    assert [kind for _, kind, _ in kinds(text)] == ["nvidia-smi-csv", "nvidia-smi-csv"]


def test_what_nothing_known_prints_is_said_and_does_not_hide_the_rest() -> None:
    (output,) = explain_paste(f"$ nvidia-smi -L\n{LIST}$ ls -l\ntotal 0\n").outputs
    assert any("'ls -l'" in item.needs for item in output.explanation.not_judged)


def test_a_text_that_nobody_knows_is_unknown() -> None:
    (output,) = explain_paste("$ nvidia-smi frobnicate\nhello\n").outputs
    assert (output.explanation.kind, output.explanation.verdict) == ("unknown", Verdict.UNKNOWN)


def test_a_cut_output_stays_unknown_however_it_is_read() -> None:
    (output,) = explain_paste(f"$ nvidia-smi nvlink -s\n{LIST}\tLink 0: 26.562 GB/s\n\tLink 2: 26.562 GB/s\n").outputs
    assert output.explanation.verdict is Verdict.UNKNOWN


def test_behind_a_filter_that_leaves_nothing_known_the_filter_is_blamed() -> None:
    (output,) = explain_paste("$ nvidia-smi -q | grep Recovery\n    GPU Recovery Action : None\n").outputs
    (finding,) = output.explanation.findings
    assert finding.remedy == "Show what it prints without the filter: nvidia-smi -q"


def test_a_filtered_section_is_told_and_the_filter_is_blamed() -> None:
    text = "$ nvidia-smi -q | grep -A2 Remapped\n    Remapped Rows\n        Correctable Error  : 0\n"
    (output,) = explain_paste(text).outputs
    assert (output.explanation.kind, output.explanation.verdict) == ("nvidia-smi-q", Verdict.UNKNOWN)
    assert [finding.remedy for finding in output.explanation.findings] == [
        "Show what it prints without the filter: nvidia-smi -q"
    ]


def test_a_warning_below_an_indented_list_does_not_hide_the_list() -> None:
    text = "".join(f"    {line}\n" for line in (LIST.strip(), "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"))
    assert kinds(text) == [("", "nvidia-smi-l", Verdict.FAIL)]


def test_of_two_outputs_in_a_row_the_one_that_can_be_read_is() -> None:
    text = "0, GPU-0, 3 MiB\n\ngpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-0, 41, python, 3 MiB\n"
    assert kinds(text) == [("", "nvidia-smi-csv", Verdict.UNKNOWN), ("", "nvidia-smi-apps", Verdict.NOT_APPLICABLE)]
