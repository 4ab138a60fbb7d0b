"""Results of fio, stress-ng and the container toolkit: a row for every verdict, with words of the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from validation.checks.base import Check
from validation.checks.tool_host import ContainersSeeGpus, FioRun, StressRun
from validation.facts.container_gpus import ContainerGpus
from validation.facts.fio import FioJob, FioResult
from validation.facts.stress_ng import StressNg


def disk(read: float = 5e6, error: int = 0, *, why: str = "", trim: float = 0, stopped: bool = False) -> FioResult:
    return FioResult("fio-3.33", (FioJob("seq", read, 0, 9, 0, error, why, trim),), interrupted=stopped)


def stress(passed: int = 0, asked: float = 60, took: float = 60, **changes: object) -> StressNg:
    run = StressNg(True, passed, 0, 0, (), asked_s=asked, took_s=took, counted=passed > 0)
    return replace(run, **changes)  # type: ignore[arg-type]


EMPTY = StressNg(True, 0, 0, 0, (), took_s=9, counted=True)
ROWS: list[tuple[Check, object, list[str]]] = [
    (FioRun(), disk(), ["NOT_APPLICABLE seq: read 5 MB/s"]),
    (FioRun(), disk(0, trim=7e6), ["NOT_APPLICABLE seq: read 0 MB/s, write 0 MB/s, trim 7 MB/s"]),
    (FioRun(), disk(0), ["UNKNOWN seq: measured nothing"]),
    (FioRun(), disk(error=5, why="Input/output error"), ["FAIL seq: ended with error 5: Input/output error"]),
    (FioRun(), disk(error=84), ["FAIL seq: ended with error 84"]),
    # A full disk, a missing file and an order that cannot be done accuse no disk.
    (FioRun(), disk(error=28, why="No space left on device"), ["UNKNOWN seq: ended with error 28: No space"]),
    (FioRun(), disk(error=25), ["UNKNOWN seq: ended with error 25"]),
    (
        FioRun(),
        replace(disk(), kernel=("Buffer I/O error on dev nvme0n1",)),
        ["FAIL host: the kernel's log among its lines says: Buffer I/O", "NOT_APPLICABLE seq"],
    ),
    (FioRun(), disk(stopped=True), ["UNKNOWN seq: a signal ended the run"]),
    (FioRun(), disk(error=5, stopped=True), ["FAIL seq: ended with error 5"]),
    (StressRun(), stress(passed=8), ["PASS host: 8 stressors passed in 60 s"]),
    (StressRun(), stress(dispatched=8), ["PASS host: the run was successful in 60 s"]),
    (StressRun(), stress(), ["UNKNOWN host: neither what was to run nor what passed is shown"]),
    (StressRun(), stress(asked=0, took=0.5, dispatched=1), ["PASS host: the run was successful in 0.5 s"]),
    (StressRun(), stress(passed=7, skipped=1), ["UNKNOWN host: 1 stressor skipped"]),
    (StressRun(), stress(skips=("smi stressor will be skipped",)), ["UNKNOWN host: smi stressor will be skipped"]),
    (StressRun(), stress(took=1.5), ["UNKNOWN host: ended after 1.5 s of 60 s that were asked for"]),
    (StressRun(), stress(asked=0, took=0), ["UNKNOWN host: took no time: nothing was stressed"]),
    (StressRun(), stress(passed=1, asked=0, took=0), ["UNKNOWN host: took no time: nothing was stressed"]),
    (StressRun(), EMPTY, ["UNKNOWN host: no stressor passed"]),
    (StressRun(), stress(passed=8, errors=("no /sys",)), ["WARN host: the run was successful, and said: no /sys"]),
    (StressRun(), stress(passed=8, untrusted=2), ["WARN host: the run was successful, and 2 metrics of it cannot"]),
    (StressRun(), stress(succeeded=False), ["FAIL host: the run was not successful, 0 failed"]),
    (StressRun(), stress(failures=("vm: 5 bit errors",)), ["FAIL host: the run calls itself successful, and found"]),
    (StressRun(), stress(failures=("shm: unexpectedly succeeded",)), ["UNKNOWN host: the run calls itself successful"]),
    (StressRun(), stress(failed=1, passed=7), ["FAIL host: the run was not successful, 1 failed"]),
    (ContainersSeeGpus(), ContainerGpus(("nvidia.com/gpu=0",)), ["PASS host: containers can be given"]),
    (ContainersSeeGpus(), ContainerGpus(()), ["WARN host: no CDI device of NVIDIA's: who asks by CDI gets no GPU"]),
    (ContainersSeeGpus(), ContainerGpus(("amd.com/gpu=0",)), ["WARN host: no CDI device of NVIDIA's"]),
    (
        ContainersSeeGpus(),
        ContainerGpus((), broken=("/etc/cdi/nvidia.yaml: invalid version",)),
        [
            "FAIL host: a CDI specification cannot be read: /etc/cdi/nvidia.yaml: invalid version",
            "WARN host: no CDI device",
        ],
    ),
    (
        ContainersSeeGpus(),
        ContainerGpus(("nvidia.com/gpu=all",), driver="580.95.05"),
        ["PASS host: containers can be given nvidia.com/gpu=all, with the libraries of driver 580.95.05"],
    ),
]


@pytest.mark.parametrize(("check", "fact", "wanted"), ROWS, ids=lambda value: getattr(value, "id", ""))
def test_a_result_means_what_its_numbers_say(
    check: Check, fact: object, wanted: list[str], said: Callable[..., list[str]]
) -> None:
    found = said(check, fact)
    assert len(found) == len(wanted), found
    assert all(text.startswith(start) for text, start in zip(found, wanted, strict=True)), found


def test_containers_must_be_given_every_gpu_of_the_machine(said: Callable[..., list[str]]) -> None:
    one = ContainerGpus(("nvidia.com/gpu=0", "nvidia.com/gpu=all"))
    assert said(ContainersSeeGpus(), one, "p5.48xlarge") == ["FAIL host: 1 GPU of 8 are there for containers"]
