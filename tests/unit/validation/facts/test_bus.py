"""The PCI bus and NUMA nodes: lspci, /sys, numactl, lscpu."""

from __future__ import annotations

import json
import re

import pytest

from profiles.errors import ParseError
from validation.facts import lspci, numa_tools, sysfs
from validation.facts.host import Acs, PciBus, PciDevice
from validation.facts.lspci import AcsLines
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


VERBOSE = (
    "16:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])\n"
    "\tBus: primary=15, secondary=17, subordinate=19, sec-latency=0\n"
    "\tCapabilities: [68] Express (v2) Downstream Port (Slot+), IntMsgNum 0\n"
    "\t\tLnkCap:\tPort #4, Speed 32GT/s, Width x16, ASPM not supported\n"
    "\t\tLnkSta:\tSpeed 32GT/s, Width x16\n"
    "\tCapabilities: [b70 v1] Access Control Services\n"
    "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+\n"
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    "\tKernel driver in use: pcieport\n\n"
    "18:00.0 3D controller: NVIDIA Corporation Device 2335 (rev a1)\n"
    "\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n"
    "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)\n"
    "\tKernel driver in use: nvidia\n"
)


def printed(text: str) -> tuple[PciDevice, ...]:
    bus = lspci.parse_any(text)
    assert isinstance(bus, PciBus)
    return bus.devices


def test_a_verbose_listing_without_numbers_tells_bridges_ports_acs_and_drivers() -> None:
    bridge, gpu = printed(VERBOSE)
    assert (bridge.class_id, bridge.vendor_id, bridge.port, bridge.buses) == (
        "0604",
        ABSENT,
        "Downstream Port",
        (23, 25),
    )
    assert (gpu.class_id, gpu.vendor_id, gpu.device_id, gpu.driver) == ("0302", "10de", "2335", "nvidia")
    assert (gpu.link_speed_gts, gpu.link_width, gpu.link_width_max, gpu.acs) == (2.5, 8, ABSENT, ABSENT)
    assert bridge.acs == Acs(frozenset({"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}))
    assert bridge.acs.redirects


@pytest.mark.parametrize(
    ("control", "redirects"),
    [
        ("SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", False),
        ("SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd+ EgressCtrl- DirectTrans-", False),
        ("SrcValid- TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", True),
        ("SrcValid- TransBlk- ReqRedir- CmpltRedir+ UpstreamFwd-", True),  # the rest wrapped to the next line
    ],
)
def test_a_control_alone_tells_whether_it_redirects_and_not_whose_it_is(control: str, redirects: bool) -> None:
    found = lspci.parse_any(f"$ sudo lspci -vvv | grep ACSCtl\n\t\tACSCtl:\t{control}\n")
    assert isinstance(found, AcsLines)
    assert [acs.redirects for acs in found.controls] == [redirects]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("3b:00.0 0302: 10de:26b9 (rev a1)", ("0302", "10de", "26b9")),
        ("3b:00.0 Class 0302: 10de:26b9 (rev a1)", ("0302", "10de", "26b9")),
        ("10000:3b:00.0 3D controller: NVIDIA Corporation AD102GL [L40S] (rev a1)", ("0302", "10de", ABSENT)),
        ("00:01.1/3a:00.0/3b:00.0 3D controller [0302]: NVIDIA Corporation L4 [10de:27b8]", ("0302", "10de", "27b8")),
        ("    3b:00.0 Non-Essential Instrumentation [1300]: Some Corp. Device 14ac", ("1300", ABSENT, "14ac")),
        (
            "3b:00.0 CXL [0502]: Some Corp. Device [1af5:0d93] (prog-if 10 [CXL Memory (CXL 2.x)])",
            ("0502", "1af5", "0d93"),
        ),
    ],
)
def test_a_function_is_read_in_every_form_that_people_print(line: str, told: tuple[object, ...]) -> None:
    one = printed(f"{line}\n")[0]
    assert (one.class_id, one.vendor_id, one.device_id) == told
    assert one.address.endswith("3b:00.0")


def test_what_cannot_be_read_without_root_is_said_to_be_unread() -> None:
    one = printed("3b:00.0 3D controller: NVIDIA Corporation L4 (rev a1)\n\tCapabilities: <access denied>\n")[0]
    for value in (one.link_width, one.link_width_max, one.acs):
        assert isinstance(value, Missing)
        assert value.reason is Reason.COULD_NOT_LOOK


def test_a_link_of_an_emulated_bus_has_no_lanes() -> None:
    text = "00:1e.0 3D controller: NVIDIA Corporation T4 (rev a1)\n\t\tLnkSta:\tSpeed unknown, Width x0\n"
    one = printed(text)[0]
    assert one.link_width == Missing(Reason.NOT_APPLICABLE, "x0")
    assert one.link_speed_gts == Missing(Reason.COULD_NOT_LOOK, "unknown")


ACS_LINE = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-[0000:00]-+-00.0  Some Corp. Host\n             +-01.1-[01]----00.0  NVIDIA\n", "lspci -t is not read here"),
        ("Slot:\t3b:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\n", "lspci -vmm is not read here"),
        ('3b:00.0 "3D controller" "NVIDIA Corporation" "L4" -ra1\n', "lspci -mm is not read here"),
        ("00:01.1/00.0 3D controller: NVIDIA Corporation L4 (rev a1)\n", "lspci -P is not read here"),
        ("3b:00.0\n\t\tLnkSta:\tSpeed 8GT/s, Width x8\n", "'3b:00.0' does not say what it is; give lspci -nn"),
        ("\t\tLnkSta:\tSpeed 8GT/s, Width x8\n", "whose that is was left out"),
        (f"{ACS_LINE}3b:00.0 3D controller: NVIDIA Corporation L4 (rev a1)\n", "line 1: .*whose that is was left out"),
        (f"3b:00.0 Bridge: x\n{ACS_LINE}{ACS_LINE}", "line 3: .*a second one of 0000:3b:00.0"),
        ("\t\tACSCtl:\tSrcValid+ TransB", "'ACSCtl:.*SrcValid. TransB' is cut short"),
        (f"3b:00.0 Bridge: x\n{ACS_LINE}\t\tACSCtl:\tSrcValid+ TransBlk- ReqR", "line 3: .* is cut short"),
        (f"Slot:\t3b:00.0\nClass:\t3D controller\n{ACS_LINE}", "lspci -vmm is not read here"),
        ("oller: NVIDIA Corporation L4 (rev a1)\n3b:00.0 Bridge: x\n", "line 1: .* is no PCI function"),
        ("3b:00.0 Bridge: x\nation L4 [10de:27b8] (rev a1)\n", "line 2: .* is no PCI function"),
        ("3b:00.0 3D contr", "does not say what it is"),
        ("3b:00.0 3D controller: NVIDIA Corporation GH100 [H1", "is cut short; give the whole line"),
        ("3b:00.0 3D controller: NVID", "is cut short"),
        ("3b:00.0 3D controller [0302]: NVIDIA Corporation L4 [10de:27b8]", "is cut short"),
        ("3b:00.0 0302: 10de:27b8", "is cut short"),
        ("3b:00.0 3D controller: NVIDIA Corporation L4 (rev\nff)\n", "line 1: .* is cut short"),
        ("3b:00.0 3D controller: NVIDIA Corporation L4 (rev f", "is cut short"),
    ],
)
def test_a_tree_a_form_for_programs_and_a_cut_line_are_refused_by_name(text: str, reason: str) -> None:
    assert lspci.is_it(text) or "contr" in text
    with pytest.raises(ParseError, match=reason):
        lspci.parse_any(text)


