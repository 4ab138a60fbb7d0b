"""Disks and arrays as people paste them: tables whose cells move, lists of nvme, RAID that is being rebuilt."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import lsblk, mdstat
from validation.facts.missing import ABSENT

GIB = 1024**3

MODELS = """$ lsblk -o NAME,MODEL,SIZE,TYPE,SERIAL,MOUNTPOINTS
NAME        MODEL                             SIZE TYPE SERIAL MOUNTPOINTS
nvme0n1     Amazon Elastic Block Store         80G disk vol01
├─nvme0n1p1                                    79G part        /var/lib/kubelet
│                                                              /etc/hosts
└─nvme0n1p2                                   106M part        /boot/efi
nvme1n1     Amazon EC2 NVMe Instance Storage  3.5T disk AWS1
"""


def test_cells_are_found_by_their_place() -> None:
    root, first, boot, store = lsblk.parse(MODELS).devices
    assert (root.model, root.serial, root.size_bytes) == ("Amazon Elastic Block Store", "vol01", 80 * GIB)
    assert (first.name, first.model, first.mountpoints) == ("nvme0n1p1", "", ("/var/lib/kubelet", "/etc/hosts"))
    assert boot.mountpoints == ("/boot/efi",)
    assert [disk.name for disk in lsblk.parse(MODELS).instance_store] == [store.name]


@pytest.mark.parametrize(
    "text",
    [
        (
            "NAME            MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nsda               8:0    0  25G  0 disk\n"
            "`-vg-lv (dm-0)  253:0   0  25G  0 lvm  /\n"
        ),  # util-linux before 2.23
        "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS\nsda 8:0 0 25G 0 disk \nvg-lv 253:0 0 25G 0 lvm /\n",  # -r, or folded
        (
            "    NAME  MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS\n┌┈▶ sda     8:0    0  25G  0 disk\n"
            "└┈┈ vg-lv 253:0   0  25G  0 lvm  /\n"
        ),  # -M
        "lsblk: dm-7: failed to get device path\nKNAME TYPE SIZE MOUNTPOINT\nsda   disk  25G\nvg-lv lvm   25G /\n",
    ],
)
def test_every_shape_of_the_table_says_the_same(text: str) -> None:
    disk, volume = lsblk.parse(text).devices
    assert (disk.name, disk.kind, disk.size_bytes, disk.mountpoints) == ("sda", "disk", 25 * GIB, ())
    assert (volume.name, volume.kind, volume.size_bytes, volume.mountpoints) == ("vg-lv", "lvm", 25 * GIB, ("/",))


@pytest.mark.parametrize(
    "text",
    [
        "NAME  FSTYPE LABEL MOUNTPOINT\nsda   ext4         /\n",  # lsblk -f
        "NAME MODEL SIZE TYPE\nsda Some Disk 25G disk\n",  # the columns are lost, and a model is two words
        "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nsda (dm 8:0 0 25G 0 disk\n",
        "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nsda   8:0    0  25G\n",
        'KNAME="sda" LABEL=""\n',
        '{"blockdevices": [{"kname": "sda", "size": 5}]}',
        "lsblk: sda: failed to get device path\nNAME TYPE SIZE\nsdb  disk  5G\n",
    ],
)
def test_a_table_that_does_not_tell_what_a_disk_is_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        lsblk.parse(text)


def test_a_device_on_two_disks_is_one_device_and_escapes_are_undone() -> None:
    line = 'KNAME="md0" TYPE="raid1" MODEL="Two\\x20words" MOUNTPOINTS="/a\\x0a/b"\n'
    (device,) = lsblk.parse(f'KNAME="md0" TYPE="raid1"\n{line}'.replace('KNAME="md0" TYPE="raid1"\n', line, 1)).devices
    assert (device.model, device.mountpoints) == ("Two words", ("/a", "/b"))


OLD = """# nvme list
Node             SN             Model                             Namespace Usage                      FW Rev
---------------- -------------- --------------------------------- --------- -------------------------- --------
/dev/nvme0n1                    QEMU NVMe Ctrl                    1         808,83  GB /   1,02  TB    1.0
/dev/nvme1n1     AWS1           Amazon EC2 NVMe Instance Storage  1         300.00  GB / 300.00  GB    0
"""


def test_nvme_disks_are_read_by_their_columns() -> None:
    first, second = lsblk.parse(OLD).devices
    assert (first.name, first.serial, first.model, first.size_bytes) == (
        "nvme0n1",
        "",
        "QEMU NVMe Ctrl",
        1_020_000_000_000,
    )
    assert (second.serial, second.size_bytes) == ("AWS1", 300_000_000_000)
    assert lsblk.parse("\n".join(OLD.split("\n")[1:3])).devices == ()


def test_a_serial_number_longer_than_its_column_moves_the_rest_and_nothing_else() -> None:
    row = "/dev/nvme2n1     LONGER-THAN-ITS-COLUMN Some Disk            1  1.00  TB /   1.00  TB    1.0\n"
    assert lsblk.parse(OLD + row).devices[2].serial == "LONGER-THAN-ITS-COLUMN"
    with pytest.raises(ParseError, match="do not stand under"):
        lsblk.parse(f"{OLD}/dev/nvme2n1 and so on\n")


def test_the_verbose_tables_tell_the_disk_by_its_controller() -> None:
    text = (
        "NVM Express Subsystems\n\nSubsystem     Subsystem-NQN  Controllers\n------------- -------------- ---\n"
        "nvme-subsys0  nqn.x          nvme0\n\n"
        "Device   SN         MN         FR\n-------- ---------- ---------- ----\nnvme0    S5GX       Some SSD   1.0\n\n"
        "Device       NSID     Usage                      Format           Controllers\n"
        "------------ -------- -------------------------- ---------------- ----------------\n"
        "nvme0n1      1         82.42  GB /   1.00  TB    512   B +  0 B   nvme0\n"
    )
    (disk,) = lsblk.parse(text).devices
    assert (disk.name, disk.serial, disk.model, disk.size_bytes) == ("nvme0n1", "S5GX", "Some SSD", 10**12)


def test_nvme_json_is_read_flat_and_nested() -> None:
    flat = {"NameSpace": 1, "DevicePath": "/dev/nvme0n1", "ModelNumber": "M", "SerialNumber": "S ", "PhysicalSize": 5}
    space = {"NameSpace": "nvme0n1", "NSID": 1, "PhysicalSize": 5}
    owner = {"Controller": "nvme0", "ModelNumber": "M", "SerialNumber": "S", "Namespaces": [space]}
    shared = {"Controllers": [{**owner, "Namespaces": []}], "Namespaces": [space]}
    for entry in (flat, {"HostNQN": "n", "Subsystems": [{"Controllers": [owner]}]}, {"Subsystems": [shared]}):
        (disk,) = lsblk.parse(json.dumps({"Devices": [entry]})).devices
        assert (disk.name, disk.model, disk.serial, disk.size_bytes) == ("nvme0n1", "M", "S", 5)
    for bad in ('{"Devices": [{}]}', '{"Devices": 5}', '{"Devices": [5]}', '{"Devices": [{"Dev'):
        with pytest.raises(ParseError):
            lsblk.parse(bad)


MDSTAT = """Personalities : [raid1] [raid5]
md0 : active raid5 sdd1[3] sdc1[1] sdb1[0]
      4096 blocks level 5, 64k chunk [3/2] [UU_]
      [=>...................]  recovery =  8.5% (16775552/195310144) finish=17.0min speed=259783K/sec
