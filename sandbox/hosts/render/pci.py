"""The PCI bus: ``lspci -Dnn`` and ``/sys/bus/pci/devices``; and the names that RDMA devices get from their address."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.hosts.state import Host

AMAZON = "1d0f"
NVIDIA = "10de"
NVME = "Non-Volatile memory controller"
ETHERNET = "Ethernet controller"
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}  # GT/s by PCIe generation
DEAD_CONFIG = b"\xff" * 64  # what reads back from a device that has fallen off the bus


@dataclass(frozen=True)
class Link:
    """PCIe generation and width, as negotiated and as the device allows."""

    generation: int
    generation_max: int
    width: int
    width_max: int


@dataclass(frozen=True)
class Function:
    """One function on the bus."""

    address: str
    class_id: str
    class_name: str
    vendor_id: str
    device_id: str
    name: str
    revision: str = ""
    numa: int | None = None
    link: Link | None = None
    dead: bool = False


def rdma_name(address: str) -> str:
    """The name udev gives an RDMA device: ``rdmap16s27`` for 0000:10:1b.0 (decimal bus and slot)."""
    _domain, bus, slot = address.split(":")
    return f"rdmap{int(bus, 16)}s{int(slot.split('.')[0], 16)}"


def _fixed() -> list[Function]:
    """What every EC2 instance has."""
    rows = [
        ("0000:00:00.0", "0600", "Host bridge", "8086", "1237", "Intel Corporation 440FX - 82441FX PMC [Natoma]"),
        ("0000:00:01.0", "0601", "ISA bridge", "8086", "7000", "Intel Corporation 82371SB PIIX3 ISA"),
        ("0000:00:03.0", "0300", "VGA compatible controller", AMAZON, "1111", "Amazon.com, Inc. Device"),
        ("0000:00:04.0", "0108", NVME, AMAZON, "8061", "Amazon.com, Inc. NVMe EBS Controller"),
        ("0000:00:05.0", "0200", ETHERNET, AMAZON, "ec20", "Amazon.com, Inc. Elastic Network Adapter (ENA)"),
    ]
    return [Function(*row) for row in rows]


def nic_node(host: Host, nic: str) -> int | None:
    """The NUMA node of a NIC: that of the GPUs nearest on the bus."""
    if not host.machine.gpus.numa:
        return None
    bus = int(nic[5:7], 16)
    nearest = min(host.gpus, key=lambda gpu: abs(int(gpu.address[5:7], 16) - bus), default=None)
    return nearest.numa if nearest else None


def store_address(index: int) -> str:
    """Where the instance store disks sit; modelled, on a bus of their own."""
    return f"0000:d8:{index + 1:02x}.0"


def functions(host: Host) -> list[Function]:
    """Every function on the host's bus, by address."""
    found = _fixed()
    for gpu in host.gpus:
        pcie = gpu.board.pcie
        link = Link(pcie.idle_generation, pcie.generation, host.machine.pcie_width, pcie.width)
        name = f"NVIDIA Corporation {gpu.bus_name}"
        found.append(
            Function(
                gpu.address, "0302", "3D controller", NVIDIA, gpu.device_id, name, "a1", gpu.numa, link, dead=gpu.lost
            )
        )
    if host.machine.switches:
        switches = host.machine.switches
        name = f"NVIDIA Corporation {switches.bus_name}"
        found += [
            Function(
                f"0000:{address}",
                "0680",
                "Bridge",
                NVIDIA,
                switches.device_id,
                name,
                "a1",
                dead=host.dead_switch and not number,
            )
            for number, address in enumerate(switches.addresses)
        ]
    if host.machine.efa:
        name = f"Amazon.com, Inc. {host.machine.efa.bus_name}"
        part = host.machine.efa.device_id
        found += [
            Function(address, "0200", ETHERNET, AMAZON, part, name, numa=nic_node(host, address))
            for address in host.efa
        ]
    store = host.machine.instance_store
    name = "Amazon.com, Inc. NVMe SSD Controller"
    found += [
        Function(store_address(index), "0108", NVME, AMAZON, "cd01", name)
        for index in range(store.count if store else 0)
    ]
    return sorted(found, key=lambda function: function.address)


def lspci(host: Host) -> str:
    """``lspci -Dnn``: a device that fell off the bus keeps its line, with ``rev ff``."""
    lines = []
    for function in functions(host):
        revision = "ff" if function.dead else function.revision
        suffix = f" (rev {revision})" if revision else ""
        lines.append(
            f"{function.address} {function.class_name} [{function.class_id}]: {function.name} "
            f"[{function.vendor_id}:{function.device_id}]{suffix}"
        )
    return "\n".join(lines) + "\n"


def sysfs(host: Host) -> dict[str, str | bytes]:
    """Files below ``/sys/bus/pci/devices``. Of a dead device the kernel keeps the ids; its link reads all ones."""
    files: dict[str, str | bytes] = {}
    for function in functions(host):
        folder = f"sys/bus/pci/devices/{function.address}"
        programming = "02" if function.class_id == "0108" else "00"
        texts = {
            "vendor": f"0x{function.vendor_id}",
            "device": f"0x{function.device_id}",
            "class": f"0x{function.class_id}{programming}",
            "revision": f"0x{'ff' if function.dead else function.revision or '00'}",
            "numa_node": str(-1 if function.numa is None else function.numa),
        }
        if function.link:
            texts.update(_link_files(function.link, dead=function.dead))
        if function.dead:
            files[f"{folder}/config"] = DEAD_CONFIG
        files.update({f"{folder}/{name}": text + "\n" for name, text in texts.items()})
    return files


def _link_files(link: Link, *, dead: bool) -> dict[str, str]:
    if dead:
        return {
            "current_link_speed": "Unknown",
            "current_link_width": "63",
            "max_link_speed": "Unknown",
            "max_link_width": "255",
        }
    return {
        "current_link_speed": f"{SPEEDS[link.generation]} GT/s PCIe",
        "current_link_width": str(link.width),
        "max_link_speed": f"{SPEEDS[link.generation_max]} GT/s PCIe",
        "max_link_width": str(link.width_max),
    }
