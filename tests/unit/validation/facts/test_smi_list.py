"""nvidia-smi -L and --version: MIG slices are no GPUs, KMD is the driver."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import smi_list
from validation.facts.missing import Missing, Reason

LIST = (
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
)


def test_slices_are_not_gpus() -> None:
    found = smi_list.parse_list(LIST)
    assert [gpu.uuid for gpu in found.inventory.gpus] == ["GPU-0", "GPU-1"]
    assert [(part.gpu, part.profile) for part in found.mig_devices] == [(0, "1g.10gb")]


@pytest.mark.parametrize("text", ["No devices were found\n", "", "GPU 0: NVIDIA L4\n", "command not found\n"])
def test_a_list_without_a_whole_gpu_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        smi_list.parse_list(text)


@pytest.mark.parametrize("shown", ["[removed]", "...", "", "<redacted>"])
def test_a_uuid_that_was_hidden_is_one_that_could_not_be_looked_at(shown: str) -> None:
    found = smi_list.parse_list(f"GPU 0: NVIDIA L4 (UUID: {shown})\nGPU 1: NVIDIA L4 (UUID: GPU-1)\n")
    first, second = found.inventory.gpus
    assert isinstance(first.uuid, Missing)
    assert first.uuid.reason is Reason.COULD_NOT_LOOK
    assert second.uuid == "GPU-1"


def test_a_lost_gpu_beside_the_list_is_lost() -> None:
    text = f"Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n{LIST}"
    assert smi_list.parse_list(text).inventory.lost == ("0000:34:00.0",)


def test_the_driver_is_named_kmd_from_610_on() -> None:
    old = "NVIDIA-SMI version  : 590.1\nNVML version        : 590.1\nDRIVER version      : 590.1\nCUDA Version : 13.1\n"
    new = (
        'NVIDIA-SMI version : 610.1\nDRIVER version : Deprecated, see "KMD version" instead\n'
        "KMD version : 610.1\nCUDA UMD version : 13.3\n"
    )
    assert (smi_list.parse_version(old).driver, smi_list.parse_version(old).cuda_driver) == ("590.1", "13.1")
    assert (smi_list.parse_version(new).driver, smi_list.parse_version(new).cuda_driver) == ("610.1", "13.3")
    assert isinstance(smi_list.parse_version(new).nvml, Missing)
    with pytest.raises(ParseError):
        smi_list.parse_version("NVIDIA-SMI version : 590.1\n")


def test_versions_of_two_outputs_that_differ_are_not_mixed() -> None:
    one = "NVIDIA-SMI version : 590.1\nNVML version : 590.1\nDRIVER version : 590.1\n"
    assert smi_list.parse_version(one + one).driver == "590.1"
    with pytest.raises(ParseError, match="line 6: DRIVER version is"):
        smi_list.parse_version(one + one.replace("DRIVER version : 590.1", "DRIVER version : 580.2"))


def test_a_slice_before_any_gpu_is_a_text_without_its_beginning() -> None:
    with pytest.raises(ParseError, match="line 1: a MIG device before any GPU: the text's beginning is missing"):
        smi_list.parse_list("  MIG 3g.48gb     Device  0: (UUID: MIG-1)\n")


def test_a_gpu_that_the_list_skips_is_not_shown_unless_it_is_lost() -> None:
    text = "GPU 0: NVIDIA L4 (UUID: GPU-0)\nGPU 2: NVIDIA L4 (UUID: GPU-2)\n"
    assert smi_list.parse_list(text).inventory.omitted == ("GPU 1 is not shown",)
    lost = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
    assert smi_list.parse_list(lost + text).inventory.omitted == ()
