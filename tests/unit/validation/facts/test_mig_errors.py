"""In MIG mode each slice counts its own uncorrectable errors: they are the GPU's, whatever its own count says."""

from __future__ import annotations

import pytest

from validation.facts import smi_text, smi_xml

SLICE_XML = (
    "<mig_device><ecc_error_count><volatile_count><sram_uncorrectable>{}</sram_uncorrectable></volatile_count>"
    "</ecc_error_count></mig_device>"
)
XML = (
    "<nvidia_smi_log><gpu id='00000000:3B:00.0'><mig_devices>{slices}</mig_devices><ecc_errors><volatile>"
    "<sram_uncorrectable>{own}</sram_uncorrectable><dram_uncorrectable>{own}</dram_uncorrectable>"
    "</volatile></ecc_errors></gpu></nvidia_smi_log>"
)
SLICE_TEXT = """    MIG Device
        Index                 : {index}
        ECC Errors
            Volatile
                SRAM Uncorrectable : {count}
"""
TEXT = """GPU 00000000:3B:00.0
{slices}    ECC Errors
        Volatile
            SRAM Uncorrectable : {own}
            DRAM Uncorrectable : {own}
"""


@pytest.mark.parametrize(
    ("own", "slices", "total"), [("0", ("0", "0"), 0), ("0", ("0", "3"), 3), ("N/A", ("1", "2"), 3), ("4", ("1",), 8)]
)
def test_the_errors_of_slices_are_counted_in_xml_and_in_text(own: str, slices: tuple[str, ...], total: int) -> None:
    xml = XML.format(own=own, slices="".join(SLICE_XML.format(count) for count in slices))
    text = TEXT.format(
        own=own, slices="".join(SLICE_TEXT.format(index=at, count=count) for at, count in enumerate(slices))
    )
    assert smi_xml.parse(xml).gpus[0].ecc.volatile_uncorrected == total
    assert smi_text.parse(text).gpus[0].ecc.volatile_uncorrected == total
