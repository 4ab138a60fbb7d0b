"""Files below a root of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from validation.probe import files
from validation.probe.collectors import collectors, environment
from validation.probe.files import Root
from validation.probe.process import ToolMissingError

GPU = "/sys/bus/pci/devices/0000:53:00.0"
NIC = "/sys/bus/pci/devices/0000:4f:00.0"
DISK = "/sys/bus/pci/devices/0000:00:04.0"
TREE = {
    "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n',
    "/sys/devices/system/node/node0/cpulist": "0-47,96-143\n",
    "/sys/devices/system/node/node1/cpulist": "48-95,144-191\n",
    "/sys/devices/system/node/node0/distance": "10 32\n",
    "/sys/class/dmi/id/board_asset_tag": "i-0123456789abcdef0\n",
    "/sys/class/dmi/id/product_name": "p5.48xlarge\n",
    "/var/lib/cloud/data/instance-id": "i-0123456789abcdef0\n",
    "/run/cloud-init/instance-data.json": '{\n "ds": {"meta_data": {"ami-id": "ami-1", "ami-launch-index": "0"}}\n}\n',
    "/sys/module/efa/version": "2.17.3g\n",
    "/usr/local/cuda-12.6/version.json": '{\n  "cuda": {"version": "12.6.3"}\n}\n',
    GPU + "/vendor": "0x10de\n",
    GPU + "/class": "0x030200\n",
    GPU + "/numa_node": "0\n",
    GPU + "/current_link_speed": "32.0 GT/s PCIe\n",
    NIC + "/vendor": "0x1d0f\n",
    NIC + "/class": "0x020000\n",
    NIC + "/numa_node": "1\n",
    DISK + "/vendor": "0x1d0f\n",
    DISK + "/class": "0x010802\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for path, text in TREE.items():
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Root(str(tmp_path))


def output(task: Callable[[Callable[[str], None]], None]) -> str:
    parts: list[str] = []
    task(parts.append)
    return "".join(parts)


def test_a_file_is_read_word_for_word_below_the_root(root: Root) -> None:
    assert output(files.one_file(root, "/etc/os-release")) == TREE["/etc/os-release"]


def test_libraries_are_listed_by_name(root: Root) -> None:
    folder = Path(root.at("/usr/lib/x86_64-linux-gnu"))
    folder.mkdir(parents=True)
    (folder / "libnccl.so.2.28.3").write_bytes(b"")
    (folder / "libnccl.so.2").symlink_to("libnccl.so.2.28.3")
    (folder / "libnccl-static.a").write_bytes(b"")
    listed = output(files.names(root, *files.NCCL_LIBRARIES)).splitlines()
    assert listed == ["/usr/lib/x86_64-linux-gnu/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3"]


def test_the_nccl_plugin_says_its_version_inside(root: Root) -> None:
    folder = Path(root.at("/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"))
    folder.mkdir(parents=True)
    (folder / "libnccl-net.so").write_bytes(b"\x7fELF\0\xff%s\0Initializing aws-ofi-nccl 1.18.0-aws\0")
    (folder / "libnccl-net-ofi.so").write_bytes(b"\x7fELF")
    place = "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"
    assert output(files.nccl_plugins(root)) == (
        f"{place}/libnccl-net-ofi.so:<says no version>\n{place}/libnccl-net.so:1.18.0-aws\n"
    )


def test_the_second_place_of_a_file_is_used_where_the_first_is_missing(root: Root) -> None:
    assert output(files.one_file(root, "/etc/missing", "/etc/os-release")) == TREE["/etc/os-release"]


def test_paths_are_printed_as_on_the_host(root: Root) -> None:
    assert output(files.sysfs_numa(root)) == (
        "/sys/devices/system/node/node0/cpulist:0-47,96-143\n"
        "/sys/devices/system/node/node1/cpulist:48-95,144-191\n"
        "/sys/devices/system/node/node0/distance:10 32\n"
        f"{NIC}/numa_node:1\n"
        f"{GPU}/numa_node:0\n"
    )


def test_pcie_lists_nvidia_and_network_functions_and_no_others(root: Root) -> None:
    text = output(files.sysfs_pcie(root))
    assert f"{GPU}/current_link_speed:32.0 GT/s PCIe\n" in text
    assert f"{NIC}/vendor:0x1d0f\n" in text
    assert DISK not in text


def test_a_version_file_of_several_lines_is_one_line(root: Root) -> None:
    line = output(files.matching(root, "/usr/local/cuda*/version.json"))
    assert line == '/usr/local/cuda-12.6/version.json:{   "cuda": {"version": "12.6.3"} }\n'


def test_the_instance_says_who_it_is_by_dmi_and_cloud_init(root: Root) -> None:
    assert output(files.instance(root)) == (
        "board_asset_tag: i-0123456789abcdef0\nproduct_name: p5.48xlarge\ncloud_init_instance_id: i-0123456789abcdef0\n"
        "image: ami-1\n"
    )


def test_the_efa_module_is_present_with_its_version(root: Root) -> None:
    assert output(files.efa_module(root)) == "/sys/module/efa:present\n/sys/module/efa/version:2.17.3g\n"


@pytest.mark.parametrize(
    "task",
    [
        lambda root: files.one_file(root, "/etc/os-release"),
        lambda root: files.matching(root, "/usr/local/cuda*/version.json"),
        files.instance,
        files.efa_module,
        files.nccl_plugins,
        files.sysfs_numa,
        files.sysfs_pcie,
    ],
)
def test_an_empty_tree_has_nothing_and_says_so(task: Callable[[Root], Callable[..., None]], tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError, match="no such"):
        output(task(Root(str(tmp_path))))


def test_a_bus_without_our_devices_is_empty_and_not_missing(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    assert output(files.sysfs_pcie(Root(str(tmp_path)))) == ""


def test_a_file_that_cannot_be_read_says_why_in_its_place(root: Root, tmp_path: Path) -> None:
    (tmp_path / GPU.lstrip("/") / "current_link_speed").unlink()
    (tmp_path / GPU.lstrip("/") / "current_link_speed").mkdir()
    assert f"{GPU}/current_link_speed:<Is a directory>\n" in output(files.sysfs_pcie(root))


def test_a_root_with_pattern_characters_in_its_name_is_taken_literally(tmp_path: Path) -> None:
    place = tmp_path / "a[b]*" / "usr/local/cuda/version.json"
    place.parent.mkdir(parents=True)
    place.write_text("{}")
    assert output(files.matching(Root(str(tmp_path / "a[b]*")), "/usr/local/cuda*/version.json")).startswith("/usr/")


def test_tools_are_looked_for_on_the_path_first_and_then_below_the_root_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/first:/second")
    path = environment(Root(str(tmp_path)))["PATH"].split(":")
    assert path[:2] == ["/first", "/second"]
    assert all(folder.startswith(str(tmp_path)) for folder in path[2:])
    assert environment(Root("/"))["PATH"].endswith("/usr/local/cuda/bin")


def test_names_of_items_are_unique_and_every_way_has_a_source(tmp_path: Path) -> None:
    table = collectors(Root(str(tmp_path)))
    assert len({entry.name for entry in table}) == len(table)
    assert all(source for entry in table for source, _ in entry.ways)


def test_a_long_file_is_read_whole_and_a_folder_says_what_it_is(root: Root) -> None:
    text = "".join(f"{number}\n" for number in range(50_000))
    Path(root.at("/long")).write_text(text)
    assert root.read("/long") == text
    Path(root.at("/folder")).mkdir()
    assert root.line("/folder") == "/folder:<Is a directory>\n"
