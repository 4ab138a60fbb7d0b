"""Software around the GPUs: nvcc, fi_info, ibv_devinfo, lsblk, systemd units, cloud-init, the system's own files."""

from __future__ import annotations

import json
import platform

from sandbox.hosts.render.answers import Answer
from sandbox.hosts.render.pci import rdma_name
from sandbox.hosts.state import Host

# Of the EFA driver's, those that count errors. Source: Linux drivers/infiniband/hw/efa/efa_verbs.c.
EFA_COUNTERS = ("rx_drops", "retrans_timeout_events", "unresponsive_remote_events", "impaired_remote_conn_events")
IMAGE = "ami-0a1b2c3d4e5f60718"
NO_DATA = 61  # ENODATA, as fi_info ends with
ROOT_DISK_BYTES = 107374182400


def _toolkit_short(host: Host) -> str:
    return ".".join(host.software.toolkit.split(".")[:2])


def nvcc(host: Host) -> Answer:
    """``nvcc --version``."""
    short = _toolkit_short(host)
    return Answer(
        "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\n"
        f"Built on {host.software.toolkit_built}\nCuda compilation tools, release {short}, V{host.software.toolkit}\n"
        f"Build cuda_{short}.r{short}/compiler.36424714_0\n"
    )


def fi_info(host: Host) -> Answer:
    """``fi_info -p efa -t FI_EP_RDM``: one record per NIC, or the error that libfabric gives without one."""
    if not host.efa:
        return Answer(stderr="fi_getinfo: -61 (No data available)\n", rc=NO_DATA)
    records = []
    for address in host.efa:
        name = rdma_name(address)
        records.append(
            f"provider: efa\n    fabric: efa-direct\n    domain: {name}-rdm\n    version: 201.0\n"
            "    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n"
        )
    return Answer("".join(records))


def ibv_devinfo(host: Host) -> Answer:
    """``ibv_devinfo``: EFA devices have zero GUIDs and firmware 0.0.0.0 when healthy."""
    if not host.efa or not host.machine.efa:
        return Answer(stderr="No IB devices found\n", rc=255)
    part = int(host.machine.efa.device_id, 16)
    return Answer(
        "\n".join(
            f"hca_id:\t{rdma_name(address)}\n\ttransport:\t\t\tunspecified (4)\n\tfw_ver:\t\t\t\t0.0.0.0\n"
            "\tnode_guid:\t\t\t0000:0000:0000:0000\n\tsys_image_guid:\t\t\t0000:0000:0000:0000\n"
            f"\tvendor_id:\t\t\t0x1d0f\n\tvendor_part_id:\t\t\t{part}\n\thw_ver:\t\t\t\t0x{part:X}\n"
            "\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
            "\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tsm_lid:\t\t\t0\n"
            "\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x01\n\t\t\tlink_layer:\t\tUnspecified\n"
            for address in host.efa
        )
    )


def lsblk(host: Host) -> Answer:
    """``lsblk -J -b -o NAME,TYPE,SIZE,MODEL,SERIAL,MOUNTPOINT``."""
    volume = f"vol{host.identity.instance_id.removeprefix('i-')[:17]:0<17}"
    root = {
        "name": "nvme0n1",
        "type": "disk",
        "size": ROOT_DISK_BYTES,
        "model": "Amazon Elastic Block Store",
        "serial": volume,
        "mountpoint": None,
        "children": [
            {
                "name": "nvme0n1p1",
                "type": "part",
                "size": ROOT_DISK_BYTES - 117440512,
                "model": None,
                "serial": None,
                "mountpoint": "/",
            }
        ],
    }
    devices: list[object] = [root]
    store = host.machine.instance_store
    for index in range(store.count if store else 0):
        assert store is not None
        devices.append(
            {
                "name": f"nvme{index + 1}n1",
                "type": "disk",
                "size": store.gb * 10**9,
                "model": "Amazon EC2 NVMe Instance Storage",
                "serial": f"AWS{index + 1:017X}",
                "mountpoint": None,
            }
        )
    return Answer(json.dumps({"blockdevices": devices}, indent=3) + "\n")


def units(host: Host) -> dict[str, Answer]:
    """``systemctl show`` of the units that matter, by file name; Fabric Manager runs where there are NVSwitches."""
    running = {"nvidia-persistenced", "ssh", "sshd", "amazon-ssm-agent"}
    if host.machine.switches:
        running.add("nvidia-fabricmanager")
    return {
        f"systemctl/{name}.service": Answer(
            f"Id={name}.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n"
        )
        for name in sorted(running)
    }


