"""A healthy host of any type of the catalogue opens the gate: what its profile does not know warns at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from profiles import catalog
from validation.checks import CHECKS
from validation.facts.components import Components
from validation.facts.gpu import Ecc, PcieLink
from validation.facts.host import CudaToolkits, DriverModule
from validation.facts.missing import ABSENT, Missing, Reason
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

WITH_CAPTURES = (
    "p5.48xlarge",
    "p4d.24xlarge",
    "p3.16xlarge",
    "g5.48xlarge",
    "g5.xlarge",
    "g6.xlarge",
    "g6e.xlarge",
    "g4dn.xlarge",
)


@pytest.mark.parametrize("name", catalog.types())
def test_a_healthy_host_of_any_type_opens_the_gate(host: Callable[..., Host], name: str) -> None:
    healthy = host(name)
    findings = judge_facts(healthy.facts(), healthy.expected, "host", CHECKS)
    trouble = [f for f in findings if f.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)]
    assert [f for f in trouble if f.required] == []
    assert combine(findings) in (Verdict.PASS, Verdict.WARN)


@pytest.mark.parametrize("name", WITH_CAPTURES)
def test_a_healthy_host_of_a_type_with_captures_warns_of_nothing(host: Callable[..., Host], name: str) -> None:
    healthy = host(name)
    assert combine(judge_facts(healthy.facts(), healthy.expected, "host", CHECKS)) is Verdict.PASS


@pytest.mark.parametrize("name", catalog.types())
def test_a_host_with_a_gpu_too_few_closes_the_gate_on_every_type(host: Callable[..., Host], name: str) -> None:
    broken = host(name).without(0)
    assert combine(judge_facts(broken.facts(), broken.expected, "host", CHECKS)) is Verdict.FAIL


@pytest.mark.parametrize("driver", ["535.288.01", "550.163.01"])
@pytest.mark.parametrize("name", WITH_CAPTURES)
def test_a_healthy_host_with_an_older_driver_warns_of_nothing(
    host: Callable[..., Host], name: str, driver: str
) -> None:
    """What a driver before 565 does not have, as NVML says it: a function not found, a field that is no argument."""
    old = host(name)
    if name == "p3.16xlarge":
        slowdown = {"tlimit_margin_c": Missing(Reason.NOT_APPLICABLE, "N/A"), "slowdown_c": 87.0}
    else:
        slowdown = {"tlimit_margin_c": ABSENT, "slowdown_c": 87.0}
    module = "open" if "open" in old.profile.needs.kernel_modules.value else "proprietary"
    components = old.values[Components]
    assert isinstance(components, Components)
    versions = {"fabric_manager": driver} if components.fabric_manager != ABSENT else {}
    old.every(
        gsp_firmware=Missing(Reason.NOT_APPLICABLE, "NVML_ERROR_NOT_SUPPORTED"),
        recovery_action=Missing(Reason.COULD_NOT_LOOK, "NVML_ERROR_INVALID_ARGUMENT"),
        ecc=Ecc(True, 0, 0, 0, 0, ABSENT),
        **slowdown,
    ).driver(driver_version=driver).put(DriverModule(driver, module == "open"), CudaToolkits({"nvcc": "12.2.140"}))
    old.software(**versions)
    findings = judge_facts(old.facts(), old.expected, "host", CHECKS)
    assert [f for f in findings if f.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)] == []


def test_a_virtual_gpu_that_shows_nothing_of_its_board_opens_the_gate(host: Callable[..., Host]) -> None:
    nothing = Missing(Reason.NOT_APPLICABLE, "N/A")
    guest = host("g6f.xlarge").every(
        virtualization="VGPU",
        vgpu_license="Licensed (Expiry: N/A)",
        ecc=Ecc(nothing, nothing, nothing, nothing, nothing, nothing),
        pcie=PcieLink(nothing, nothing, nothing, nothing, nothing),
        mig_enabled=nothing,
        mig_pending=nothing,
        temperature_c=nothing,
        tlimit_margin_c=nothing,
        power_limit_w=nothing,
        power_limit_default_w=nothing,
        throttle_reasons=nothing,
        recovery_action=nothing,
        gsp_firmware=nothing,
        vbios=nothing,
    )
    assert combine(judge_facts(guest.facts(), guest.expected, "host", CHECKS)) is Verdict.WARN
    guest.gpu(0, throttle_reasons=frozenset({"hw_slowdown"}))
    assert combine(judge_facts(guest.facts(), guest.expected, "host", CHECKS)) is Verdict.FAIL
