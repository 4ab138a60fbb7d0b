"""nvidia-smi nvlink -s and -e: what a paste left out is said, what it cut is refused."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import nvlink, nvlink_errors
from validation.facts.missing import ABSENT, Missing

GPU = "GPU {index}: NVIDIA H800 (UUID: GPU-{index})\n"
LINKS = "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(8))
COUNTERS = "".join(f"\t Link {link}: {name} Errors: 0\n" for link in range(2) for name in ("Replay", "Recovery", "CRC"))


@pytest.mark.parametrize("dots", ["...", "\t [...]", "…"])
def test_gpus_and_links_left_out_by_dots_are_said_and_the_rest_is_read(dots: str) -> None:
    text = f"{GPU.format(index=0)}{LINKS}{dots}\n{GPU.format(index=7)}\t Link 0: 26.562 GB/s\n{dots}\n"
    found = nvlink.parse(text)
    assert [gpu.index for gpu in found.gpus] == [0, 7]
    assert found.omitted == ("line 10 says that lines were left out", "line 13 says that lines were left out")
    first = found.gpus[0].nvlinks
    assert not isinstance(first, Missing)
    assert len(first) == 8


def test_a_gpu_none_of_whose_links_is_shown_has_none_that_is_known() -> None:
    assert nvlink.parse(f"{GPU.format(index=0)}...\n").gpus[0].nvlinks == ABSENT


def test_the_same_text_without_dots_is_cut_short() -> None:
    with pytest.raises(ParseError, match="cut short"):
        nvlink.parse(f"{GPU.format(index=0)}{LINKS}{GPU.format(index=7)}\t Link 0: 26.562 GB/s\n")
    with pytest.raises(ParseError, match="not numbered 0 to 1"):
        nvlink.parse(f"{GPU.format(index=0)}\t Link 0: 26.562 GB/s\n\t Link 17: 26.562 GB/s\n")


def test_the_reason_why_there_are_no_links_may_stand_in_the_gpus_own_line() -> None:
    text = (
        "GPU 0: NVIDIA RTX A4000 (UUID: GPU-0) Device does not have or support Nvlink\n"
        "GPU 1: Quadro RTX 5000 (UUID: GPU-1) NVML: Unable to retrieve Nvlink information as all links are inActive\n"
    )
    none, down = nvlink.parse(text).gpus
    assert (none.name, none.uuid, isinstance(none.nvlinks, Missing)) == ("NVIDIA RTX A4000", "GPU-0", True)
    assert (down.uuid, down.nvlinks) == ("GPU-1", ())
    with pytest.raises(ParseError, match="neither a link nor a known sentence"):
        nvlink.parse("GPU 0: NVIDIA L4 (UUID: GPU-0) is a fine board\n")


def test_counters_left_out_by_dots_are_said() -> None:
    found = nvlink_errors.parse(f"{GPU.format(index=0)}{COUNTERS}\n  [...]\n\t Link 17: CRC Errors: 4\n")
    assert found.omitted == ("line 9 says that lines were left out",)
    assert [(counter.link, counter.count) for counter in found.counters][-1] == (17, 4)


def test_counters_without_their_gpu_are_a_text_without_its_beginning() -> None:
    with pytest.raises(ParseError, match="line 1: a counter before any GPU"):
        nvlink_errors.parse(COUNTERS)


@pytest.mark.parametrize(("board", "links"), [("NVIDIA GB200", 18), ("NVIDIA GB300", 18), ("NVIDIA H200", 18)])
def test_a_board_that_lists_fewer_links_than_it_has_is_cut_short(board: str, links: int) -> None:
    rows = [f"\t Link {index}: 53.125 GB/s\n" for index in range(links)]
    head = f"GPU 0: {board} (UUID: GPU-0)\n"
    assert len(nvlink.parse(head + "".join(rows)).gpus) == 1
    with pytest.raises(ParseError, match="17 links listed"):
        nvlink.parse(head + "".join(rows[:-1]))