md1 : active raid1 sde1[2](S) sdc2[1] sdb2[0](W)
      4096 blocks super 1.2 [2/2] [UU]
      resync=DELAYED
md126 : active raid1 sdg[1] sdf[0]
      4096 blocks super external:/md127/0 [2/2] [UU]
md127 : inactive sdg[1](S) sdf[0](S)
      5 blocks super external:imsm
md9 : broken raid0 sdi[1] sdh[0]
      4096 blocks super 1.2 512k chunks

unused devices: <none>
"""


def test_an_array_says_its_members_spares_and_what_is_being_done() -> None:
    mended, spare, member, holder, broken = mdstat.parse(MDSTAT).arrays
    assert (mended.missing, mended.progress, mended.mending) == (1, "recovery 8.5%", True)
    assert (spare.members, spare.spares, spare.progress) == (("sdc2", "sdb2"), ("sde1",), "resync DELAYED")
    assert (member.container, member.active) == (False, True)
    assert (holder.container, holder.active, holder.spares) == (True, False, ("sdg", "sdf"))
    assert (broken.active, broken.level) == (False, "raid0")


@pytest.mark.parametrize(
    "gone",
    [
        "      4096 blocks level 5, 64k chunk [3/2] [UU_]\n",
        "md1 : active raid1 sde1[2](S) sdc2[1] sdb2[0](W)\n",
        "md0 : active raid5 sdd1[3] sdc1[1] sdb1[0]\n",
        "\nunused devices: <none>\n",
    ],
)
def test_a_line_of_an_array_that_is_gone_is_missed(gone: str) -> None:
    """Without it a degraded array would be whole, or one array would be told what another is."""
    assert gone in MDSTAT
    with pytest.raises(ParseError):
        mdstat.parse(MDSTAT.replace(gone, ""))


DETAIL = """# mdadm --detail /dev/md0
/dev/md0:
        Raid Level : raid1
      Raid Devices : 2
     Total Devices : 3
             State : clean, degraded, recovering
    Active Devices : 1
   Working Devices : 2
    Failed Devices : 1
    Rebuild Status : 8% complete

    Number   Major   Minor   RaidDevice State
       0       8        1        0      active sync   /dev/sda1
       2       8       33        1      spare rebuilding   /dev/sdc1

       1       8       17        -      faulty   /dev/sdb1