@pytest.mark.parametrize("line", ["Starting pod/node-debug ...\n", "and so on\n"])
def test_the_gate_reads_no_listing_with_a_line_that_is_no_function(line: str) -> None:
    assert len(printed(line + LSPCI)) == 4
    with pytest.raises(ParseError, match="is no PCI function"):
        lspci.parse(line + LSPCI)


def test_a_listing_without_an_end_of_line_is_whole_where_its_last_line_is() -> None:
    assert len(printed("3b:00.0 3D controller: NVIDIA Corporation L4 (rev a1)")) == 1
    assert len(printed("3b:00.0 Host bridge: Intel Corporation Device 09a2")) == 1


def test_files_of_two_hosts_in_one_text_are_refused() -> None:
    with pytest.raises(ParseError, match=r"line 5: 0000:53:00\.0/vendor is there twice"):
        sysfs.parse_pci(sys_lines("0000:53:00.0") + sys_lines("0000:53:00.0", current_link_width="8"))


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


MEMORY_ONLY = (
    f"{NODE}/node0/cpulist:0-3\n{NODE}/node1/cpulist:4-7\n"
    f"{NODE}/node0/distance:10 20 80\n{NODE}/node1/distance:20 10 80\n{NODE}/node2/distance:80 80 10\n"
)


def test_grep_leaves_out_the_empty_list_of_a_node_of_memory_and_of_no_other() -> None:
    assert sysfs.parse_numa(MEMORY_ONLY, grep=True).cpus[2] == frozenset()
    with pytest.raises(ParseError, match=r"CPUs of nodes \[1\], distances of nodes \[0, 1, 2\]"):
        sysfs.parse_numa(MEMORY_ONLY[MEMORY_ONLY.index("\n") + 1 :], grep=True)
    with pytest.raises(ParseError):
        sysfs.parse_numa(MEMORY_ONLY)


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


