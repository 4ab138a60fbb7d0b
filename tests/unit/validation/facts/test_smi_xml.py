"""nvidia-smi -q -x: one whole document, no entities, lost GPUs named."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import smi_xml
from validation.facts.missing import ABSENT, Missing, Reason

LOST = "Unable to determine the device handle for GPU2: 0000:75:00.0: GPU is lost.  Reboot the system\n"


def test_the_fields_of_each_gpu_are_read(xml_text: str) -> None:
    inventory = smi_xml.parse(xml_text)
    first = inventory.gpus[0]
    assert (inventory.driver_version, inventory.cuda_driver_version, inventory.attached) == ("580.105.08", "13.0", 2)
    assert (first.pci_address, first.memory_total_mib, first.pcie.width) == ("0000:53:00.0", 81559, 16)
    assert (first.ecc.volatile_uncorrected, first.remapped_rows.pending, first.processes) == (0, False, 0)
    assert (first.throttle_reasons, first.recovery_action) == (frozenset({"gpu_idle"}), "None")
    assert first.fabric.state == ABSENT


def test_entities_are_refused_before_they_expand() -> None:
    bomb = '<?xml version="1.0"?>\n<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n'
    with pytest.raises(ParseError, match="declares XML entities"):
        smi_xml.parse(f"{bomb}<nvidia_smi_log>&b;</nvidia_smi_log>")


def test_a_line_before_the_document_names_the_lost_gpu(xml_text: str) -> None:
    inventory = smi_xml.parse(LOST + xml_text)
    assert inventory.lost == ("0000:75:00.0",)
    assert len(inventory.gpus) == 2


def test_a_gpu_whose_fields_say_that_it_is_lost_is_lost(xml_text: str) -> None:
    inventory = smi_xml.parse(xml_text.replace("<vbios_version>96.00.99.00.01", "<vbios_version>GPU is lost", 1))
    assert inventory.lost == ("0000:53:00.0",)


def test_without_xml_the_tools_own_words_are_the_reason() -> None:
    with pytest.raises(ParseError, match="Driver/library version mismatch"):
        smi_xml.parse("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n")
    with pytest.raises(ParseError, match="no XML document"):
        smi_xml.parse("hello\n")


def test_another_document_is_refused() -> None:
    with pytest.raises(ParseError, match="not <nvidia_smi_log>"):
        smi_xml.parse("<?xml version='1.0'?><other/>")


def test_a_section_of_one_word_gives_that_word_to_its_fields(xml_text: str) -> None:
    start, end = xml_text.index("<remapped_rows>"), xml_text.index("</remapped_rows>") + len("</remapped_rows>")
    text = xml_text[:start] + "<remapped_rows>N/A</remapped_rows>" + xml_text[end:]
    assert smi_xml.parse(text).gpus[0].remapped_rows.pending == Missing(Reason.NOT_APPLICABLE, "N/A")


def test_errors_are_summed_over_their_parts(xml_text: str) -> None:
    text = xml_text.replace("<dram_uncorrectable>0", "<dram_uncorrectable>5", 1).replace("_secded>0", "_secded>2", 1)
    assert smi_xml.parse(text).gpus[0].ecc.volatile_uncorrected == 7


def test_a_sum_with_a_part_gone_is_not_told_unless_errors_were_counted(xml_text: str) -> None:
    gone = xml_text.replace("\t\t\t\t<sram_uncorrectable_parity>0</sram_uncorrectable_parity>\n", "", 1)
    value = smi_xml.parse(gone).gpus[0].ecc.volatile_uncorrected
    assert isinstance(value, Missing)
    assert value.reason is Reason.COULD_NOT_LOOK
    counted = gone.replace("<dram_uncorrectable>0", "<dram_uncorrectable>5", 1)
    assert smi_xml.parse(counted).gpus[0].ecc.volatile_uncorrected == 5


def test_a_part_that_does_not_apply_counts_nothing(xml_text: str) -> None:
    text = xml_text.replace("<sram_uncorrectable_parity>0", "<sram_uncorrectable_parity>N/A", 1)
    assert smi_xml.parse(text).gpus[0].ecc.volatile_uncorrected == 0


def test_an_error_in_place_of_a_value_is_a_fault(xml_text: str) -> None:
    text = xml_text.replace("<gpu_temp>29 C", "<gpu_temp>[Unknown Error]", 1)
    assert smi_xml.parse(text).gpus[0].temperature_c == Missing(Reason.FAULT, "[Unknown Error]")


def test_a_list_of_clock_reasons_without_the_ones_every_driver_prints_is_not_read(xml_text: str) -> None:
    line = "\t\t\t<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>\n"
    assert smi_xml.parse(xml_text.replace(line, "")).gpus[0].throttle_reasons == ABSENT
