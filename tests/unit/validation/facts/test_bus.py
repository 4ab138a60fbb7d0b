"""The PCI bus and NUMA nodes: lspci, /sys, numactl, lscpu."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import lspci, numa_tools, sysfs
from validation.facts.missing import ABSENT, Missing, Reason

LSPCI = (
    "0000:07:00.0 VGA compatible controller [0300]: NVIDIA Corporation GV100GL [Tesla V100] [10de:1db7] (rev a1)\n"
    "0000:07:00.1 Audio device [0403]: NVIDIA Corporation Device [10de:10f2] (rev a1)\n"
    "0000:08:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev ff) (prog-if ff)\n"
    "0000:09:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:22a3] (rev a1)\n"
)
PCI = "/sys/bus/pci/devices"


def test_gpus_are_told_from_audio_and_switches_and_a_dead_one_is_seen() -> None:
    bus = lspci.parse(LSPCI)
    assert [(gpu.address, gpu.dead) for gpu in bus.nvidia_gpus] == [("0000:07:00.0", False), ("0000:08:00.0", True)]
    assert len(bus.devices) == 4


def test_an_address_without_a_domain_is_in_domain_0() -> None:
    assert lspci.parse(LSPCI.replace("0000:07", "07").replace("0000:0", "0")).devices[0].address == "0000:07:00.0"


def test_links_and_unknown_headers_of_a_verbose_listing_are_read() -> None:
    text = (
        "07:00.0 3D controller [0302]: NVIDIA Corporation L4 [10de:27b8] (rev a1)\n\tSubsystem: x\n"
        "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8\n\n"
        "08:00.0 3D controller [0302]: NVIDIA Corporation L4 [10de:27b8] (rev a1)\n\t!!! Unknown header type 7f\n"
    )
    one, two = lspci.parse(text).devices
    assert (one.link_speed_max_gts, one.link_width_max, one.link_speed_gts, one.link_width) == (16, 16, 2.5, 8)
    assert two.dead


@pytest.mark.parametrize(
    "text",
    [
        "",
        "07:00.0 3D controller: NVIDIA Corporation L4 (rev a1)\n",
        "pcilib: Cannot open /proc/bus/pci\n",
        LSPCI + LSPCI,
    ],
)
def test_a_listing_without_numbers_or_with_a_function_twice_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        lspci.parse(text)


def sys_lines(address: str, **files: str) -> str:
    base = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "current_link_width": "16"}
    return "".join(f"{PCI}/{address}/{name}:{value}\n" for name, value in {**base, **files}.items())


def test_sys_gives_identity_and_link() -> None:
    bus = sysfs.parse_pci(sys_lines("0000:53:00.0", current_link_speed="32.0 GT/s PCIe", max_link_width="16"))
    one = bus.nvidia_gpus[0]
    assert (one.vendor_id, one.class_id, one.link_speed_gts, one.link_width, one.dead) == (
        "10de",
        "0302",
        32.0,
        16,
        False,
    )
    assert one.link_speed_max_gts == ABSENT


def test_a_link_that_reads_all_ones_is_dead_and_a_link_of_zero_lanes_is_none() -> None:
    dead, emulated = sysfs.parse_pci(
        sys_lines("0000:53:00.0", current_link_width="63") + sys_lines("0000:64:00.0", current_link_width="0")
    ).devices
    assert dead.dead
    assert emulated.link_width == Missing(Reason.NOT_APPLICABLE, "0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no such file\n",
        f"{PCI}/0000:53:00.0/vendor:0x10de\n",
        sys_lines("0000:53:00.0", vendor="<Permission denied>"),
    ],
)
def test_functions_in_sys_without_identity_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        sysfs.parse_pci(text)


NODE = "/sys/devices/system/node"
NUMA = (
    f"{NODE}/node0/cpulist:0-47,96-143\n{NODE}/node1/cpulist:48-95,144-191\n"
    f"{NODE}/node0/distance:10 32\n{NODE}/node1/distance:32 10\n"
    f"{PCI}/0000:53:00.0/numa_node:0\n{PCI}/0000:ca:00.0/numa_node:-1\n"
)


def test_nodes_distances_and_gpus_are_read_from_sys() -> None:
    numa = sysfs.parse_numa(NUMA)
    assert numa.cpu_nodes == (0, 1)
    assert numa.distances[0, 1] == 32
    assert numa.gpu_node == {"0000:53:00.0": 0, "0000:ca:00.0": Missing(Reason.COULD_NOT_LOOK, "-1")}


@pytest.mark.parametrize("at", range(4))
def test_nodes_without_one_of_their_lines_are_refused(at: int) -> None:
    lines = NUMA.splitlines(keepends=True)
    with pytest.raises(ParseError):
        sysfs.parse_numa("".join(lines[:at] + lines[at + 1 :]))


@pytest.mark.parametrize("text", ["", "hello\n", NUMA.replace("10 32", "10 x"), NUMA.replace("node:0\n", "node:a\n")])
def test_other_lines_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        sysfs.parse_numa(text)


NUMACTL = (
    "available: 3 nodes (0-2)\nnode 0 cpus: 0 1\nnode 0 size: 1 MB\nnode 1 cpus: 2 3\nnode 2 cpus:\n"
    "node distances:\nnode   0   1   2 \n  0:  10  21  13 \n  1:  21  10  23 \n  2:  13  23  10 \n"
)


def test_nodes_without_cpus_are_memory_only() -> None:
    numa = numa_tools.parse_numactl(NUMACTL)
    assert numa.cpu_nodes == (0, 1)
    assert numa.distances[1, 2] == 23


@pytest.mark.parametrize("at", [0, 1, 3, 4, 7, 8, 9])
def test_numactl_without_one_of_its_lines_is_refused(at: int) -> None:
    lines = NUMACTL.splitlines(keepends=True)
    with pytest.raises(ParseError):
        numa_tools.parse_numactl("".join(lines[:at] + lines[at + 1 :]))


def test_lscpu_is_read_as_text_and_as_json() -> None:
    text = "CPU(s):  4\nNUMA node(s):  2\nNUMA node0 CPU(s):  0,1\nNUMA node1 CPU(s):  2-3\n"
    tree = [
        {"field": "CPU(s):", "data": "4"},
        {"field": "NUMA:", "data": None, "children": [
            {"field": "NUMA node(s):", "data": "2"},
            {"field": "NUMA node0 CPU(s):", "data": "0,1"},
            {"field": "NUMA node1 CPU(s):", "data": "2-3"},
        ]},
    ]  # fmt: skip
    assert numa_tools.parse_lscpu(text) == numa_tools.parse_lscpu(json.dumps({"lscpu": tree}))
    assert numa_tools.parse_lscpu(text).cpu_nodes == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "CPU(s): 4\n",
        "NUMA node(s): 2\nNUMA node0 CPU(s): 0,1\n",
        "CPU(s): 4\nNUMA node0 CPU(s): 0,1\n",
        '{"lscpu": [{"data": "4"}]}',
        '{"lscpu": [',
    ],
)
def test_lscpu_with_a_node_gone_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        numa_tools.parse_lscpu(text)
