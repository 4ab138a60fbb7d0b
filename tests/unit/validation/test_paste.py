"""Pastes are taken apart where commands and fences stand, and nowhere else."""

from __future__ import annotations

import pytest

from validation import paste

LIST = "GPU 0: NVIDIA L4 (UUID: GPU-0)"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("$ nvidia-smi", "nvidia-smi"),
        ("ubuntu@ip-10-0-1-7:~$ sudo nvidia-smi -L", "sudo nvidia-smi -L"),
        ("(base) root@gpu01:/data# nvidia-smi topo -m", "nvidia-smi topo -m"),
        ("[ops@n1 my dir]$ nvidia-smi -q | grep -i license", "nvidia-smi -q | grep -i license"),
        ("### nvidia-smi nvlink -e", "nvidia-smi nvlink -e"),
        ("# $ nvidia-smi --version", "nvidia-smi --version"),
        ("\\# nvidia-smi", "nvidia-smi"),
        ("!nvidia-smi -L", "nvidia-smi -L"),
        ("nvidia-smi:", "nvidia-smi"),
        ("PS C:\\Users\\me> nvidia-smi.exe -q", "nvidia-smi.exe -q"),
        ("kubectl exec -it pod-7 -- nvidia-smi", "kubectl exec -it pod-7 -- nvidia-smi"),
        ("ssh gpu01 dmesg", "ssh gpu01 dmesg"),
        ("dmesg | grep -i xid", "dmesg | grep -i xid"),
    ],
)
def test_a_typed_command_is_told_with_any_prompt(line: str, command: str) -> None:
    assert paste.typed_command(line) == command


@pytest.mark.parametrize(
    "line",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "NVIDIA-SMI version  : 590.48.01",
        "| NVIDIA-SMI 580.1   Driver Version: 580.1  CUDA Version: 13.0 |",
        "nvcc: NVIDIA (R) Cuda compiler driver",
        "nvbandwidth Version: v0.8",
        "stress-ng: info:  [12] dispatching hogs: 8 cpu",
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 16",
        "nvidia-smi shows this on every node of the rack",
        "        Process ID                        : 2203",
        "[  12.3] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028",
        "$ " + "nvidia-smi " * 100,
    ],
)
def test_what_a_tool_prints_is_no_command(line: str) -> None:
    assert paste.typed_command(line) is None


def test_an_output_by_itself_is_one_part_and_unchanged() -> None:
    text = f"\t{LIST}\r\n"
    assert paste.parts("") == (paste.Part("", ""),)
    assert [part.text for part in paste.parts(f"{LIST}\n")] == [f"{LIST}\n"]
    assert next(paste.readings(paste.parts(text)[0])) == f"\t{LIST}\n"


def test_fences_and_commands_part_outputs() -> None:
    text = f"It says:\n```console\n$ nvidia-smi -L\n{LIST}\n```\nand\n~~~\n$ nvidia-smi nvlink -s\n{LIST}\nmore\n~~~\n"
    found = paste.parts(text)
    assert [(part.command, part.text.strip()) for part in found] == [
        ("", "It says:"),
        ("nvidia-smi -L", LIST),
        ("", "and"),
        ("nvidia-smi nvlink -s", f"{LIST}\nmore"),
    ]


def test_a_command_over_several_lines_is_one() -> None:
    text = f"$ kubectl exec -n gpu ds/driver \\\n    -c ctr -- nvidia-smi -L\nDefaulted container x\n\n{LIST}\n"
    (part,) = paste.parts(text)
    assert part.command == "kubectl exec -n gpu ds/driver -c ctr -- nvidia-smi -L"
    assert part.text.strip() == LIST


def test_a_long_query_is_a_command_all_the_same() -> None:
    fields = ",".join(f"clocks_event_reasons.reason_{at}" for at in range(150))
    (part,) = paste.parts(f"$ nvidia-smi --query-gpu={fields} --format=csv,noheader\n0, NVIDIA L4\n")
    assert next(paste.readings(part)) == f"{fields}\n0, NVIDIA L4\n"


def test_what_a_launcher_says_before_the_output_is_not_the_tools() -> None:
    said = "srun: job 4 queued and waiting for resources\nsrun: job 4 has been allocated resources\n"
    (part,) = paste.parts(f"$ srun -G 2 nvidia-smi -L\n{said}{LIST}\n")
    assert (part.command, part.text.strip()) == ("srun -G 2 nvidia-smi -L", LIST)


