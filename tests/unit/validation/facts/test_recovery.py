"""What the driver asks for, in each generation's words."""

from __future__ import annotations

import pytest

from validation.facts import smi_csv, smi_text, smi_xml

XML = "<nvidia_smi_log><gpu id='00000000:3B:00.0'>{}</gpu></nvidia_smi_log>"
STATUS = (
    "<gpu_reset_status><reset_required>{}</reset_required>"
    "<drain_and_reset_recommended>{}</drain_and_reset_recommended></gpu_reset_status>"
)
CASES = [("No", "No", "None"), ("Yes", "No", "GPU Reset"), ("No", "Yes", "Drain and Reset")]


@pytest.mark.parametrize(("required", "advised", "action"), CASES)
def test_drivers_530_to_570_say_whether_a_reset_is_required(required: str, advised: str, action: str) -> None:
    xml = smi_xml.parse(XML.format(STATUS.format(required, advised))).gpus[0]
    text = (
        "GPU 00000000:3B:00.0\n    GPU Reset Status\n"
        f"        Reset Required : {required}\n        Drain and Reset Recommended : {advised}\n"
    )
    csv = (
        "index, reset_status.reset_required, reset_status.drain_and_reset_recommended, name\n"
        f"0, {required}, {advised}, NVIDIA L4\n"
    )
    assert xml.recovery_action == smi_text.parse(text).gpus[0].recovery_action == action
    assert smi_csv.parse(csv).gpus[0].recovery_action == action


def test_the_newer_field_stands_where_both_are_there() -> None:
    both = STATUS.format(*["Requested functionality has been deprecated"] * 2)
    gpu = smi_xml.parse(XML.format(f"<gpu_recovery_action>Reboot</gpu_recovery_action>{both}")).gpus[0]
    assert gpu.recovery_action == "Reboot"
