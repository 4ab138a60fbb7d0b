"""Results of nccl-tests and nvbandwidth: a row for every verdict, with words of the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from validation.checks.base import Check
from validation.checks.tool_bandwidth import NcclTestResult, NvBandwidthResult
from validation.facts.nccl_tests import NcclResult, NcclSize
from validation.facts.nvbandwidth import BandwidthTest, NvBandwidth

H100 = "NVIDIA H100 80GB HBM3"
NEWER = "NVIDIA Newer"


def nccl(peak: float, *, wrong: int = 0, board: str = H100, hosts: int = 1, in_rows: int = 0) -> NcclResult:
    ranks = tuple((f"host{host}", board) for host in range(hosts))
    return NcclResult(ranks, (NcclSize(1 << 30, peak, peak, in_rows),), peak / 4, wrong, wrong > 0, checked=True)


def copied(value: float, name: str = "host_to_device_memcpy_ce", *devices: str, unit: str = "GB/s") -> NvBandwidth:
    return NvBandwidth("v0.8", devices or (H100,), (BandwidthTest(name, unit, ((0, 0, value),)),), 3, ())


def nothing(errors: tuple[str, ...] = (), corrupt: tuple[str, ...] = ()) -> NvBandwidth:
    return NvBandwidth("v0.8", (H100,), (), 5, errors, corrupt)


IMPOSSIBLE = "GB/s is more than the link carries"
ROWS: list[tuple[Check, object, list[str]]] = [
    (NcclTestResult(), nccl(400), ["PASS host: peak 400 GB/s"]),
    (NcclTestResult(), replace(nccl(400), checked=False), ["WARN host: peak 400 GB/s"]),
    (NcclTestResult(), nccl(400, wrong=2), ["FAIL host: 2 values out of bounds"]),
    (NcclTestResult(), nccl(400, in_rows=9), ["FAIL host: 9 values out of bounds"]),
    (NcclTestResult(), replace(nccl(400), below_minimum=True), ["FAIL host: peak 400 GB/s"]),
    (
        NcclTestResult(),
        replace(nccl(400), failures=("Test NCCL failure x",)),
        ["UNKNOWN host: the run broke off: Test"],
    ),
    (NcclTestResult(), replace(nccl(400), apart=8), ["UNKNOWN host: 8 processes ran apart"]),
    (NcclTestResult(), nccl(0), ["UNKNOWN host: no bandwidth was measured"]),
    (NcclTestResult(), nccl(float("nan")), ["UNKNOWN host: no bandwidth was measured"]),
    (NcclTestResult(), nccl(700), ["UNKNOWN host: peak 700 GB/s"]),
    (NcclTestResult(), replace(nccl(700), ranks=(("host0", H100),) * 8), ["PASS host: peak 700 GB/s"]),
    (NcclTestResult(), replace(nccl(800), ranks=(("host0", H100),) * 8), ["UNKNOWN host: peak 800 GB/s"]),
    (NcclTestResult(), nccl(700, hosts=2), ["PASS host: peak 700 GB/s"]),
    (NcclTestResult(), nccl(700, board=NEWER), ["PASS host: peak 700 GB/s"]),
    (NcclTestResult(), nccl(9000, board=NEWER, hosts=2), ["UNKNOWN host: peak 9000 GB/s"]),
    (NcclTestResult(), replace(nccl(9000), ranks=()), ["UNKNOWN host: peak 9000 GB/s"]),
    (NvBandwidthResult(), copied(55), ["NOT_APPLICABLE host: 1 test measured, 3 waived"]),
    (NvBandwidthResult(), copied(369), [f"UNKNOWN host_to_device_memcpy_ce: 369 {IMPOSSIBLE}", "NOT_APPLICABLE host"]),
    (NvBandwidthResult(), copied(369, "host_to_device_memcpy_ce", "NVIDIA GH200 480GB"), ["NOT_APPLICABLE host"]),
    (NvBandwidthResult(), copied(700, "host_to_device_memcpy_ce", NEWER), ["NOT_APPLICABLE host"]),
    (NvBandwidthResult(), copied(140, "host_to_device_memcpy_ce", "NVIDIA GB10"), ["NOT_APPLICABLE host"]),
    (
        NvBandwidthResult(),
        copied(500, "host_to_device_memcpy_ce", "NVIDIA GB200"),
        [f"UNKNOWN host_to_device_memcpy_ce: 500 {IMPOSSIBLE}", "NOT"],
    ),
    (
        NvBandwidthResult(),
        copied(950, "host_to_device_memcpy_ce", NEWER),
        [f"UNKNOWN host_to_device_memcpy_ce: 950 {IMPOSSIBLE}", "NOT"],
    ),
    (NvBandwidthResult(), copied(100, "host_to_device_bidirectional_memcpy_ce"), ["NOT_APPLICABLE host"]),
    (
        NvBandwidthResult(),
        copied(500, "device_to_device_memcpy_read_ce"),
        [f"UNKNOWN device_to_device_memcpy_read_ce: 500 {IMPOSSIBLE}", "NOT"],
    ),
    (NvBandwidthResult(), copied(800, "device_to_device_bidirectional_memcpy_read_ce"), ["NOT_APPLICABLE host"]),
    (NvBandwidthResult(), copied(4000, "device_local_copy"), [f"UNKNOWN device_local_copy: 4000 {IMPOSSIBLE}", "NOT"]),
    (NvBandwidthResult(), copied(900, "host_device_latency_sm", unit="ns"), ["NOT_APPLICABLE host"]),
    (NvBandwidthResult(), copied(0), ["UNKNOWN host_to_device_memcpy_ce: measured nothing", "NOT_APPLICABLE host"]),
    (NvBandwidthResult(), nothing(), ["UNKNOWN host: nothing was measured: 5 tests waived"]),
    (NvBandwidthResult(), nothing(("CUDA_ERROR_INVALID_VALUE",)), ["UNKNOWN host: a test ended in an error"]),
    (NvBandwidthResult(), nothing(("CUDA_ERROR_ECC_UNCORRECTABLE",)), ["FAIL host: a test ended in an error"]),
    (NvBandwidthResult(), nothing((), ("Invalid value at 7",)), ["FAIL host: copied data came back wrong: Invalid"]),
    (
        NvBandwidthResult(),
        replace(copied(55), errors=("CUDA_ERROR_OUT_OF_MEMORY",)),
        ["UNKNOWN host: a test ended in an error", "NOT_APPLICABLE host: 1 test measured"],
    ),
]


@pytest.mark.parametrize(("check", "fact", "wanted"), ROWS, ids=lambda value: getattr(value, "id", ""))
def test_a_bandwidth_means_what_its_numbers_say(
    check: Check, fact: object, wanted: list[str], said: Callable[..., list[str]]
) -> None:
    found = said(check, fact)
    assert len(found) == len(wanted), found
    assert all(text.startswith(start) for text, start in zip(found, wanted, strict=True)), found