@pytest.mark.parametrize("ruler", ["#" * 80, "_" * 44, "=" * 20])
def test_rulers_and_titles_between_the_outputs_of_a_script_are_not_the_tools(ruler: str) -> None:
    text = f"{ruler}\n# list\n# $ nvidia-smi -L\n{ruler}\n\n{LIST}\n\n{ruler}\n# links\n# $ nvidia-smi nvlink -s\n"
    assert [(part.command, part.text) for part in paste.parts(text + LIST)] == [
        ("nvidia-smi -L", LIST),
        ("nvidia-smi nvlink -s", LIST),
    ]


def test_comments_below_an_output_stay_where_no_ruler_parts_them_from_it() -> None:
    text = "$ nvbandwidth\n# nThread 1\n 8  2  float\n# Out of bounds values : 0 OK\n# Avg bus bandwidth : 3\n#\n$ exit"
    assert paste.parts(text)[0].text.endswith("# Avg bus bandwidth : 3\n#")


def test_a_csv_without_header_gets_the_fields_of_its_command() -> None:
    (part,) = paste.parts("$ nvidia-smi --query-gpu=index,name --format=csv,noheader\n0, NVIDIA L4\n")
    assert next(paste.readings(part)) == "index,name\n0, NVIDIA L4\n"
    (whole,) = paste.parts("$ nvidia-smi --query-gpu=index,name --format=csv\nindex, name\n0, NVIDIA L4\n")
    assert next(paste.readings(whole)) == "index, name\n0, NVIDIA L4\n"


@pytest.mark.parametrize("prefix", ["    ", "\t", "    # ", "// "])
def test_indentation_and_the_mark_of_a_comment_come_off_in_a_later_reading(prefix: str) -> None:
    (part,) = paste.parts(f"{prefix}{LIST}\n{prefix}  MIG 1g.10gb\n")
    readings = list(paste.readings(part))
    assert readings[0].startswith(prefix)
    assert readings[-1].split("\n")[:2] == [LIST, "  MIG 1g.10gb"]


def test_spaces_and_entities_of_a_web_page_are_the_tools_own() -> None:
    assert paste.parts("GPU\u00a00: NVIDIA\u00a0L4")[0].text == "GPU 0: NVIDIA L4"
    assert paste.parts("&lt;nvidia_smi_log&gt;&nbsp;")[0].text == "<nvidia_smi_log> "


@pytest.mark.parametrize("prefix", ["> ", ">> ", "> > ", "  > "])
def test_a_quotation_is_taken_apart_like_what_it_quotes(prefix: str) -> None:
    text = f"ubuntu@n1:~$ nvidia-smi -L\n{LIST}\n  MIG 1g.10gb\n\n$ nvidia-smi nvlink -s\n{LIST}"
    quoted = "\n".join(prefix + line for line in text.split("\n"))
    assert paste.parts(quoted) == paste.parts(text)


def test_colours_and_a_byte_order_mark_do_not_hide_a_command() -> None:
    assert paste.parts(f"\ufeff\x1b[1m$ nvidia-smi -L\x1b[0m\r\n{LIST}") == (paste.Part("nvidia-smi -L", LIST),)


@pytest.mark.parametrize(
    "prompt", ["root@n1:~# ", "[ops@n1 my dir]$", "(base) ops@n1:/srv/data$ exit", "$ docker ps", "u@h %"]
)
def test_an_output_ends_at_the_next_prompt_whatever_was_typed_there(prompt: str) -> None:
    first = paste.parts(f"$ nvidia-smi -L\n{LIST}\n{prompt}\nCONTAINER ID\n")[0]
    assert (first.command, first.text.strip()) == ("nvidia-smi -L", LIST)


@pytest.mark.parametrize("line", ["getty@tty1.service loaded active", "# nThread 1 nGpus 8", "0, 40 %", "5 $"])
def test_a_line_that_only_looks_like_a_prompt_is_the_outputs(line: str) -> None:
    assert [part.text for part in paste.parts(f"{LIST}\n{line}")] == [f"{LIST}\n{line}"]


def test_a_text_too_long_to_be_pasted_is_left_alone() -> None:
    text = f"$ dmesg\n{'x' * 100}\n" * 50_000
    assert paste.parts(text) == (paste.Part("", text),)


def test_the_capability_of_a_peer_matrix_is_told_by_its_command() -> None:
    (part,) = paste.parts("$ nvidia-smi topo -p2p n\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n")
    assert next(paste.readings(part)).startswith("$ nvidia-smi topo -p2p n\n")
