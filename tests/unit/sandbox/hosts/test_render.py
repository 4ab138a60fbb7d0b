"""Rendered evidence: equal to the captures where there are some, and read by Kiln's own parsers everywhere."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.hosts.description import board, machine, types
from sandbox.hosts.render import render
from sandbox.hosts.state import Host
from validation.facts import (
    components,
    cuda_toolkit,
    fi_info,
    kernel_log,
    kernel_module,
    lsblk,
    lspci,
    nvlink,
    nvlink_errors,
    rdma,
    smi_list,
    smi_xml,
    sysfs,
    systemctl,
    topo,
    topo_p2p,
)
from validation.facts.missing import Missing

HostMaker = Callable[..., Host]
GOLDEN = ("p5.48xlarge", "p4d.24xlarge", "p3.16xlarge", "g5.48xlarge")
EVERY_TYPE = pytest.mark.parametrize("instance_type", types())


def says(host: Host, answer: str) -> str:
    return render(host).answers[answer].stdout


def lines_of(host: Host, *prefixes: str) -> str:
    """Files below the root as the probe prints them: ``path:content``."""
    files = render(host).root
    return "".join(
        f"/{path}:{content.decode() if isinstance(content, bytes) else content}".rstrip("\n") + "\n"
        for path, content in sorted(files.items())
        if path.startswith(prefixes) and not path.endswith("/config")
    )


@pytest.mark.parametrize("instance_type", GOLDEN)
def test_topo_m_is_the_golden_capture_cell_by_cell(instance_type: str, make_host: HostMaker, samples: Path) -> None:
    text = says(make_host(instance_type, efa_count=0), "nvidia-smi/topo-m")
    cut = ["\t".join(line.split("\t")[:11]) for line in text.splitlines() if "GPU" in line]  # as the golden was cut
    golden = (samples / f"topo-m__aws_{instance_type}.txt").read_text().splitlines()
    assert [line.rstrip("\t") for line in cut] == golden


@pytest.mark.parametrize("instance_type", ["p5.48xlarge", "g5.48xlarge"])
def test_numa_files_are_the_golden_capture(instance_type: str, make_host: HostMaker, samples: Path) -> None:
    text = lines_of(make_host(instance_type), "sys/devices/system/node")
    golden = (samples / f"numa_sysfs__aws_{instance_type}.txt").read_text()
    assert sorted(text.splitlines()) == sorted(golden.splitlines())


def test_the_query_as_xml_has_the_elements_of_a_real_one(make_host: HostMaker, samples: Path) -> None:
    def paths(root: ElementTree.Element, prefix: str = "") -> set[str]:
        found = set()
        for child in root:
            found |= {f"{prefix}/{child.tag}"} | paths(child, f"{prefix}/{child.tag}")
        return found

    real = paths(ElementTree.parse(samples / "smi-x__real_qx-h100.xml").getroot())
    ours = paths(ElementTree.fromstring(says(make_host("p5.48xlarge"), "nvidia-smi/q-x")))
    assert ours == real


def test_the_h100_values_are_those_of_the_capture(make_host: HostMaker, samples: Path) -> None:
    real = smi_xml.parse((samples / "smi-x__real_qx-h100.xml").read_text())
    ours = smi_xml.parse(says(make_host("p5.48xlarge"), "nvidia-smi/q-x"))
    assert ours.driver_version == real.driver_version
    for mine, theirs in zip(ours.gpus, real.gpus, strict=True):
        assert (mine.name, mine.pci_address, mine.memory_total_mib) == (
            theirs.name,
            theirs.pci_address,
            theirs.memory_total_mib,
        )
        assert (mine.fabric, mine.vbios, mine.power_limit_w) == (theirs.fabric, theirs.vbios, theirs.power_limit_w)


@EVERY_TYPE
def test_the_xml_of_every_type_is_read_whole(instance_type: str, make_host: HostMaker) -> None:
    inventory = smi_xml.parse(says(make_host(instance_type), "nvidia-smi/q-x"))
    described = machine(instance_type)
    assert inventory.attached == len(described.gpus.addresses)
    assert [gpu.pci_address for gpu in inventory.gpus] == [f"0000:{item}" for item in described.gpus.addresses]
    for gpu in inventory.gpus:
        assert gpu.name == board(described.board).name
        assert gpu.pcie.width == described.pcie_width
        assert gpu.ecc.volatile_uncorrected == 0


@EVERY_TYPE
def test_topology_and_p2p_of_every_type_are_read_whole(instance_type: str, make_host: HostMaker) -> None:
    host = make_host(instance_type)
    topology = topo.parse(says(host, "nvidia-smi/topo-m"))
    described = machine(instance_type)
    assert len(topology.gpus) == len(described.gpus.addresses)
    assert len(topology.nics) == len(host.efa)
    for (first, second), cell in topology.links.items():
        assert cell == described.pair(first, second)
    matrix = topo_p2p.parse(says(host, "nvidia-smi/topo-p2p-r"))
    assert set(matrix.status.values()) <= {described.p2p}


@EVERY_TYPE
def test_nvlinks_of_every_type_are_read_whole(instance_type: str, make_host: HostMaker) -> None:
    wanted = board(machine(instance_type).board).nvlink
    for gpu in nvlink.parse(says(make_host(instance_type), "nvidia-smi/nvlink-s")).gpus:
        if wanted is None:
            assert isinstance(gpu.nvlinks, Missing)
        else:
            assert not isinstance(gpu.nvlinks, Missing)
            assert [link.active for link in gpu.nvlinks] == [True] * wanted.count
            assert gpu.nvlinks[0].rate_gbps == float(wanted.rate)


@EVERY_TYPE
def test_nvlink_error_counters_of_every_type_are_read_whole(instance_type: str, make_host: HostMaker) -> None:
    wanted = board(machine(instance_type).board).nvlink
    host = make_host(instance_type)
    errors = nvlink_errors.parse(says(host, "nvidia-smi/nvlink-e"))
    assert len(errors.gpus) == len(host.gpus)
    assert len(errors.counters) == (3 * wanted.count * len(host.gpus) if wanted else 0)
    assert len(errors.without) == (0 if wanted else len(host.gpus))


@EVERY_TYPE
def test_versions_around_the_driver_are_read_on_every_type(instance_type: str, make_host: HostMaker) -> None:
    host = make_host(instance_type)
    packages = str(render(host).root["opt/amazon/efa_installed_packages"])
    assert components.efa_installer(packages) == host.software.efa_installer
    assert components.libfabric(packages) == host.software.libfabric
    assert components.dcgm(says(host, "dcgmi")) == host.software.dcgm
    assert components.container_toolkit(says(host, "nvidia-ctk")) == host.software.container_toolkit
    answer = render(host).answers.get("nv-fabricmanager")
    assert (answer is not None) == (host.machine.switches is not None)
    if answer:
        assert components.fabric_manager(answer.stdout) == host.driver


@EVERY_TYPE
def test_lists_and_versions_of_every_type_are_read_whole(instance_type: str, make_host: HostMaker) -> None:
    host = make_host(instance_type)
    assert len(smi_list.parse_list(says(host, "nvidia-smi/L")).inventory.gpus) == len(host.gpus)
    assert smi_list.parse_version(says(host, "nvidia-smi/version")).driver == host.driver


@EVERY_TYPE
def test_the_bus_of_every_type_is_read_whole(instance_type: str, make_host: HostMaker) -> None:
    host = make_host(instance_type)
    bus = lspci.parse(says(host, "lspci"))
    assert [device.address for device in bus.nvidia_gpus] == [gpu.address for gpu in host.gpus]
    assert not any(device.dead for device in bus.devices)
    pci = sysfs.parse_pci(lines_of(host, "sys/bus/pci/devices"))
    widths = {device.address: device.link_width for device in pci.devices}
    assert all(widths[gpu.address] == host.machine.pcie_width for gpu in host.gpus)


@EVERY_TYPE
def test_numa_of_every_type_is_read_whole(instance_type: str, make_host: HostMaker) -> None:
    host = make_host(instance_type)
    text = lines_of(host, "sys/devices/system/node", "sys/bus/pci/devices")
    wanted = [line for line in text.splitlines() if "/node/" in line or "/numa_node:" in line]
    numa = sysfs.parse_numa("\n".join(wanted) + "\n")
    assert len(numa.cpu_nodes) == len(host.machine.numa.cpus)
    for gpu in host.gpus:
        node = numa.gpu_node[gpu.address]
        assert node == gpu.numa if gpu.numa is not None else isinstance(node, Missing)


@EVERY_TYPE
def test_software_of_every_type_is_read_whole(instance_type: str, make_host: HostMaker) -> None:
    host = make_host(instance_type)
    software = host.software
    assert set(cuda_toolkit.parse(says(host, "nvcc")).versions.values()) == {software.toolkit}
    module = kernel_module.parse(str(render(host).root["proc/driver/nvidia/version"]))
    assert (module.version, module.open) == (software.driver, software.kernel_module == "open")
    store = lsblk.parse_json(says(host, "lsblk")).instance_store
    assert len(store) == (host.machine.instance_store.count if host.machine.instance_store else 0)


@EVERY_TYPE
def test_the_kernel_log_of_every_healthy_type_has_no_event(instance_type: str, make_host: HostMaker) -> None:
    log = kernel_log.parse(says(make_host(instance_type), "dmesg"))
    assert log.lines > 10
    assert log.events == ()


@pytest.mark.parametrize(("instance_type", "asked", "shown"), [("p5.48xlarge", 32, 32), ("p5.48xlarge", 4, 4)])
def test_efa_interfaces_are_those_asked_for(instance_type: str, asked: int, shown: int, make_host: HostMaker) -> None:
    host = make_host(instance_type, efa_count=asked)
    assert len(fi_info.parse(says(host, "fi_info")).nics) == shown
    assert len(rdma.parse_ibv_devinfo(says(host, "ibv_devinfo")).devices) == shown


def test_without_efa_the_tools_say_so_and_fail(make_host: HostMaker) -> None:
    answer = render(make_host("g5.xlarge")).answers["fi_info"]
    assert answer.rc != 0
    assert "-61" in answer.stderr


def test_fabric_manager_runs_only_where_there_are_switches(make_host: HostMaker) -> None:
    unit = "systemctl/nvidia-fabricmanager.service"
    assert systemctl.parse(says(make_host("p4d.24xlarge"), unit)).active == "active"
    assert unit not in render(make_host("g5.48xlarge")).answers


def test_serials_and_uuids_differ_by_instance_and_stay_by_identity(make_host: HostMaker) -> None:
    first, again = make_host("p5.48xlarge"), make_host("p5.48xlarge")
    assert [gpu.uuid for gpu in first.gpus] == [gpu.uuid for gpu in again.gpus]
    assert len({gpu.uuid for gpu in first.gpus} | {gpu.serial for gpu in first.gpus}) == 16
