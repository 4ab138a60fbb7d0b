"""Lines of drivers that no list has: found whoever writes them, once a shape; none is a good machine's."""

from __future__ import annotations

import pytest

from tests.unit.validation.facts.test_kernel_kinds import KINDS, WORKS
from validation.facts import kernel_log
from validation.facts.kernel_routine import is_of_a_driver, unlisted

NEW = [
    "NVRM: GPU 0000:4c:00.0: something that nobody has seen",
    "nvidia 0000:4c:00.0: odd",
    "nvidia-uvm: odd",
    "nvidia-nvswitch3: odd",
    "[drm] [nvidia-drm] [GPU ID 0x00004c00] odd",
    "mlx5_core 0000:9a:00.0 ens1np0: odd",
    "infiniband rdmap155s0: odd",
    "efa 0000:9b:00.0: odd",
    "ena 0000:00:06.0 ens6: odd",
    "nvme nvme2: odd",
    "nvme2n1: odd",
    "XFS (nvme1n1): odd",
    "EXT4-fs (nvme0n1p1): odd",
    "BTRFS info (device sda3 state EA): odd",
    "md/raid0:md0: odd",
]


@pytest.mark.parametrize("message", NEW)
def test_what_no_list_has_is_told(message: str) -> None:
    assert unlisted([message]) == (message,)


@pytest.mark.parametrize("message", ["usb 1-3: odd", "systemd[1]: odd", "nvidia-persistenced[77]: odd", "efabar: odd"])
def test_what_no_driver_of_these_says_is_not(message: str) -> None:
    assert not is_of_a_driver(message)
    assert unlisted([message]) == ()


def test_nothing_of_a_machine_that_works_is_told() -> None:
    assert unlisted(WORKS) == ()


def test_a_shape_is_told_once_and_not_without_end() -> None:
    assert unlisted([f"nvme nvme{number}: odd {number}" for number in range(50)]) == ("nvme nvme0: odd 0",)
    assert len(unlisted([f"NVRM: odd {'x' * number}" for number in range(50)])) == 20


def test_a_log_keeps_them_beside_its_events() -> None:
    lines = ["Linux version 6.8.0", *(message for _, message in KINDS), *WORKS, NEW[0]]
    log = kernel_log.parse("\n".join(f"[{number:12.6f}] {line}" for number, line in enumerate(lines)))
    assert log.unlisted == (NEW[0],)
    assert log.events
