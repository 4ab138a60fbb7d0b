"""CSV whose rows are no GPUs: processes and retired pages."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import smi_rows
from validation.facts.missing import ABSENT
from validation.facts.smi_rows import GpuProcess, RetiredPageCount

APPS = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
PAGES = "gpu_bus_id, retired_pages.address, retired_pages.cause\n"


def test_processes_are_read_by_column_and_a_comma_in_a_command_line_is_its_own() -> None:
    found = smi_rows.parse_apps(f"{APPS}GPU-0, 41, python -m a, b, 400 MiB\nGPU-1, 42, tritonserver, 1836\n")
    assert found.processes == (
        GpuProcess(41, "python -m a, b", "GPU-0", 400),
        GpuProcess(42, "tritonserver", "GPU-1", 1836),
    )


def test_a_header_alone_is_no_process_and_no_page() -> None:
    assert smi_rows.parse_apps(APPS).processes == ()
    assert smi_rows.parse_pages(PAGES).gpus == ()


def test_the_fields_of_a_query_are_a_header_too() -> None:
    assert smi_rows.parse_apps("pid,name,used_memory\n7, a, 1 MiB\n").processes == (GpuProcess(7, "a", ABSENT, 1),)


def test_pages_are_counted_by_gpu_and_cause() -> None:
    rows = (
        "00000000:3B:00.0, 0x1, Single Bit ECC\n00000000:3B:00.0, 0x2, Double Bit ECC\n"
        "00000000:5E:00.0, 0x3, Single Bit ECC\n00000000:86:00.0, [N/A], [N/A]\n"
    )
    assert smi_rows.parse_pages(PAGES + rows).gpus == (
        RetiredPageCount("0000:3b:00.0", 1, 1),
        RetiredPageCount("0000:5e:00.0", 1, 0),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("index, name\n0, NVIDIA L4\n", "no header with a column pid"),
        ("pid, pid\n1, 1\n", "named twice"),
        (f"{APPS}GPU-0, 41\n", "line 2: 2 cells under 4 columns"),
        (f"{APPS}GPU-0, x, a, 1 MiB\n", "not a number"),
    ],
)
def test_what_is_no_whole_list_of_processes_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        smi_rows.parse_apps(text)


@pytest.mark.parametrize("row", ["0000:3b:00.0, 0x1, cosmic ray\n", ", 0x1, Single Bit ECC\n"])
def test_a_page_of_no_gpu_or_no_known_cause_is_refused(row: str) -> None:
    with pytest.raises(ParseError, match="no cause known here"):
        smi_rows.parse_pages(PAGES + row)
