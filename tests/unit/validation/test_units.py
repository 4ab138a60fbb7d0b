"""Which units a report brands, which it does not, and how a memory is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profiles.errors import ParseError
from validation import units
from validation.checks import CHECKS
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.missing import ABSENT
from validation.facts.store import Facts
from validation.report.model import GpuUnit, HostReport, Identity, StackReport
from validation.units import BadUnit
from validation.verdict import FaultClass, Finding, Verdict, combine

DATE = "2026-11-30T10:00:00Z"
ZERO = "GPU-00000000-0000-0000-0000-000000000000"


def uuid(number: int) -> str:
    return f"GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d{number:x}"


def unit(number: int, **changes: Any) -> GpuUnit:
    made = GpuUnit(number, uuid(number), f"165{number}", "NVIDIA H100 80GB HBM3", f"0000:{0x53 + number:02x}:00.0")
    return replace(made, **changes)


def failed(check: str, subject: str, fault: FaultClass = FaultClass.REPLACE_NOW, **changes: Any) -> Finding:
    return replace(Finding(check, subject, Verdict.FAIL, "broken", fault_class=fault), **changes)


def passed(check: str) -> Finding:
    return Finding(check, "node-0", Verdict.PASS, "good")


AS_DECLARED = (passed("gpu.name"), passed("gpu.count"))


def report(*findings: Finding, boot: str = "boot-1", gpus: tuple[GpuUnit, ...] | None = None) -> StackReport:
    there = tuple(unit(number) for number in range(4)) if gpus is None else gpus
    identity = Identity("i-1", boot, tuple(sorted(u.uuid for u in there)), "580", "e", "j") if boot else None
    host = HostReport("node-0", "", "i-1", "p5.48xlarge", combine(findings), findings, identity, units=there)
    return StackReport(host.verdict, (host,), DATE)


def branded(*findings: Finding, **options: Any) -> dict[str, bool]:
    """UUID to whether the unit is bad already (else a suspect)."""
    return {unit.uuid: unit.bad for unit in units.updated((), report(*findings, **options))}


def test_a_gpu_that_must_be_replaced_is_remembered_with_place_time_and_reason() -> None:
    (found,) = units.updated((), report(failed("memory.row_remap", "node-0/GPU3")))
    assert found == BadUnit(
        uuid(3),
        "1653",
        "NVIDIA H100 80GB HBM3",
        "node-0",
        "i-1",
        "memory.row_remap",
        "broken",
        DATE,
        FaultClass.REPLACE_NOW,
        ("boot-1",),
    )
    assert found.bad


@pytest.mark.parametrize("subject", ["node-0/GPU2", "node-0/GPU2/link7", "node-0/0000:55:00.0"])
def test_a_gpu_is_found_by_index_by_link_and_by_pci_address(subject: str) -> None:
    assert branded(failed("kernel.xid", subject)) == {uuid(2): True}


@pytest.mark.parametrize("subject", ["node-0", "node-0/GPU0-GPU1", "node-0/0000:c5:00.0", "node-0/GPU9"])
def test_a_fault_of_no_single_gpu_is_the_whole_host_s(subject: str) -> None:
    found = units.updated((), report(failed("kernel.sxid", subject)))
    assert [entry.uuid for entry in found] == [uuid(number) for number in range(4)]
    assert all(entry.whole_host for entry in found)


def test_what_needs_one_reboot_makes_a_suspect_and_its_return_after_the_reboot_a_bad_unit() -> None:
    fault = failed("fabric.state", "node-0/GPU1", FaultClass.REBOOT_ONCE)
    once = units.updated((), report(fault))
    again = units.updated(once, report(fault))
    rebooted = units.updated(again, report(fault, boot="boot-2"))
    assert [entry.bad for entry in (*once, *again, *rebooted)] == [False, False, True]


def test_a_suspect_is_none_any_more_once_its_host_is_good_but_a_bad_unit_stays_bad() -> None:
    once = units.updated((), report(failed("fabric.state", "node-0/GPU1", FaultClass.REBOOT_ONCE)))
    bad = units.updated(once, report(failed("gpu.lost", "node-0/GPU2")))
    assert [entry.uuid for entry in units.updated(bad, report(passed("gpu.lost")))] == [uuid(2)]


def test_a_fault_to_be_rebooted_away_counts_only_where_the_boot_is_known() -> None:
    assert branded(failed("fabric.state", "node-0/GPU1", FaultClass.REBOOT_ONCE), boot="") == {}


@pytest.mark.parametrize(
    "finding",
    [
        pytest.param(failed("gpu.name", "node-0/GPU0"), id="wrong type"),
        pytest.param(failed("gpu.count", "node-0"), id="what is absent"),
        pytest.param(failed("gpu.known_bad", "node-0/GPU0"), id="itself"),
        pytest.param(failed("gpu.temperature", "node-0/GPU0"), id="the room"),
        pytest.param(failed("kernel.xid", "node-0/GPU0", FaultClass.SOFTWARE), id="software"),
        pytest.param(failed("kernel.xid", "node-0/GPU0", required=False), id="advisory"),
        pytest.param(failed("kernel.xid", "node-0/GPU0", verdict=Verdict.UNKNOWN), id="could not look"),
    ],
)
def test_healthy_hardware_is_not_branded(finding: Finding) -> None:
    assert branded(*AS_DECLARED, finding) == {}


def test_a_value_of_the_profile_accuses_only_a_machine_that_is_what_it_was_declared_to_be() -> None:
    links = failed("nvlink.links_active", "node-0/GPU0")
    assert branded(*AS_DECLARED, links) == {uuid(0): True}
    assert branded(passed("gpu.name"), failed("gpu.count", "node-0"), links) == {}


@pytest.mark.parametrize("key", [ZERO, "", "N/A", f"MIG-{uuid(0)[4:]}", "GPU-0", f"GPU-{'f' * 32}"])
def test_what_names_no_board_is_no_key(key: str) -> None:
    assert branded(failed("gpu.lost", "node-0/GPU0"), gpus=(unit(0, uuid=key),)) == {}


def test_a_uuid_that_two_gpus_have_is_no_key() -> None:
    twins = (unit(0), unit(1, uuid=uuid(0)))
    assert branded(failed("gpu.lost", "node-0/GPU0"), gpus=twins) == {}


def test_a_virtual_gpu_has_no_uuid_of_its_own() -> None:
    gpus = (Gpu(0, uuid=uuid(0), virtualization="VGPU"), Gpu(1, uuid=uuid(1), virtualization="Pass-Through"))
    assert [found.uuid for found in units.units_of(Facts({GpuInventory: GpuInventory("nvml", gpus)}))] == ["", uuid(1)]
    assert units.units_of(Facts({})) == ()
    assert ABSENT is Gpu(0).uuid


def test_a_memory_reads_back_what_it_wrote() -> None:
    kept = units.updated((), report(failed("gpu.lost", "node-0/GPU0"), failed("kernel.sxid", "node-0")))
    assert units.parse(units.dump(kept)) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": "kiln/bad-units/v2", "units": []}',
        '{"schema": "kiln/bad-units/v1"}',
        '{"schema": "kiln/bad-units/v1", "units": [{"uuid": "GPU-0"}]}',
    ],
)
def test_a_memory_that_is_half_read_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        units.parse(text)


def test_a_record_with_a_uuid_that_is_no_key_is_refused() -> None:
    text = units.dump(units.updated((), report(failed("gpu.lost", "node-0/GPU0")))).replace(uuid(0), ZERO)
    with pytest.raises(ParseError, match="not a unit"):
        units.parse(text)


def here(kept: tuple[BadUnit, ...], host: str, instance_id: str) -> list[bool]:
    known = units.known_bad(kept)
    return [unit.here for unit in units.told_to(known, host=host, instance_id=instance_id)]


def test_only_bad_units_are_told_and_here_is_the_same_instance_or_without_ids_the_same_name() -> None:
    bad = units.updated((), report(failed("gpu.lost", "node-0/GPU0")))
    suspect = units.updated(bad, report(failed("fabric.state", "node-0/GPU1", FaultClass.REBOOT_ONCE)))
    assert here(suspect, "node-0", "i-1") == here(suspect, "another-name", "i-1") == [True]
    assert here(suspect, "node-0", "i-2") == here(suspect, "node-0", "") == [False]
    nameless = tuple(replace(entry, instance_id="") for entry in bad)
    assert here(nameless, "node-0", "") == [True]
    assert here(nameless, "node-9", "") == here(nameless, "node-0", "i-1") == [False]


def test_forgetting_takes_every_record_of_a_unit_whatever_the_case() -> None:
    kept = units.updated((), report(failed("gpu.lost", "node-0/GPU0"), failed("kernel.xid", "node-0/GPU0")))
    assert len(kept) == 2
    assert units.forget(kept, uuid(0).upper()) == ()


def test_the_first_rejection_keeps_its_date() -> None:
    first = units.updated((), report(failed("gpu.lost", "node-0/GPU0")))
    later = replace(report(failed("gpu.lost", "node-0/GPU0"), boot="boot-2"), started="2026-12-24T10:00:00Z")
    (found,) = units.updated(first, later)
    assert (found.date, found.boots) == (DATE, ("boot-1", "boot-2"))


def test_every_check_that_brands_exists() -> None:
    known = {check.id for check in CHECKS}
    assert known >= units.ACCUSING | units.ACCUSING_IF_AS_DECLARED
    assert not units.ACCUSING & units.ACCUSING_IF_AS_DECLARED
