"""Driver, toolkit and GPU: rows for every verdict, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.compat import CudaDriver, GpuSupport, rules
from validation.checks.wording import is_version
from validation.facts.gpu import GpuInventory
from validation.facts.host import CudaToolkits
from validation.facts.missing import ABSENT, Missing, Reason

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


GONE = ["UNKNOWN host: could not look: tool: not found"]


def cuda(version: str) -> CudaToolkits:
    return CudaToolkits({"nvcc": version})


def pinned(h: Host, version: str) -> Host:
    return h.expecting(software=h.expected.software.model_copy(update={"cuda": version})).put(cuda(version))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (CudaDriver, "p5.48xlarge", lambda h: h, ["PASS host: driver 580.105.08 runs CUDA 13.0.88"]),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: h.driver(driver_version="535.104.05"),
        ["WARN host: driver 535.104.05 cannot run CUDA 13.0.88"],
    ),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: pinned(h.driver(driver_version="535.104.05"), "13.0.88"),
        ["FAIL host: driver 535.104.05 cannot run CUDA 13.0.88"],
    ),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: h.driver(driver_version="535.104.05").put(cuda("12.6.85")),
        ["WARN host: driver 535.104.05 is older than CUDA 12.6.85 came with: minor-version compatibility only"],
    ),
    (CudaDriver, "p5.48xlarge", lambda h: h.put(cuda("14.0.1")), ["WARN host: CUDA 14.0.1 is not in the table"]),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: h.drop(CudaToolkits),
        ["NOT_APPLICABLE host: no CUDA toolkit is pinned, and none was found"],
    ),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: h.put(CudaToolkits({"/usr/local/cuda-12.6": "12.6.85", "/usr/local/cuda-13.0": "13.0.88"})),
        ["NOT_APPLICABLE host: no CUDA toolkit is the default"],
    ),
    (CudaDriver, "p5.48xlarge", lambda h: pinned(h, "13.0").drop(CudaToolkits), GONE),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: h.driver(driver_version=Missing(Reason.ABSENT)),
        ["UNKNOWN host: driver version: absent"],
    ),
    (
        CudaDriver,
        "p5.48xlarge",
        lambda h: h.put(cuda("13.0-rc")),
        ["UNKNOWN host: driver '580.105.08', CUDA '13.0-rc': not comparable"],
    ),
    (CudaDriver, "p5.48xlarge", lambda h: h.drop(GpuInventory), GONE),
    (GpuSupport, "p5.48xlarge", lambda h: h, ["PASS host: Hopper is supported by driver 580.105.08 and CUDA 13.0.88"]),
    (GpuSupport, "p3.16xlarge", lambda h: h, ["PASS host: Volta is supported by driver 580.105.08 and CUDA 12.9.86"]),
    (
        GpuSupport,
        "p3.16xlarge",
        lambda h: h.driver(driver_version="595.58.03"),
        ["FAIL host: driver 595.58.03 does not support Volta; the last branch is R580"],
    ),
    (
        GpuSupport,
        "p3.16xlarge",
        lambda h: h.put(cuda("13.0.88")),
        ["WARN host: CUDA 13.0.88 no longer supports Volta; the last is 12"],
    ),
    (
        GpuSupport,
        "p3.16xlarge",
        lambda h: pinned(h, "13.0.88"),
        ["FAIL host: CUDA 13.0.88 no longer supports Volta; the last is 12"],
    ),
    (
        GpuSupport,
        "p6-b200.48xlarge",
        lambda h: pinned(h, "12.6.85"),
        ["FAIL host: CUDA 12.6.85 does not know Blackwell; the first is 12.8"],
    ),
    (GpuSupport, "g6.xlarge", lambda h: h.drop(CudaToolkits), ["PASS host: Ada is supported by driver 580.105.08"]),
    (
        GpuSupport,
        "g6.xlarge",
        lambda h: h.gpu(0, architecture=ABSENT),
        ["UNKNOWN host: architecture of the GPUs: absent"],
    ),
    (GpuSupport, "g6.xlarge", lambda h: h.only(0), ["UNKNOWN host: architecture of the GPUs: no GPU answered"]),
    (GpuSupport, "g6.xlarge", lambda h: h.drop(GpuInventory), GONE),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_compatibility(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said


@pytest.mark.parametrize("kind", ["cuda-family", "cuda-toolkit", "driver-architecture", "cuda-architecture"])
def test_every_rule_has_comparable_versions_and_a_source(kind: str) -> None:
    assert rules(kind)
    for rule in rules(kind):
        assert all(is_version(bound) for bound in (rule.version_min, rule.version_max) if bound), rule
        assert rule.source, rule
