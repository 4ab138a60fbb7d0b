"""The host around the GPUs, read below a root."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from validation.probe import hoststate
from validation.probe.files import Root
from validation.probe.process import ToolMissingError

Files = dict[str, str | bytes]


@pytest.fixture
def told(tmp_path: Path) -> Callable[[Callable[[Root], Callable[..., None]], Files], str]:
    def run(task: Callable[[Root], Callable[..., None]], files: Files) -> str:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        written: list[str] = []
        task(Root(str(tmp_path)))(written.append)
        return "".join(written)

    return run


Told = Callable[[Callable[[Root], Callable[..., None]], Files], str]
MEMORY: Files = {"proc/meminfo": "MemTotal:  1000 kB\nMemFree: 1 kB\nSwapTotal:  0 kB\n"}


def test_the_state_is_one_line_a_thing(told: Told) -> None:
    files: Files = {
        **MEMORY,
        "proc/cmdline": "root=UUID=1 ro password=hunter2 iommu=pt pci=realloc mem=64G\n",
        "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor\n",
        "proc/mounts": "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\nsysfs /sys/fs/bpf bpf rw 0 0\n",
        "sys/devices/system/edac/mc/mc0/ce_count": "0\n",
        "sys/devices/system/edac/mc/mc0/ue_count": "2\n",
        "sys/module/nouveau/refcnt": "0\n",
        "etc/docker/daemon.json": '{"runtimes": {"nvidia": {}}, "auth": "secret"}',
        "etc/cdi/nvidia.yaml": "cdiVersion: 0.6.0\n",
    }
    assert told(hoststate.state, files).splitlines() == [
        "/proc/meminfo/MemTotal:1000",
        "/proc/meminfo/SwapTotal:0",
        "/proc/cmdline:iommu=pt pci=realloc mem=64G",
        "/proc/cpuinfo:hypervisor",
        "/sys/devices/system/edac/mc/mc0/ce_count:0",
        "/sys/devices/system/edac/mc/mc0/ue_count:2",
        "/sys/module/nouveau:loaded",
        "/proc/mounts:/ ext4 rw",
        "/etc/docker/daemon.json:nvidia",
        "/etc/cdi/nvidia.yaml:cdi",
    ]


def test_a_host_that_shows_next_to_nothing_is_read_as_far_as_it_goes(told: Told) -> None:
    assert told(hoststate.state, MEMORY).splitlines()[-1] == "/proc/cpuinfo:no hypervisor flag"


@pytest.mark.parametrize("task", [hoststate.state, hoststate.processes, hoststate.acs])
def test_a_root_without_the_folder_has_none_of_it(told: Told, task: Callable[[Root], Callable[..., None]]) -> None:
    with pytest.raises(ToolMissingError):
        told(task, {})


def config(*capabilities: tuple[int, int]) -> bytes:
    """A configuration space with these extended capabilities, (id, control), one after the other."""
    space = bytearray(4096)
    for number, (kind, control) in enumerate(capabilities):
        here, following = 256 + 64 * number, 256 + 64 * (number + 1) if number + 1 < len(capabilities) else 0
        space[here : here + 8] = struct.pack("<IHH", kind | 1 << 16 | following << 20, 0x005F, control)
    return bytes(space)


def test_acs_is_found_among_the_extended_capabilities_of_bridges(told: Told) -> None:
    folder = "sys/bus/pci/devices/0000:5{}:00.0/{}"
    files: Files = {}
    for number, (kind, space) in enumerate(
        [
            ("0x060400", config((0x0001, 0), (0x000D, 0x001D))),
            ("0x060400", config((0x0001, 0))),
            ("0x030200", config((0x000D, 0x001D))),
            ("0x060400", config((0x000D, 0))[:256]),
        ]
    ):
        files.update({folder.format(number, "class"): kind + "\n", folder.format(number, "config"): space})
    short = "none" if os.getuid() == 0 else "<not root>"  # a conventional bridge has no extended capabilities
    assert told(hoststate.acs, files) == f"0000:50:00.0:0x001d\n0000:51:00.0:none\n0000:53:00.0:{short}\n"


def test_the_buses_behind_a_bridge_and_the_iommu_of_a_gpu_are_told(told: Told) -> None:
    folder = "sys/bus/pci/devices/0000:{}:00.0/{}"
    files: Files = {
        folder.format("50", "class"): "0x060400\n",
        folder.format("50", "config"): config((0x000D, 0x0001)),
        folder.format("50", "secondary_bus_number"): "81\n",
        folder.format("50", "subordinate_bus_number"): "85\n",
    }
    for bus, vendor, kind, group in (
        ("51", "0x10de", "0x030200", "DMA-FQ\n"),
        ("52", "0x10de", "0x030200", None),
        ("53", "0x10de", "0x068000", "identity\n"),  # an NVSwitch
        ("54", "0x1a03", "0x030000", "identity\n"),  # the graphics of the board's management
    ):
        files.update({folder.format(bus, "vendor"): f"{vendor}\n", folder.format(bus, "class"): f"{kind}\n"})
        files.update({} if group is None else {folder.format(bus, "iommu_group/type"): group})
    assert told(hoststate.acs, files) == (
        "0000:50:00.0:0x0001 81-85\n0000:51:00.0:iommu DMA-FQ\n0000:52:00.0:iommu none\n"
    )


def test_a_list_of_capabilities_that_goes_in_a_circle_ends(tmp_path: Path) -> None:
    space = bytearray(4096)
    space[256:260] = struct.pack("<I", 0x0001 | 1 << 16 | 256 << 20)
    (tmp_path / "config").write_bytes(space)
    assert hoststate.acs_control(Root(str(tmp_path)), "/config") is None


def test_processes_are_counted_and_the_blocked_named(told: Told) -> None:
    files: Files = {
        "proc/1/stat": "1 (systemd) S 0 1 1 0\n",
        "proc/2/stat": "2 (kthreadd) S 0 0 0 0\n",
        "proc/60/stat": "60 (kworker/u8:1) D 2 0 0 0\n",
        "proc/4242/stat": "4242 (my (odd) name) D 1 0 0 0\n",
        "proc/4243/stat": "4243 (defunct) Z 1 0 0 0\n",
        "proc/4244/stat": "torn",
    }
    assert told(hoststate.processes, files) == "processes:5\nzombies:1\nblocked:4242 my (odd) name\n"


def test_the_family_of_a_process_is_found_whatever_the_order() -> None:
    table = {7: ("a", "S", 5), 5: ("b", "S", 3), 9: ("c", "S", 1), 3: ("d", "S", 1)}
    assert hoststate.descendants(table, 3) == [3, 5, 7]
