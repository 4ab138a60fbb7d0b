"""Software: rows for pass, fail, not applicable and what could not be looked at, with the exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks.software import CudaToolkit, KernelModule
from validation.facts.host import CudaToolkits, DriverModule

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host


def pinned(h: Host, **pins: str) -> Host:
    return h.expecting(software=h.expected.software.model_copy(update={"name": "mine", **pins}))


def toolkits(h: Host, **versions: str) -> Host:
    return pinned(h, cuda="12.6").put(CudaToolkits({k.replace("_", "/"): v for k, v in versions.items()}))


ROWS: list[tuple[Any, str, Callable[[Host], Host], list[str]]] = [
    (CudaToolkit, "p5.48xlarge", lambda h: h, ["PASS host: CUDA 13.0.88 (nvcc); no version is pinned"]),
    (
        CudaToolkit,
        "p5.48xlarge",
        lambda h: h.drop(CudaToolkits),
        ["NOT_APPLICABLE host: no CUDA toolkit is pinned, and none was found"],
    ),
    (CudaToolkit, "p5.48xlarge", lambda h: pinned(h, cuda="13.0"), ["PASS host: CUDA 13.0.88 (nvcc)"]),
    (CudaToolkit, "p5.48xlarge", lambda h: pinned(h, cuda="13"), ["PASS host: CUDA 13.0.88 (nvcc)"]),
    (
        CudaToolkit,
        "p5.48xlarge",
        lambda h: pinned(h, cuda="12.6"),
        ["FAIL host: CUDA 12.6 is not installed; found: 13.0.88 (nvcc)"],
    ),
    (
        CudaToolkit,
        "p5.48xlarge",
        lambda h: toolkits(h, _usr_local_cuda="12.6.85"),
        ["PASS host: CUDA 12.6.85 (/usr/local/cuda)"],
    ),
    (
        CudaToolkit,
        "p5.48xlarge",
        lambda h: toolkits(h, **{"_usr_local_cuda-12.6": "12.6.85"}),
        ["PASS host: CUDA 12.6.85 (/usr/local/cuda-12.6)"],
    ),
    (
        CudaToolkit,
        "p5.48xlarge",
        lambda h: toolkits(h, nvcc="13.0.88", **{"_usr_local_cuda-12.6": "12.6.85"}),
        ["WARN host: CUDA 12.6 is installed at /usr/local/cuda-12.6, but a program gets 13.0.88"],
    ),
    (CudaToolkit, "p5.48xlarge", lambda h: toolkits(h), ["FAIL host: CUDA 12.6 is not installed; found: none"]),
    (
        CudaToolkit,
        "p5.48xlarge",
        lambda h: pinned(h, cuda="12.6").drop(CudaToolkits, "nvcc: no answer within 10 s"),
        ["UNKNOWN host: could not look: nvcc: no answer within 10 s"],
    ),
    (KernelModule, "p5.48xlarge", lambda h: h, ["PASS host: the open kernel module is loaded"]),
    (
        KernelModule,
        "p5.48xlarge",
        lambda h: h.put(DriverModule("580.105.08", False)),
        ["PASS host: the proprietary kernel module is loaded"],
    ),
    (KernelModule, "p3.16xlarge", lambda h: h, ["PASS host: the proprietary kernel module is loaded"]),
    (
        KernelModule,
        "p3.16xlarge",
        lambda h: h.put(DriverModule("580.105.08", True)),
        ["FAIL host: the open kernel module is loaded; this board cannot run it"],
    ),
    (
        KernelModule,
        "p6-b200.48xlarge",
        lambda h: h.put(DriverModule("580.105.08", False)),
        ["FAIL host: the proprietary kernel module is loaded; this board cannot run it"],
    ),
    (
        KernelModule,
        "p5.48xlarge",
        lambda h: pinned(h, kernel_module="proprietary"),
        ["FAIL host: the open kernel module is loaded, the proprietary one is pinned"],
    ),
    (KernelModule, "p5.48xlarge", lambda h: h.drop(DriverModule), ["UNKNOWN host: could not look: tool: not found"]),
]


@pytest.mark.parametrize(("check", "instance_type", "change", "said"), ROWS)
def test_software(
    host: Callable[[str], Host], check: Any, instance_type: str, change: Callable[[Host], Host], said: list[str]
) -> None:
    assert change(host(instance_type)).says(check()) == said
