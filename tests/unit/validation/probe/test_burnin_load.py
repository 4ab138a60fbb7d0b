"""The load's arithmetic, its library search and its binding, without a GPU."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from validation.probe import cuda
from validation.probe.burnload import PERIOD, Pattern, bind_to_node, expected_sums


def test_a_pattern_is_the_same_numbers_for_gpu_and_host() -> None:
    pattern = Pattern(1)
    halves = struct.unpack(f"<{PERIOD}e", pattern.fp16)
    assert list(halves) == list(pattern.numbers[:PERIOD]) == list(pattern.numbers[PERIOD:])
    assert set(halves) == set(range(-15, 16, 2))


def test_the_host_answer_is_the_product_written_out() -> None:
    n, left, right = 192, Pattern(1), Pattern(2)

    def element(pattern: Pattern, row: int, column: int) -> int:
        return pattern.numbers[(row + column * n) % PERIOD]

    column = 64  # the one that is checked in matrices of this order
    product = [sum(element(left, i, k) * element(right, k, column) for k in range(n)) for i in range(n)]
    assert expected_sums(n, left, right) == [sum(product)]


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_the_loader_is_asked_before_the_folders_and_newest_first(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "usr/local/cuda-12.4/lib64/libcublas.so.12",
        "usr/local/cuda-12.6/lib64/libcublas.so.12",
        "usr/local/cuda-11.8/lib64/libcublas.so.11",
        "opt/pytorch/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12",
    )
    assert [path.replace(str(tmp_path), "") for path in cuda.find_cublas(12080, str(tmp_path))] == [
        "libcublas.so.12",
        "/usr/local/cuda-12.6/lib64/libcublas.so.12",
        "/usr/local/cuda-12.4/lib64/libcublas.so.12",
        "/opt/pytorch/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12",
        "libcublas.so.11",
        "/usr/local/cuda-11.8/lib64/libcublas.so.11",
    ]


@pytest.mark.parametrize(("driver", "names"), [(13000, ["13", "12", "11"]), (11040, ["11"]), (10020, [])])
def test_a_library_newer_than_the_driver_is_left_out(tmp_path: Path, driver: int, names: list[str]) -> None:
    assert cuda.find_cublas(driver, str(tmp_path)) == [f"libcublas.so.{name}" for name in names]


def test_a_library_that_does_not_load_is_named_with_every_other(tmp_path: Path) -> None:
    first, second = tmp_path / "libcublas.so.12", tmp_path / "libcublas.so.11"
    first.write_text("no library")
    with pytest.raises(OSError, match=rf"{first}: .*; {second}: .*") as refused:
        cuda.open_cublas([str(first), str(second)], cuda.Handle())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{own}\n", "{own}"),
        ("", "not bound: invalid literal for int() with base 10: ''"),
        ("100000-100003\n", "not bound: [Errno 22] Invalid argument"),
        (None, "not bound: [Errno 2] No such file or directory"),
    ],
)
def test_a_process_is_bound_to_the_cpus_near_its_gpu_or_says_why_not(
    tmp_path: Path, content: str | None, said: str
) -> None:
    before = os.sched_getaffinity(0)
    own = str(min(before))
    if content is not None:
        folder = tmp_path / "sys/bus/pci/devices/0000:53:00.0"
        folder.mkdir(parents=True)
        (folder / "local_cpulist").write_text(content.format(own=own))
    try:
        assert bind_to_node("0000:53:00.0", str(tmp_path)).startswith(said.format(own=own))
        assert os.sched_getaffinity(0) == ({min(before)} if content == "{own}\n" else before)
    finally:
        os.sched_setaffinity(0, before)