def test_lists_that_a_narrow_terminal_broke_go_on_below() -> None:
    broken = NUMACTL.replace("cpus: 0 1", "cpus: 0\n1").replace("  0:  10  21  13", "  0:  10  21\n13")
    assert broken.count("\n") == NUMACTL.count("\n") + 2
    assert numa_tools.parse_numactl(broken) == numa_tools.parse_numactl(NUMACTL)


def test_compressed_lists_are_ranges_and_their_count() -> None:
    compressed = NUMACTL.replace("cpus: 0 1", "cpus: 0-1 (2)").replace("cpus: 2 3", "cpus: 2, 3 (2)")
    assert numa_tools.parse_numactl(compressed) == numa_tools.parse_numactl(NUMACTL)


@pytest.mark.parametrize("cpus", ["0-1 (3)", "0 (...) 1", "0 1 (one core)"])
def test_a_list_of_cpus_that_somebody_shortened_is_refused_by_its_line(cpus: str) -> None:
    with pytest.raises(ParseError, match=f"line 2: '{re.escape(cpus)}'.* CPU"):
        numa_tools.parse_numactl(NUMACTL.replace("cpus: 0 1", f"cpus: {cpus}"))


def test_nodes_of_two_hosts_in_one_text_are_refused() -> None:
    one, two = NUMACTL, NUMACTL.replace("cpus: 0 1", "cpus: 0")
    for text in (one + two, one + two[two.index("node 0 cpus") :], one + two[two.index("  0:") :]):
        with pytest.raises(ParseError, match="a second list begins here"):
            numa_tools.parse_numactl(text)
    with pytest.raises(ParseError, match=f"line {NUMA.count(chr(10)) + 1}: node0 is there twice"):
        sysfs.parse_numa(NUMA + NUMA)


def test_numactl_without_distances_says_so_and_has_none() -> None:
    text = f"{NUMACTL[: NUMACTL.index('node distances')]}No distance information available.\n"
    assert numa_tools.parse_numactl(text).distances == {}
    assert numa_tools.parse_numactl(text).cpu_nodes == (0, 1)


@pytest.mark.parametrize(
    ("nodes", "first", "second"),
    [
        ("NUMA-Knoten:", "NUMA-Knoten0 CPU(s):", "NUMA-Knoten1 CPU(s):"),
        ("Nœud(s) NUMA\xa0:", "Nœud NUMA 0 de processeur(s)\xa0:", "Nœud NUMA 1 de processeur(s)\xa0:"),
        ("NUMA 节点\uff1a", "NUMA 节点0 CPU\uff1a", "NUMA 节点1 CPU\uff1a"),
        ("Nó(s) de NUMA:", "CPU(s) de nó0 NUMA:", "CPU(s) de nó1 NUMA:"),
    ],
)
def test_lscpu_is_read_in_other_languages_as_text_and_as_json(nodes: str, first: str, second: str) -> None:
    fields = {nodes: "2", first: "0-3", second: "4-7"}
    text = "".join(f"{name:40}{value}\n" for name, value in fields.items())
    entries = [{"field": name, "data": value} for name, value in fields.items()]
    assert numa_tools.is_lscpu(text)
    assert numa_tools.parse_lscpu(text).cpus == {0: frozenset(range(4)), 1: frozenset(range(4, 8))}
    assert numa_tools.parse_lscpu(json.dumps({"lscpu": entries})) == numa_tools.parse_lscpu(text)
    with pytest.raises(ParseError, match="2 NUMA nodes announced, 1 listed"):
        numa_tools.parse_lscpu(text[: text.index(second)])


def test_a_kernel_without_numa_has_no_node_and_a_text_cut_before_the_nodes_is_refused() -> None:
    text = "Architecture:  aarch64\nCPU(s):  4\nThread(s) per core:  1\nVulnerability Meltdown:  Not affected\n"
    assert numa_tools.is_lscpu(text)
    assert numa_tools.parse_lscpu(text).cpu_nodes == ()
    with pytest.raises(ParseError, match="the text is cut short, or the kernel has no NUMA"):
        numa_tools.parse_lscpu(text[: text.index("Vulnerab")])


def test_a_container_that_is_shown_fewer_cpus_than_the_nodes_hold_has_the_nodes_of_its_host() -> None:
    text = "CPU(s):  2\nNUMA node(s):  2\nNUMA node0 CPU(s):  0-3\nNUMA node1 CPU(s):  4-7\n"
    assert numa_tools.parse_lscpu(text).cpu_nodes == (0, 1)


def test_lscpu_of_two_hosts_in_one_text_is_refused() -> None:
    one = "CPU(s): 4\nModel name: A\nModel name: B\nNUMA node0 CPU(s): 0-3\n"
    assert numa_tools.parse_lscpu(one).cpu_nodes == (0,)
    with pytest.raises(ParseError, match=r"line 5: a second 'CPU\(s\)', of another host"):
        numa_tools.parse_lscpu(one + one.replace("4", "8").replace("0-3", "0-7"))


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
