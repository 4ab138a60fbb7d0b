"""nvidia-smi -q as text: same words under different headings, and what a paste left out."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import smi_text
from validation.facts.missing import Missing, Reason

HEAD = """
==============NVSMI LOG==============

Driver Version                            : 580.105.08
CUDA Version                              : 13.0

Attached GPUs                             : {attached}
"""
GPU = """GPU 0000000{index}:00:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    GPU UUID                              : GPU-{index}
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    Clocks Event Reasons
        Idle                              : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 0 MiB
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable            : 0
            DRAM Correctable              : 3
            DRAM Uncorrectable            : 0
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 0
        Pending                           : No
        Remapping Failure Occurred        : No
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4242
            Type                          : C
        Process ID                        : 4243
            Type                          : C
"""


def log(count: int = 2, attached: int = 2) -> str:
    return HEAD.format(attached=attached) + "\n".join(GPU.format(index=index) for index in range(1, count + 1))


def test_one_word_under_three_headings_is_three_fields() -> None:
    gpu = smi_text.parse(log().replace("Pending                           : No", "Pending        : Yes", 1)).gpus[0]
    assert (gpu.mig_pending, gpu.remapped_rows.pending, gpu.ecc.enabled) == (False, True, True)


def test_gpus_are_told_apart_by_their_pci_domain() -> None:
    assert [gpu.pci_address for gpu in smi_text.parse(log()).gpus] == ["0001:00:00.0", "0002:00:00.0"]


def test_processes_are_counted() -> None:
    assert smi_text.parse(log()).gpus[0].processes == 2
    block = GPU.format(index=1)
    none = HEAD.format(attached=1) + block[: block.index("    Processes")] + "    Processes        : None\n"
    assert smi_text.parse(none).gpus[0].processes == 0


def test_a_reason_below_another_one_is_read() -> None:
    text = log().replace("HW Thermal Slowdown           : Not Active", "HW Thermal Slowdown           : Active", 1)
    assert smi_text.parse(text).gpus[0].throttle_reasons == frozenset({"gpu_idle", "hw_thermal_slowdown"})


def test_gpus_that_are_attached_but_not_shown_are_said_to_be_left_out() -> None:
    assert smi_text.parse(log(1)).omitted == ("2 GPUs are attached, 1 are shown",)
    assert smi_text.parse(log()).omitted == ()


def test_dots_in_a_paste_are_said_to_leave_something_out() -> None:
    text = log().replace("    MIG Mode", "    [...]\n    MIG Mode", 1)
    assert any("left out" in reason for reason in smi_text.parse(text).omitted)


def test_a_block_cut_before_its_processes_is_said_to_end_early() -> None:
    text = log()
    assert any("ends before" in reason for reason in smi_text.parse(text[: text.rindex("    Processes")]).omitted)


def test_one_section_alone_is_whole() -> None:
    pages = "\nAttached GPUs   : 1\nGPU 00000001:00:00.0\n    Retired Pages\n        Single Bit ECC      : 3\n"
    inventory = smi_text.parse(f"{pages}        Double Bit ECC      : 1\n        Pending Page Blocklist : Yes\n")
    assert inventory.omitted == ()
    assert inventory.gpus[0].retired_pages.pending is True
    assert inventory.gpus[0].retired_pages.single_bit == 3


def test_a_section_of_one_word_gives_that_word_to_its_fields() -> None:
    text = "GPU 00000001:00:00.0\n    Remapped Rows     : N/A\n"
    assert smi_text.parse(text).gpus[0].remapped_rows.failure == Missing(Reason.NOT_APPLICABLE, "N/A")


def test_a_text_without_a_gpu_is_refused() -> None:
    with pytest.raises(ParseError, match="no line 'GPU"):
        smi_text.parse(HEAD.format(attached=8))
    with pytest.raises(ParseError, match="No devices were found"):
        smi_text.parse("No devices were found\n")
    with pytest.raises(ParseError, match="twice"):
        smi_text.parse(HEAD.format(attached=2) + GPU.format(index=1) + GPU.format(index=1))
