"""Disks, NICs, toolkits, units, modules and the host's own names."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import (
    cuda_toolkit,
    fi_info,
    host_info,
    kernel_module,
    lsblk,
    mdstat,
    rdma,
    rdma_link,
    systemctl,
    vgpu,
)
from validation.facts.missing import ABSENT

STORE = "Amazon EC2 NVMe Instance Storage"


def test_json_with_numbers_texts_children_and_both_mount_keys_is_read() -> None:
    tree = [
        {"name": "nvme0n1", "type": "disk", "size": 1000, "model": "Amazon Elastic Block Store", "children": [
            {"name": "nvme0n1p1", "type": "part", "size": 900, "mountpoints": ["/", None]},
        ]},
        {"name": "/dev/nvme1n1", "type": "disk", "size": "3.4T", "model": STORE, "mountpoint": "/local"},
    ]  # fmt: skip
    devices = lsblk.parse(json.dumps({"blockdevices": tree}))
    assert [device.name for device in devices.devices] == ["nvme0n1", "nvme0n1p1", "nvme1n1"]
    assert devices.devices[1].mountpoints == ("/",)
    assert [(disk.name, disk.size_bytes) for disk in devices.instance_store] == [("nvme1n1", int(3.4 * 1024**4))]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"blockdevices": [{"name": "a"}]}',
        '{"blockdevices": [5]}',
        '{"blockdevices": [{"name": "a", "type": "disk", "size": "big"}]}',
        'NAME="a"\n',
        'NAME="a" TYPE="disk" SIZE="1" MODEL="x\n',
        "NAME MAJ:MIN SIZE TYPE\nsda 8:0\n",
        "lsblk: failed to access sysfs directory\n",
    ],
)
def test_disks_of_another_shape_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        lsblk.parse(text)


def test_pairs_are_read_with_their_padding_off() -> None:
    text = f'NAME="nvme1n1" TYPE="disk" SIZE="7" MODEL="{STORE}   " SERIAL="AWS1" MOUNTPOINT=""\n'
    assert lsblk.parse(text).instance_store[0].serial == "AWS1"


RECORD = "provider: {provider}\nfabric: efa\ndomain: {domain}\nversion: 1.0\ntype: FI_EP_RDM\nprotocol: FI_PROTO_EFA\n"


def test_one_nic_with_several_records_is_one_nic() -> None:
    kinds = ("rdmap16s27-rdm", "rdmap16s27-dgrm", "rdmap32s27-rdm")
    text = "".join(RECORD.format(provider="efa", domain=domain) for domain in kinds)
    assert fi_info.parse(text).nics == ("rdmap16s27", "rdmap32s27")
    assert fi_info.parse(RECORD.format(provider="tcp", domain="eth0")).nics == ()


def test_asked_and_none_there_is_a_fact() -> None:
    assert fi_info.parse("fi_getinfo: -61\n").nics == ()
    assert fi_info.parse("fi_getinfo: -61 (No data available)\n").nics == ()


@pytest.mark.parametrize(
    "text",
    ["", "fi_getinfo: -12\n", "fabric: efa\n", "provider: efa\nfabric: efa\n", "fi_info: command not found\n"],
)
def test_nics_that_could_not_be_asked_for_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        fi_info.parse(text)


def test_rdma_devices_are_read_from_four_tools() -> None:
    ibv = "hca_id:\tefa_0\n\tvendor_id:\t0x1D0F\n\tfw_ver:\t0.0.0.0\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n"
    ibstat = (
        "CA 'mlx5_0'\n\tFirmware version: 1\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
    )
    status = (
        "Infiniband device 'mlx5_1' port 1 status:\n\tstate: 1: DOWN\n\trate: 10 Gb/sec (1X)\n\tlink_layer: Ethernet\n"
    )
    link = "link rdmap0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"
    assert rdma.parse_ibv_devinfo(ibv).devices[0].vendor_id == rdma.AMAZON
    assert rdma.parse_ibv_devinfo(ibv).devices[0].state == "PORT_ACTIVE"
    assert rdma.parse_ibstat(ibstat).devices[0].rate_gbit_s == 400
    assert (rdma.parse_ibstatus(status).devices[0].state, rdma.parse_ibstatus(status).devices[0].rate_gbit_s) == (
        "DOWN",
        10,
    )
    assert rdma_link.parse(link).devices[0].state == "ACTIVE"
    assert rdma.parse_ibv_devinfo("No IB devices found\n").devices == ()


def test_rdma_devices_cut_short_are_refused() -> None:
    with pytest.raises(ParseError, match="no state"):
        rdma.parse_ibv_devinfo("hca_id:\tefa_0\n\tvendor_id:\t0x1d0f\n")
    with pytest.raises(ParseError, match="no link layer"):
        rdma.parse_ibstat("CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n")
    with pytest.raises(ParseError, match="rate"):
        rdma.parse_ibstat("CA 'mlx5_0'\n\t\tState: Active\n\t\tRate: fast\n")
    for parse in (rdma.parse_ibv_devinfo, rdma.parse_ibstat, rdma.parse_ibstatus, rdma_link.parse):
        with pytest.raises(ParseError):
            parse("")
    with pytest.raises(ParseError):
        rdma_link.parse("hello\n")


def test_the_toolkit_is_read_from_its_release_line() -> None:
    text = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.6, V12.6.85\nBuild cuda_12.4.r1\n"
    assert cuda_toolkit.parse(text).versions == {"nvcc": "12.6.85"}
    with pytest.raises(ParseError):
        cuda_toolkit.parse("bash: nvcc: command not found\n")


def test_version_files_are_read_by_their_folder() -> None:
    files = (
        '/usr/local/cuda-12.6/version.json:{ "cuda" : { "version" : "12.6.3" } }\n'
        "/usr/local/cuda-10.2/version.txt: CUDA Version 10.2.89\n"
    )
    assert cuda_toolkit.parse_files(files).versions == {
        "/usr/local/cuda-12.6": "12.6.3",
        "/usr/local/cuda-10.2": "10.2.89",
    }
    assert cuda_toolkit.parse_files("").versions == {}
    for bad in (
        "hello\n",
        "/usr/local/cuda/version.json:{}\n",
        "/usr/local/cuda/version.json:{\n",
        "/a/cuda/version.txt: x",
    ):
        with pytest.raises(ParseError):
            cuda_toolkit.parse_files(bad)


UNIT = (
    "Id=nvidia-fabricmanager.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n"
)


def test_units_are_read_whole() -> None:
    unit = systemctl.parse(UNIT)
    assert (unit.load, unit.active, unit.sub, unit.enabled) == ("loaded", "active", "running", "enabled")
    assert len(systemctl.parse_all(f"{UNIT}\n{UNIT}")) == 2
    for bad in ("", "Unit x could not be found.\n", UNIT.replace("ActiveState=active\n", "")):
        with pytest.raises(ParseError):
            systemctl.parse(bad)


def test_the_two_kernel_modules_are_told_apart() -> None:
    old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.86.10  Wed Jul 26 23:20:03 UTC 2023\nGCC version: 1\n"
    new = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build  (builder)\n"
    assert (kernel_module.parse(old).version, kernel_module.parse(old).open) == ("535.86.10", False)
    assert (kernel_module.parse(new).version, kernel_module.parse(new).open) == ("580.105.08", True)
    with pytest.raises(ParseError):
        kernel_module.parse("GCC version: 1\n")


def test_the_efa_module_says_its_version_where_it_has_one() -> None:
    assert kernel_module.parse_efa("/sys/module/efa:present\n/sys/module/efa/version:2.13.0\n").version == "2.13.0"
    assert kernel_module.parse_efa("/sys/module/efa:present\n").version == ABSENT
    with pytest.raises(ParseError):
        kernel_module.parse_efa("")


BOOT = "0b8d3b2c-6f6d-4d3c-9f57-0d3b6d1a2c3d\n"
RELEASE = 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n# a comment\n'


def test_the_host_says_who_it_is() -> None:
    host = host_info.parse(
        "host1",
        "/",
        os_release=RELEASE,
        kernel="Linux 6.8.0-1021-aws x86_64\n",
        boot_id=BOOT,
        instance="board_asset_tag: i-0abc\nproduct_name: p5.48xlarge\nimage: ami-1\n",
    )
    assert (host.os_id, host.os_version, host.kernel, host.architecture) == (
        "ubuntu",
        "22.04",
        "6.8.0-1021-aws",
        "x86_64",
    )
    assert (host.boot_id, host.instance_id, host.image) == (BOOT.strip(), "i-0abc", "ami-1")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("board_asset_tag: i-0abc\ncloud_init_instance_id: i-0def\n", "i-0abc"),
        ("board_asset_tag: Not Specified\ncloud_init_instance_id: i-bp1x\n", "i-bp1x"),
        ("cloud_init_instance_id: my-host\n", "my-host"),
        ("product_name: box\n", ABSENT),
    ],
)
def test_the_instance_id_is_dmis_or_cloud_inits(text: str, found: object) -> None:
    assert host_info.instance_id(text) == found


def test_the_instance_type_is_dmis_product_name_on_nitro() -> None:
    nitro = "product_name: p5.48xlarge\nsys_vendor: Amazon EC2\n"
    assert host_info.instance_type(nitro) == "p5.48xlarge"
    for other in (
        "product_name: HVM domU\nsys_vendor: Xen\n",
        "product_name: Alibaba Cloud ECS\nsys_vendor: Alibaba Cloud\n",
        nitro.replace("Amazon EC2", "QEMU"),
        "sys_vendor: Amazon EC2\n",
    ):
        assert host_info.instance_type(other) == ABSENT


@pytest.mark.parametrize("change", [{"os_release": "x"}, {"os_release": "A=b"}, {"kernel": "Linux"}, {"boot_id": "no"}])
def test_a_host_with_a_text_missing_is_refused(change: dict[str, str]) -> None:
    texts = {"os_release": RELEASE, "kernel": "Linux 6 x86_64", "boot_id": BOOT, **change}
    with pytest.raises(ParseError):
        host_info.parse("h", "/", instance=None, **texts)


def test_raid_arrays_are_whole_or_degraded() -> None:
    text = (
        "Personalities : [raid0] [raid1]\nmd0 : active raid0 nvme2n1[1] nvme1n1[0]\n      7 blocks 512k chunks\n\n"
        "md1 : active raid1 sdb[1](F) sda[0]\n      7 blocks [2/1] [U_]\n\nunused devices: <none>\n"
    )
    whole, degraded = mdstat.parse(text).arrays
    assert (whole.level, whole.members, whole.missing) == ("raid0", ("nvme2n1", "nvme1n1"), 0)
    assert (degraded.failed, degraded.missing) == (("sdb",), 1)
    with pytest.raises(ParseError, match="cut short"):
        mdstat.parse(text.replace("unused devices: <none>\n", ""))
    with pytest.raises(ParseError, match="not an array"):
        mdstat.parse("md0 is gone\n")


def test_a_vgpu_licence_needs_a_status() -> None:
    head = "    vGPU Software Licensed Product\n        Product Name : vWS\n"
    text = f"{head}        License Status : Unlicensed (Restricted)\n"
    assert not vgpu.parse(text).licenses[0].licensed
    with pytest.raises(ParseError):
        vgpu.parse(head)
    with pytest.raises(ParseError):
        vgpu.parse("")