def cloud_init(host: Host) -> tuple[dict[str, Answer], dict[str, str | bytes]]:
    """What ``cloud-init status`` says, and the files below ``/run/cloud-init``."""
    done = host.cloud_init == "done"
    stage: dict[str, object] = {
        "errors": [],
        "finished": 31.42 if done else None,
        "recoverable_errors": {},
        "start": 27.1,
    }
    source = "DataSourceEc2Local"
    report: dict[str, object] = {
        "boot_status_code": "enabled-by-generator",
        "datasource": "ec2",
        "detail": source,
        "errors": [],
        "extended_status": host.cloud_init,
        "init": {"errors": [], "finished": 12.9, "recoverable_errors": {}, "start": 11.2},
        "last_update": "Fri, 21 Aug 2026 08:50:03 +0000",
        "modules-final": stage,
        "recoverable_errors": {},
        "stage": None if done else "modules-final",
        "status": host.cloud_init,
    }
    answers = {
        "cloud-init/json": Answer(json.dumps(report, indent=2) + "\n"),
        "cloud-init/long": Answer(
            f"status: {host.cloud_init}\nboot_status_code: enabled-by-generator\ndetail:\n{source}\n"
        ),
        "cloud-init/text": Answer(f"status: {host.cloud_init}\n"),
    }
    status = {"v1": {"datasource": source, "modules-final": stage, "stage": report["stage"]}}
    files: dict[str, str | bytes] = {"run/cloud-init/status.json": json.dumps(status, indent=1) + "\n"}
    if done:
        files["run/cloud-init/result.json"] = json.dumps({"v1": {"datasource": source, "errors": []}}, indent=1) + "\n"
        files["var/lib/cloud/instance/boot-finished"] = "31.42 - Fri, 21 Aug 2026 08:50:03 +0000 - v. 25.1.4\n"
    return answers, files


def answers(host: Host) -> dict[str, Answer]:
    """Every answer of the tools of this module."""
    kernel = host.software.kernel
    architecture = platform.machine()
    return {
        "nvcc": nvcc(host),
        "fi_info": fi_info(host),
        "ibv_devinfo": ibv_devinfo(host),
        "lsblk": lsblk(host),
        "uname/s": Answer("Linux\n"),
        "uname/r": Answer(f"{kernel}\n"),
        "uname/m": Answer(f"{architecture}\n"),
        "uname/n": Answer(f"{host.identity.name}\n"),
        "uname/srm": Answer(f"Linux {kernel} {architecture}\n"),
        "uname/a": Answer(
            f"Linux {host.identity.name} {kernel} #46~22.04.1-Ubuntu SMP {architecture} {architecture} GNU/Linux\n"
        ),
        "hostname": Answer(f"{host.identity.name}\n"),
        **units(host),
        **cloud_init(host)[0],
    }


def _cuda_version(host: Host) -> str:
    entry = {"name": "CUDA SDK", "version": host.software.toolkit}
    return json.dumps({"cuda": entry, "cuda_nvcc": {"name": "CUDA NVCC", "version": host.software.toolkit}}, indent=3)


def files(host: Host) -> dict[str, str | bytes]:
    """The system's own files: release, identity, boot id, toolkit versions, EFA module, cloud-init's results."""
    identity, software = host.identity, host.software
    found: dict[str, str | bytes] = {
        "etc/os-release": (
            f'PRETTY_NAME="{software.os_name}"\nNAME="Ubuntu"\nVERSION_ID="{software.os_version}"\n'
            f'VERSION="{software.os_name.removeprefix("Ubuntu ")} (Jammy Jellyfish)"\nID={software.os_id}\n'
            "ID_LIKE=debian\nUBUNTU_CODENAME=jammy\n"
        ),
        "etc/hostname": f"{identity.name}\n",
        "proc/sys/kernel/random/boot_id": f"{identity.boot_id}\n",
        "proc/sys/kernel/osrelease": f"{software.kernel}\n",
        "sys/class/dmi/id/board_asset_tag": f"{identity.instance_id}\n",
        "sys/class/dmi/id/product_name": f"{identity.instance_type}\n",
        "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
        f"usr/local/cuda-{_toolkit_short(host)}/version.json": _cuda_version(host) + "\n",
        "usr/local/cuda/version.json": _cuda_version(host) + "\n",
        "sys/module/efa/version": f"{software.efa_driver}g\n",
        "sys/module/efa/initstate": "live\n",
        **cloud_init(host)[1],
        "run/cloud-init/instance-data.json": json.dumps({"ds": {"meta_data": {"ami-id": IMAGE}}}, indent=1) + "\n",
    }
    for node, cpus in enumerate(host.machine.numa.cpus):
        count = len(host.machine.numa.cpus)
        row = ["10" if other == node else str(host.machine.numa.distance) for other in range(count)]
        found[f"sys/devices/system/node/node{node}/cpulist"] = f"{cpus}\n"
        found[f"sys/devices/system/node/node{node}/distance"] = " ".join(row) + "\n"
    for address in host.efa:
        folder = f"sys/class/infiniband/{rdma_name(address)}"
        found[f"{folder}/ports/1/state"] = "4: ACTIVE\n"
        found[f"{folder}/ports/1/link_layer"] = "Unspecified\n"
        for counter in EFA_COUNTERS:
            found[f"{folder}/ports/1/hw_counters/{counter}"] = "0\n"
    return found
