"""The host around the GPUs, as the probe writes it and as df and timedatectl print it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profiles.errors import ParseError
from validation.facts import host_state
from validation.facts.host_state import Filesystem, MemoryController, Mount
from validation.facts.missing import Missing, Reason

STATE = """\
/proc/meminfo/MemTotal:2093796556
/proc/meminfo/SwapTotal:0
/proc/cmdline:iommu=pt
/proc/cpuinfo:no hypervisor flag
/sys/devices/system/edac/mc/mc0/ce_count:7
/sys/devices/system/edac/mc/mc0/ue_count:0
/sys/devices/system/edac/mc/mc1/ce_count:0
/sys/devices/system/edac/mc/mc1/ue_count:<Input/output error>
/sys/module/nvidia:loaded
/proc/mounts:/ ext4 rw,relatime
/proc/mounts:/mnt/my\\040disk xfs ro,noatime
/etc/docker/daemon.json:nvidia
/etc/containerd/config.toml:other
/var/run/cdi/nvidia.yaml:cdi
"""
DF = """\
Filesystem     1024-blocks     Used Available Capacity Mounted on
/dev/root        101430960 40226148  61188428      40% /
tmpfs                    0        0         0       - /run/none
/dev/nvme1n1        976762   976762        -4     100% /mnt/my disk
"""


def test_every_kind_of_line_is_read() -> None:
    found = host_state.parse_state(STATE)
    assert (found.memory_kib, found.swap_kib, found.command_line, found.virtual) == (2093796556, 0, "iommu=pt", False)
    unread = Missing(Reason.COULD_NOT_LOOK, "<Input/output error>")
    assert found.controllers == (MemoryController("mc0", 7, 0), MemoryController("mc1", 0, unread))
    assert found.modules == {"nvidia"}
    assert found.mounts == (Mount("/", "ext4", read_only=False), Mount("/mnt/my disk", "xfs", read_only=True))
    assert found.runtimes == {"/etc/docker/daemon.json": True, "/etc/containerd/config.toml": False}
    assert found.cdi == ("/var/run/cdi/nvidia.yaml",)


def test_a_guest_says_so() -> None:
    assert host_state.parse_state(STATE.replace("no hypervisor flag", "hypervisor")).virtual


@pytest.mark.parametrize("line", ["/proc/meminfo/MemTotal", "/proc/meminfo/SwapTotal", "/proc/cpuinfo"])
def test_a_state_without_a_needed_line_is_refused(line: str) -> None:
    without = "".join(row + "\n" for row in STATE.splitlines() if not row.startswith(line))
    with pytest.raises(ParseError, match="not told"):
        host_state.parse_state(without)


def test_rows_of_df_are_read_with_blanks_and_without_capacity() -> None:
    rows = host_state.parse_df(DF).rows
    assert rows[0] == Filesystem("/", 101430960, 61188428)
    assert [(row.target, row.free_kib) for row in rows[1:]] == [("/run/none", 0), ("/mnt/my disk", -4)]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("      Universal time: Fri\nSystem clock synchronized: yes\n         NTP service: active\n", True),
        ("System clock synchronized: no\n", False),
        ("     NTP enabled: yes\nNTP synchronized: yes\n RTC in local TZ: no\n", True),  # systemd 219
    ],
)
def test_the_clock_is_held_or_not(text: str, held: bool) -> None:
    assert host_state.parse_clock(text).synchronised is held


def test_processes_are_counted_and_named() -> None:
    found = host_state.parse_processes("processes:312\nzombies:2\nblocked:4242 python3 train.py\n")
    assert (found.count, found.zombies, found.blocked) == (312, 2, ((4242, "python3 train.py"),))


def test_acs_is_read_by_bridge() -> None:
    controls = host_state.parse_acs("0000:50:01.0:0x001d\n0000:51:00.0:<not root>\n").controls
    assert controls == {"0000:50:01.0": 0x1D, "0000:51:00.0": Missing(Reason.COULD_NOT_LOOK, "<not root>")}
    assert host_state.parse_acs("").controls == {}


def test_the_buses_behind_a_bridge_and_the_iommu_of_a_gpu_are_read_beside_it() -> None:
    text = (
        "0000:50:01.0:0x001d 81-85\n0000:51:00.0:none 82-85\n0000:52:00.0:iommu DMA-FQ\n0000:53:00.0:iommu <denied>\n"
    )
    found = host_state.parse_acs(text)
    assert found.controls == {"0000:50:01.0": 0x1D}
    assert found.buses == {"0000:50:01.0": (81, 85), "0000:51:00.0": (82, 85)}
    assert found.iommu == {"0000:52:00.0": "DMA-FQ", "0000:53:00.0": Missing(Reason.COULD_NOT_LOOK, "<denied>")}


Parse = Callable[[str], object]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (host_state.parse_state, ""),
        (host_state.parse_state, "a line\n" + STATE),
        (host_state.parse_state, STATE.replace("2093796556", "much")),
        (host_state.parse_state, STATE.replace("ext4 rw,relatime", "ext4")),
        (host_state.parse_df, ""),
        (host_state.parse_df, DF.splitlines()[0]),
        (host_state.parse_df, DF.replace("1024-blocks", "1K-blocks")),
        (host_state.parse_df, DF.replace("Filesystem", "Dateisystem")),
        (host_state.parse_df, DF.replace("61188428", "")),
        (host_state.parse_clock, "System has not been booted with systemd as init system (PID 1).\n"),
        (host_state.parse_clock, "System clock synchronized: ja\n"),
        (host_state.parse_processes, "processes:312\n"),
        (host_state.parse_processes, "processes:many\nzombies:0\n"),
        (host_state.parse_acs, "0000:50:01.0 0x001d\n"),
        (host_state.parse_acs, "bridge:0x001d\n"),
        (host_state.parse_acs, "0000:50:01.0:0x001d 81\n"),
        (host_state.parse_acs, "0000:50:01.0:iommu\n"),
    ],
)
def test_other_texts_are_refused(parse: Parse, text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)