"""


def test_an_array_in_detail_is_the_same_kind_of_fact() -> None:
    (array,) = mdstat.parse_detail(DETAIL).arrays
    assert (array.name, array.active, array.level, array.missing) == ("md0", True, "raid1", 1)
    assert (array.members, array.failed, array.spares) == (("sda1", "sdc1", "sdb1"), ("sdb1",), ())
    assert (array.progress, array.mending) == ("rebuild 8%", True)


def test_arrays_in_detail_that_are_whole_gone_or_no_array() -> None:
    whole = DETAIL.replace("clean, degraded, recovering", "active").replace("Active Devices : 1", "Active Devices : 2")
    inactive = "/dev/md1:\n  Raid Level : raid0\n  State : inactive\n\n  -  8  2  -  /dev/sda2\n"
    holder = "/dev/md127:\n  Raid Level : container\n  Total Devices : 1\n\n  -  8  2  -  /dev/sda\n"
    removed = "/dev/md2:\n  Raid Level : raid1\n  State : clean, FAILED\n\n  -  0  0  0  removed\n"
    arrays = mdstat.parse_detail(f"{whole}{inactive}{holder}{removed}").arrays
    assert [array.active for array in arrays] == [True, False, True, False]
    assert [array.missing for array in arrays] == [0, 0, 0, 1]
    assert [array.container for array in arrays] == [False, False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "",
        DETAIL.split("             State")[0],
        DETAIL.split("       1       8")[0],
        "mdadm: cannot open /dev/md0: No such file or directory\n",
        f"{DETAIL}mdadm: cannot open /dev/md1: Permission denied\n",
        "/dev/sda1:\n  Magic : a92b4efc\n  Raid Level : raid1\n  Array State : A.\n",
        "ARRAY /dev/md0 metadata=1.2 UUID=1:2:3:4\n",
        "Raid Level : raid1\n",
    ],
)
def test_a_detail_that_is_none_or_was_cut_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        mdstat.parse_detail(text)


def test_a_namespace_without_a_size_has_none() -> None:
    text = '{"Devices": [{"DevicePath": "/dev/nvme0n1", "ModelNumber": "M", "PhysicalSize": 0}]}'
    assert lsblk.parse(text).devices[0].size_bytes == ABSENT
