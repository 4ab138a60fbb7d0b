"""PCIe links under load: rows with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.burnin import RIGHT_CHECKSUMS
from validation.checks.burnin_links import BurnInPcie
from validation.facts.burnin import BurnInResult
from validation.judge import judge_facts

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

GEMM = {
    "n": 8192, "iterations": 1300, "seconds": 2.0, "tflops": 700.0, "compared": 20, "mismatches": 0,
    "first_mismatch": None, "untouched": False, "checked_columns": 64, "wrong_columns": 0,
    "checksum": RIGHT_CHECKSUMS[8192], "stable": True, "complete": True,
}  # fmt: skip


def burnt(*links: tuple[list[int], list[int]] | None, error: str | None = None) -> BurnInResult:
    """One GPU for each link, with the generations and widths that were sampled; None: no sample."""
    gpus = []
    for index, link in enumerate(links):
        samples = {"sm_clock_mhz": [1755.0], "power_w": [690.0], "temp_c": [55.0], "throttle": [[]], "errors": []}
        sampled = None if link is None else {**samples, "pcie_generation": link[0], "pcie_width": link[1]}
        gpus.append(
            {
                "index": index, "pci": f"0000:{0x53 + index:02x}:00.0", "name": "NVIDIA H100 80GB HBM3",
                "phase": "done", "error": None, "no_cublas": None, "cublas": 120600, "library": "libcublas.so.12",
                "cpus": None,
                "copy": {"h2d_gbps": 25.0, "d2h_gbps": 26.0, "bytes": 33554432, "intact": True},
                "gemm": GEMM, "samples": sampled,
            }
        )  # fmt: skip
    document: dict[str, Any] = {"schema": "kiln/burn-in/v1", "level": "quick", "outcome": "ran", "error": None}
    document.update({"driver_cuda": 13000, "sampling_error": error, "wall_s": 6.0, "gpus": gpus})
    return BurnInResult.model_validate(document, strict=False)


FULL = ([5, 5], [16, 16])
ROWS: list[tuple[Any, BurnInResult, list[str]]] = [
    (BurnInPcie, burnt(FULL, FULL), ["PASS host: generation 5 x16 under load on each of 2 GPUs"]),
    (BurnInPcie, burnt(([1, 5], [16, 16]), FULL), ["PASS host: generation 5 x16 under load on each of 2 GPUs"]),
    (BurnInPcie, burnt(([4], [16]), ([4], [16])), ["PASS host: generation 4 x16 under load on each of 2 GPUs"]),
    (
        BurnInPcie,
        burnt(FULL, ([3, 3], [16, 16])),
        ["FAIL GPU1: under load the link is generation 3 x16, that of its peers generation 5 x16"],
    ),
    (
        BurnInPcie,
        burnt(([5], [8]), ([5], [8])),
        [
            "FAIL GPU0: under load the link is generation 5 x8, that of its peers generation 5 x16",
            "FAIL GPU1: under load the link is generation 5 x8, that of its peers generation 5 x16",
        ],
    ),
    (
        BurnInPcie,
        burnt(None, FULL, error="NVML did not answer in 2 s"),
        ["UNKNOWN GPU0: not seen under load: NVML did not answer in 2 s"],
    ),
]


@pytest.mark.parametrize(("check", "burn_in", "said"), ROWS)
def test_row(host: Callable[..., Host], check: Any, burn_in: BurnInResult, said: list[str]) -> None:
    assert host("p5.48xlarge", burn_in="quick").put(burn_in).says(check()) == said


def test_a_link_that_no_driver_tells_of_closes_no_gate(host: Callable[..., Host]) -> None:
    """A virtual GPU has none."""
    asked = host("p5.48xlarge", burn_in="quick").put(burnt(([], []), ([], [])))
    findings = judge_facts(asked.facts(), asked.expected, "host", [BurnInPcie()])
    assert {finding.required for finding in findings} == {False}


def test_it_does_not_apply_where_no_burn_in_was_asked_for(host: Callable[..., Host]) -> None:
    assert host("p5.48xlarge").says(BurnInPcie()) == ["NOT_APPLICABLE host: burn-in not asked for"]


def test_a_slower_slot_of_a_machine_of_ones_own_warns_and_a_link_narrower_than_its_profile_fails(
    host: Callable[..., Host],
) -> None:
    def own(burn_in: BurnInResult) -> list[str]:
        asked = host("p5.48xlarge", burn_in="quick").put(burn_in)
        return asked.expecting(profile=asked.profile.model_copy(update={"provider": "local"})).says(BurnInPcie())

    slow = "GPU1: under load the link is generation 3 x16, that of its peers generation 5 x16"
    assert own(burnt(FULL, ([3, 3], [16, 16]))) == [f"WARN {slow}"]
    narrow = "GPU1: under load the link is generation 5 x8, that of its peers generation 5 x16"
    assert own(burnt(FULL, ([5, 5], [8, 8]))) == [f"FAIL {narrow}"]
