"""--query-gpu: columns by name, sentinels with blanks in them, no row too short."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import smi_csv
from validation.facts.missing import ABSENT, Missing, Reason

HEADER = "index, name, pci.bus_id, memory.total [MiB], count, clocks_event_reasons.gpu_idle, ecc.mode.current\n"
ROWS = "".join(f"{index}, NVIDIA L4, 00000000:{index:02X}:00.0, 23034 MiB, 2, Active, Enabled\n" for index in range(2))


def test_columns_are_read_by_name_in_any_order() -> None:
    one = smi_csv.parse(HEADER + ROWS)
    other = smi_csv.parse("name, index\nNVIDIA L4, 0\nNVIDIA L4, 1\n")
    assert [gpu.name for gpu in one.gpus] == [gpu.name for gpu in other.gpus] == ["NVIDIA L4"] * 2
    assert one.gpus[1].pci_address == "0000:01:00.0"
    assert other.gpus[0].memory_total_mib == ABSENT


def test_a_sentinel_with_a_blank_in_it_is_one_cell() -> None:
    gpu = smi_csv.parse("name, memory.used [MiB]\nNVIDIA A100, [Insufficient Permissions]\n").gpus[0]
    assert gpu.memory_used_mib == Missing(Reason.COULD_NOT_LOOK, "[Insufficient Permissions]")


def test_a_number_without_its_unit_is_read_in_the_headers_unit() -> None:
    assert smi_csv.parse("index, memory.total [MiB]\n0, 23034\n").gpus[0].memory_total_mib == 23034


def test_a_table_without_a_header_is_refused() -> None:
    with pytest.raises(ParseError, match="no header"):
        smi_csv.parse(ROWS)


def test_a_field_that_the_driver_does_not_know_is_named() -> None:
    with pytest.raises(ParseError, match="knows no field 'compute_cap'") as refused:
        smi_csv.parse('Field "compute_cap" is not a valid field to query.\n\n')
    assert "without compute_cap" in refused.value.remedy


def test_a_ragged_row_is_refused() -> None:
    with pytest.raises(ParseError, match="line 3: 6 cells under 7 columns"):
        smi_csv.parse(HEADER + ROWS.replace(", Enabled\n", "\n", 2).replace("Active\n", "Active, Enabled\n", 1))


def test_no_devices_is_not_a_header_and_not_a_gpu() -> None:
    with pytest.raises(ParseError, match="No devices were found"):
        smi_csv.parse("No devices were found\n")


def test_a_gpu_that_the_rows_do_not_show_is_left_out_or_lost() -> None:
    short = HEADER + ROWS.splitlines(keepends=True)[0]
    assert smi_csv.parse(short).omitted == ("2 GPUs are attached, 1 are shown",)
    lost = "Unable to determine the device handle for GPU0000:34:00.0: Unknown Error\n"
    inventory = smi_csv.parse(lost + short)
    assert inventory.omitted == ()
    assert len(inventory.lost) == 1


def test_the_same_column_or_index_twice_is_refused() -> None:
    with pytest.raises(ParseError, match="named twice"):
        smi_csv.parse("index, index\n0, 0\n")
    with pytest.raises(ParseError, match="same index"):
        smi_csv.parse("index, name\n0, NVIDIA L4\n0, NVIDIA L4\n")
    with pytest.raises(ParseError, match="no row"):
        smi_csv.parse("index, name\n")


def test_the_drivers_count_is_absent_where_it_was_not_asked_for() -> None:
    assert smi_csv.parse("index, name\n0, NVIDIA L4\n").attached == ABSENT


def test_the_fabric_columns_lose_the_label_that_the_driver_prints_in_them() -> None:
    inventory = smi_csv.parse("index, fabric.state, fabric.status\n0, state  In Progress, status N/A\n")
    assert inventory.gpus[0].fabric.state == "In Progress"
    status = inventory.gpus[0].fabric.status
    assert isinstance(status, Missing)
    assert status.reason is Reason.NOT_APPLICABLE


def test_a_row_of_a_lost_gpu_is_a_row_and_the_gpu_is_lost() -> None:
    text = "index, temperature.gpu, memory.used [MiB]\n0, 45, 3 MiB\n1, [GPU is lost], [GPU is lost]\n"
    inventory = smi_csv.parse(text)
    assert (len(inventory.gpus), inventory.lost) == (2, ("GPU1",))


def test_ecc_counts_asked_for_in_parts_are_summed_where_the_sum_is_known() -> None:
    name = "ecc.errors.uncorrected.aggregate"
    both = smi_csv.parse(f"index, {name}.dram, {name}.sram\n0, 3, 0\n1, 0, 0\n").gpus
    assert [gpu.ecc.aggregate_uncorrected for gpu in both] == [3, 0]
    half = smi_csv.parse(f"index, {name}.dram\n0, 3\n1, 0\n").gpus
    assert [gpu.ecc.aggregate_uncorrected for gpu in half] == [3, ABSENT]
    total = smi_csv.parse(f"index, {name}.dram, {name}.sram, {name}.total\n0, 3, 1, 4\n").gpus[0]
    assert total.ecc.aggregate_uncorrected == 4


def test_the_mask_of_clock_reasons_says_the_same_as_a_column_each() -> None:
    masked = smi_csv.parse("index, clocks_throttle_reasons.active\n0, 0x0000000000000048\n1, 0x0\n").gpus
    assert [gpu.throttle_reasons for gpu in masked] == [frozenset({"hw_slowdown", "hw_thermal_slowdown"}), frozenset()]
    lost = smi_csv.parse("index, clocks_event_reasons.active\n0, [GPU is lost]\n").gpus[0]
    assert lost.throttle_reasons == Missing(Reason.FAULT, "[GPU is lost]")
    with pytest.raises(ParseError, match="not a mask"):
        smi_csv.parse("index, clocks_event_reasons.active\n0, Active\n")


def test_of_a_loop_each_gpu_is_read_once_with_what_any_round_found() -> None:
    header = "timestamp, index, temperature.gpu, ecc.errors.uncorrected.volatile.total\n"
    rounds = "t1, 0, 40, 2\nt1, 1, 41, 0\n" + header + "t2, 0, 50, 1\nt2, 1, 51, 0\n"
    gpus = smi_csv.parse(header + rounds).gpus
    assert [(gpu.index, gpu.temperature_c, gpu.ecc.volatile_uncorrected) for gpu in gpus] == [(0, 50, 2), (1, 51, 0)]
    with pytest.raises(ParseError, match="tells the GPUs apart"):
        smi_csv.parse("timestamp, temperature.gpu\nt1, 40\nt2, 41\n")


def test_an_index_that_is_skipped_is_a_gpu_that_is_not_shown() -> None:
    assert smi_csv.parse("index, name\n0, NVIDIA L4\n2, NVIDIA L4\n").omitted == ("GPU 1 is not shown",)
    assert smi_csv.parse("name, temperature.gpu\nNVIDIA L4, 40\n").omitted == ()
