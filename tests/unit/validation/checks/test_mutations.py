"""Take a healthy host, take one thing away: what a required check rests on is never missed in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from validation.checks import CHECKS
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.host import EfaModule, KernelLog
from validation.facts.missing import ABSENT, Missing, Reason
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

TYPES = ("p5.48xlarge", "p4d.24xlarge", "p3.16xlarge", "g5.48xlarge", "g4dn.xlarge", "g6e.xlarge")
EFA = {"p5.48xlarge": 32, "p4d.24xlarge": 4}

# Fields that no verdict rests on, and why. Everything else must be missed when it is gone.
NOT_JUDGED = {
    "index": "the driver's own number, always there",
    "brand": "the name is judged; asked for only where no profile is given",
    "serial": "not unique; kept to recognise a unit",
    "memory_used_mib": "only asked where no process shows",
    "gsp_firmware": "boards before Turing have none",
    "mig_pending": "the mode itself is judged",
    "compute_mode": "the stack does not set it",
    "virtualization": "only tells whether a licence is needed",
    "vgpu_license": "no GPU of these types is virtual",
    "slowdown_c": "T.Limit is asked first",
    "power_draw_w": "measured by the burn-in",
    "power_limit_default_w": "the profile's value is asked first",
    "sm_clock_mhz": "measured by the burn-in",
    "sm_clock_max_mhz": "not every driver tells it",
    "memory_clock_mhz": "measured by the burn-in",
}
NESTED = {
    "ecc": ("enabled", "volatile_uncorrected"),
    "remapped_rows": ("pending", "failure"),
    "retired_pages": ("pending", "single_bit", "double_bit"),
    "fabric": ("state",),
    "pcie": ("width",),
    "repairs": (),  # drivers before 570 tell none of it; an error in its place is gpu.readable's
}
GONE = (ABSENT, Missing(Reason.COULD_NOT_LOOK, "no permission"), Missing(Reason.FAULT, "GPU is lost"))


def asked(host: Callable[..., Host], name: str) -> Host:
    return host(name, efa_count=EFA.get(name, 0), software="unpinned")


def verdict(host: Host) -> Verdict:
    return combine(judge_facts(host.facts(), host.expected, "host", CHECKS))


def needed(host: Host, group: str) -> bool:
    """Whether the machine has what the group of fields tells about."""
    repair, fabric = host.profile.gpu.memory_repair.value, host.profile.links.fabric
    return {
        "remapped_rows": repair == "remapped-rows",
        "retired_pages": repair == "retired-pages",
        "fabric": fabric is not None and fabric.value != "none",
        "nvlinks": host.profile.links.nvlinks is not None and host.profile.links.nvlinks.value > 0,
        "mig_enabled": True,
    }.get(group, True)


@pytest.mark.parametrize("name", TYPES)
def test_no_fact_can_be_taken_away_in_silence(host: Callable[..., Host], name: str) -> None:
    silent = set()
    kinds = [*asked(host, name).values, GpuInventory]
    for kind in kinds:
        if verdict(asked(host, name).drop(kind)) is Verdict.PASS:
            silent.add(kind.__name__)
    # Told only beside another: why EFAs are missing; a toolkit that nobody pinned. And a guest's bridges are not ours.
    silent -= {"EfaModule", "CudaToolkits", "AcsControls"}
    profile = asked(host, name).profile
    manager = profile.needs.fabric_manager is not None and profile.needs.fabric_manager.value
    not_there = {"Unit"} if not manager else set()
    not_there |= {"EfaNics", "RdmaDevices", "RdmaCounters"} if name not in EFA else set()
    not_there |= {"Components"} if not manager and name not in EFA else set()
    not_there |= {"NvLinkErrors"} if not profile.links.nvlinks or not profile.links.nvlinks.value else set()
    not_there |= {"Topology", "P2pMatrix"} if profile.gpu.count.value == 1 else set()
    not_there |= {"BlockDevices"} if profile.storage.instance_store_gb is None else set()
    assert silent <= not_there


@pytest.mark.parametrize("value", GONE, ids=lambda value: value.reason.name)
@pytest.mark.parametrize("name", TYPES)
def test_no_field_of_a_gpu_can_be_taken_away_in_silence(host: Callable[..., Host], name: str, value: Missing) -> None:
    last = asked(host, name).profile.gpu.count.value - 1
    for field in fields(Gpu):
        quiet = field.name in NOT_JUDGED and value.reason is not Reason.FAULT  # an error is never quiet
        if quiet or field.name == "index" or field.name in NESTED or not needed(asked(host, name), field.name):
            continue
        if field.name in ("tlimit_margin_c", "recovery_action", "mig_enabled") and value == ABSENT:
            continue  # older drivers and smaller boards do not have it
        broken = asked(host, name).gpu(last, **{field.name: value})
        assert verdict(broken) is not Verdict.PASS, field.name


@pytest.mark.parametrize("value", GONE, ids=lambda value: value.reason.name)
@pytest.mark.parametrize("name", TYPES)
def test_no_nested_field_of_a_gpu_can_be_taken_away_in_silence(
    host: Callable[..., Host], name: str, value: Missing
) -> None:
    for group, names in NESTED.items():
        if not needed(asked(host, name), group):
            continue
        for inner in names:
            healthy = asked(host, name)
            old: Any = getattr(healthy.gpus[0], group)
            broken = healthy.gpu(0, **{group: replace(old, **{inner: value})})
            assert verdict(broken) is not Verdict.PASS, f"{group}.{inner}"


@pytest.mark.parametrize("name", TYPES)
def test_dropping_a_gpu_a_link_a_nic_or_a_pair_never_passes(host: Callable[..., Host], name: str) -> None:
    assert verdict(asked(host, name).without(0)) is Verdict.FAIL
    healthy = asked(host, name)
    links = healthy.gpus[0].nvlinks
    if not isinstance(links, Missing):
        assert verdict(healthy.gpu(0, nvlinks=links[:-1])) is Verdict.FAIL
        assert verdict(asked(host, name).gpu(0, nvlinks=())) is Verdict.FAIL
    if name in EFA:
        fewer = asked(host, name)
        fewer.expected = fewer.expected.model_copy(update={"efa_count": EFA[name] + 1})
        assert verdict(fewer) is Verdict.FAIL


def test_what_is_told_only_beside_another_fact_is_in_no_gate_alone(host: Callable[..., Host]) -> None:
    """The EFA module's state words a finding; the count of NICs makes it."""
    assert verdict(asked(host, "p4d.24xlarge").drop(EfaModule)) is Verdict.PASS
    assert verdict(asked(host, "p4d.24xlarge").drop(KernelLog)) is Verdict.UNKNOWN
