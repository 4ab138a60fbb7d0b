"""nvidia-smi's table: every generation's frame, what stands where, and what is no whole table."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import smi_table
from validation.facts.gpu import Gpu
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.smi_rows import GpuProcess
from validation.facts.smi_table import SmiTable

RULE = "+-----------------------------------------+------------------------+----------------------+\n"
HEAD = (
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
    "|                                         |                        |               MIG M. |\n"
    "|=========================================+========================+======================|\n"
)
BANNER = "| NVIDIA-SMI 570.1              Driver Version: 570.1        CUDA Version: 12.8     |\n"
NONE = (
    f"\n{RULE}| Processes:                                                                              |\n"
    "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
    "|        ID   ID                                                               Usage      |\n"
    "|=========================================================================================|\n"
    "{processes}" + RULE
)
IDLE = "|  No running processes found                                                             |\n"
ROW = (
    "|   {at}  {name:<24} {mode:>8}  |   0000000{at}:3B:00.0 Off |   {ecc:>17}  |\n"
    "| {fan:<4}  {temp:<4}   P0             {power:>4} /  700W |     102MiB /  81559MiB |      7%      Default |\n"
    "|                                         |                        |             {mig:>8} |\n"
)
GOOD = {"name": "NVIDIA H100 80GB HBM3", "mode": "On", "ecc": "0", "fan": "N/A", "temp": "32C", "power": "99W"}


def row(at: int = 0, **changes: str) -> str:
    return ROW.format(at=at, **{**GOOD, "mig": "Disabled", **changes}) + RULE


def table(*rows: str, processes: str = IDLE, banner: str = BANNER) -> str:
    return RULE + banner + RULE + HEAD + "".join(rows) + NONE.format(processes=processes)


def read(*rows: str, processes: str = IDLE) -> SmiTable:
    return smi_table.parse_table(table(*rows, processes=processes))


def one(**changes: str) -> Gpu:
    return read(row(0, **changes)).inventory.gpus[0]


def test_the_banner_and_every_cell_are_read() -> None:
    found = read(row(), row(1, ecc="3"))
    assert (found.smi, found.inventory.driver_version, found.inventory.cuda_driver_version) == (
        "570.1",
        "570.1",
        "12.8",
    )
    gpu = found.inventory.gpus[0]
    assert (gpu.name, gpu.pci_address, gpu.persistence) == ("NVIDIA H100 80GB HBM3", "0000:3b:00.0", True)
    assert (gpu.temperature_c, gpu.power_draw_w, gpu.power_limit_w) == (32, 99, 700)
    assert (gpu.memory_used_mib, gpu.memory_total_mib, gpu.compute_mode) == (102, 81559, "Default")
    assert (gpu.ecc.enabled, gpu.ecc.volatile_uncorrected, gpu.mig_enabled, gpu.processes) == (True, 0, False, 0)
    assert found.inventory.gpus[1].ecc.volatile_uncorrected == 3
    assert (found.errors, found.names, found.inventory.omitted) == ((), (), ())


def test_a_driver_from_610_on_and_one_of_windows_are_read_too() -> None:
    text = table(
        row(mode="WDDM"), banner="| NVIDIA-SMI 610.1       KMD Version: 610.1     CUDA UMD Version: 13.3   |\n"
    )
    found = smi_table.parse_table(text)
    assert (found.inventory.driver_version, found.inventory.cuda_driver_version) == ("610.1", "13.3")
    assert found.inventory.gpus[0].persistence == ABSENT


OLD = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.1                  Driver Version: 384.1                     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  Off  | 0000:07:00.0     Off |                    0 |
| 31%   44C  N/A     N/A /  N/A |     14MB /  6143MB   |     N/A   E. Process |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Compute processes:                                               GPU Memory |
|  GPU       PID  Process name                                     Usage      |
|=============================================================================|
|    0      1516  my miner                                            23 MB   |
+-----------------------------------------------------------------------------+
"""


@pytest.mark.parametrize("change", [str, lambda text: text.replace("  ", " ").replace("  ", " "), str.expandtabs])
def test_an_old_table_without_cuda_and_mig_is_read_however_its_blanks_are(change: object) -> None:
    found = smi_table.parse_table(change(OLD))  # type: ignore[operator]
    (gpu,) = found.inventory.gpus
    assert (gpu.pci_address, gpu.memory_used_mib, gpu.ecc.volatile_uncorrected) == ("0000:07:00.0", 14, 0)
    assert (gpu.name, found.names, gpu.mig_enabled) == (ABSENT, ("Tesla V100-SXM2...",), ABSENT)
    assert found.processes == (GpuProcess(1516, "my miner", "GPU0", 23),)
    assert found.inventory.omitted == ()


@pytest.mark.parametrize(
    ("changes", "cells"),
    [
        ({"fan": "ERR!"}, ("fan",)),
        ({"power": "ERR!"}, ("power",)),
        ({"mode": "ERR!", "mig": "ERR!"}, ("name", "MIG mode")),
        ({"ecc": "ERR!", "temp": "ERR!"}, ("ECC", "temperature")),
    ],
)
def test_a_cell_that_prints_an_error_is_named(changes: dict[str, str], cells: tuple[str, ...]) -> None:
    found = read(row(), row(1, **changes))
    assert found.errors == ((1, cells),)


def test_an_error_of_the_power_alone_is_no_value_and_no_fault() -> None:
    assert one(power="ERR!").power_draw_w == ABSENT
    assert one(temp="ERR!").temperature_c == Missing(Reason.FAULT, "ERR!")


def test_a_mode_that_changes_with_the_next_reset_is_told() -> None:
    gpu = one(mig="Enabled*")
    assert (gpu.mig_enabled, gpu.mig_pending) == (True, False)
    assert one(mig="N/A").mig_enabled == Missing(Reason.NOT_APPLICABLE, "N/A")


def test_the_gpu_of_a_tegra_is_on_no_bus_and_says_of_nothing_how_much() -> None:
    found = smi_table.parse_table(
        table(
            "|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |\n"
            "| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |\n"
            "|                                         |                      |                  N/A |\n" + RULE
        )
    )
    (gpu,) = found.inventory.gpus
    assert (gpu.name, gpu.pci_address, found.errors, found.inventory.omitted) == ("Orin (nvgpu)", ABSENT, (), ())


def test_ecc_that_is_off_or_not_there_is_no_count() -> None:
    assert one(ecc="Off").ecc.enabled is False
    assert one(ecc="N/A").ecc.enabled == Missing(Reason.NOT_APPLICABLE, "N/A")
    assert one(ecc="On").ecc.volatile_uncorrected == ABSENT


def test_the_errors_of_slices_are_the_gpus() -> None:
    slices = (
        f"{RULE}| MIG devices:                                                      |\n"
        "| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|      Shared |\n"
        "|==================+==================================+===========+=============|\n"
        "|  0    1   0   0  |              12MiB /  9856MiB    | 14      0 |  1   0    1 |\n"
        "|                  |               0MiB / 16383MiB    |           |             |\n"
        "|  0    2   0   1  |              12MiB /  9856MiB    | 14      2 |  1   0    1 |\n"
    )
    found = smi_table.parse_table(table(row(ecc="On", mig="Enabled"), slices, processes=IDLE))
    assert found.inventory.gpus[0].ecc.volatile_uncorrected == 2
    assert [(one.instance, one.memory_total_mib) for one in found.mig_slices] == [(1, 9856), (2, 9856)]


def test_processes_belong_to_their_gpu() -> None:
    processes = (
        "|    1   N/A  N/A          123456      C   python -m train --lr 1                     71000MiB |\n"
        "|    1   N/A  N/A            4242    C+G   /usr/lib/xorg/Xorg                            6MiB |\n"
    )
    found = read(row(), row(1), processes=processes)
    assert [gpu.processes for gpu in found.inventory.gpus] == [0, 2]
    assert found.processes == (
        GpuProcess(123456, "python -m train --lr 1", "GPU1", 71000),
        GpuProcess(4242, "/usr/lib/xorg/Xorg", "GPU1", 6),
    )
    refused = read(row(), processes="|    0                    Not Supported                       |\n")
    assert refused.inventory.gpus[0].processes == Missing(Reason.NOT_APPLICABLE, "Not Supported")


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        ("Disabled |", "within the row of GPU 1"),
        ("| N/A   32C", "within the row of GPU 1"),
        (RULE + "\n", "before its table of processes"),
        (IDLE, "within its table of processes"),
    ],
)
def test_a_table_that_is_cut_says_where(cut: str, why: str) -> None:
    whole = table(row(), row(1))
    at = whole.rindex(cut) + len(cut)
    (omitted,) = smi_table.parse_table(whole[:at]).inventory.omitted
    assert why in omitted


def test_rows_left_out_by_dots_are_said() -> None:
    assert "left out" in read(row(), "......\n").inventory.omitted[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (RULE + BANNER, "no whole row of a GPU"),
        (table(row(ecc="0 %")), "'0 %' stands where the count of ECC errors is"),
        (table(row(temp="102MiB")), "is not fan, temperature, state and power"),
        (table(row().replace("102MiB /  81559MiB", "7%")), "are not memory and load"),
        (table(row(mig="Maybe")), "is no MIG mode"),
        (table(row(1), row(0)), "not in order"),
        (table(row()) + table(row(1)), "of different GPUs"),
    ],
)
def test_what_is_no_table_or_has_strange_cells_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        smi_table.parse_table(text)


def test_of_a_loop_the_last_table_stands_with_what_an_earlier_one_found() -> None:
    found = smi_table.parse_table(table(row(ecc="4", fan="ERR!")) + table(row(temp="50C")))
    (gpu,) = found.inventory.gpus
    assert (gpu.temperature_c, gpu.ecc.volatile_uncorrected, found.errors) == (50, 4, ((0, ("fan",)),))


def test_a_gpu_that_the_driver_lost_is_named() -> None:
    text = "Unable to determine the device handle for GPU1: 0000:5E:00.0: Unknown Error\n" + table(row())
    assert smi_table.parse_table(text).inventory.lost == ("0000:5e:00.0",)


def test_a_warning_of_the_inforom_below_the_table_is_kept() -> None:
    text = table(row()) + "WARNING: infoROM is corrupted at gpu 00000000:3B:00.0\n"
    assert smi_table.parse_table(text).inventory.warned == ("0000:3b:00.0",)


def test_gpus_before_the_first_or_between_two_that_are_shown_are_missed() -> None:
    assert read(row(2), row(3)).inventory.omitted == ("GPUs 0 to 1 are not shown",)
    assert read(row(0), row(2), row(5)).inventory.omitted == ("GPUs 1, 3, 4 are not shown",)
    lost = "Unable to determine the device handle for GPU1: 0000:5E:00.0: Unknown Error\n"
    assert smi_table.parse_table(lost + table(row(0), row(2))).inventory.omitted == ()


def test_a_table_of_processes_without_its_bar_is_one() -> None:
    text = table(row()).replace("| Processes:", "Processes:")
    assert smi_table.parse_table(text).inventory.gpus[0].processes == 0
