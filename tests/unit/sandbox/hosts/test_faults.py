"""Faults by name: each makes the change it documents, in every source that shows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profiles.errors import ConfigError
from sandbox.hosts.faults import FAULTS, fault
from sandbox.hosts.render import render
from sandbox.hosts.render.pci import DEAD_CONFIG
from sandbox.hosts.state import Host
from validation.checks import CHECKS
from validation.facts import kernel_log, lspci, nvlink, smi_list, smi_xml, topo
from validation.facts.missing import Missing
from validation.verdict import Verdict

HostMaker = Callable[..., Host]
P5 = "p5.48xlarge"
NAMES = """
    gpu-lost gpu-missing nvlink-down xid-79 xid-13 ecc-uncorrectable remap-pending driver-mismatch wrong-driver
    wrong-gpu nvidia-smi-hangs ssh-refused ssh-slow cloud-init-running wrong-host-key efa-missing corrupt-gemm slow-gpu
    no-work too-fast thermal-throttle noisy-shell no-python no-sudo wrong-fabric-manager nvlink-errors
    mig-enabled channel-repair inforom-corrupt dead-switch memory-missing dimm-errors disk-full
    clock-free
""".split()  # noqa: SIM905 - one word a fault reads better than a column of quotes
MADE_BY_THE_RUNNER = {"host.reachable", "host.identity"}


def says(host: Host, answer: str) -> str:
    return render(host).answers[answer].stdout


def keys(host: Host) -> dict[str, str]:
    lines = render(host).machine.splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_every_fault_of_the_list_is_there() -> None:
    assert sorted(FAULTS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_says_what_it_does_and_what_must_come_of_it(name: str) -> None:
    known = FAULTS[name]
    assert known.summary.endswith((".", ":"))
    assert known.check is None or known.check in {check.id for check in CHECKS} | MADE_BY_THE_RUNNER
    assert (known.fault_class is not None) == (known.verdict is Verdict.FAIL)
    assert known.exit_code == {Verdict.FAIL: 1, Verdict.UNKNOWN: 3}.get(known.verdict, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_changes_the_host(name: str, make_host: HostMaker) -> None:
    assert make_host(P5, name) != make_host(P5)


def test_an_unknown_fault_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown fault 'gremlins'") as caught:
        fault("gremlins")
    assert "nvlink-down" in caught.value.remedy


@pytest.mark.parametrize(
    ("instance_type", "name", "why"),
    [
        ("g5.xlarge", "nvlink-down", "no NVLink"),
        ("g5.xlarge", "efa-missing", "no EFA interface"),
        ("g5.xlarge", "mig-enabled", "no MIG"),
    ],
)
def test_a_fault_that_does_not_fit_is_refused(instance_type: str, name: str, why: str, make_host: HostMaker) -> None:
    with pytest.raises(ConfigError, match=why):
        make_host(instance_type, name)


def test_a_partitioned_gpu_is_so_in_every_source(make_host: HostMaker) -> None:
    host = make_host(P5, "mig-enabled")
    gpu = smi_xml.parse(says(host, "nvidia-smi/q-x")).gpus[3]
    assert (gpu.mig_enabled, gpu.memory_total_mib) == (True, 81559.0)
    assert isinstance(gpu.remapped_rows.pending, Missing)
    assert says(host, "nvidia-smi/L").count("MIG 1g.10gb     Device ") == 7
    assert keys(host)["gpu.3.mig.count"] == "7"
    assert not [key for key in keys(host) if key.startswith(("gpu.3.nvlink.", "gpu.3.remap."))]
    assert {says(host, f"nvidia-smi/query-gpu/{name}").splitlines()[3] for name in ("mig.mode.current",)} == {"Enabled"}
    links = nvlink.parse(says(host, "nvidia-smi/nvlink-s")).gpus[3].nvlinks
    assert isinstance(links, Missing)
    assert {word for pair, word in topo.parse(says(host, "nvidia-smi/topo-m")).links.items() if 3 in pair} == {
        "NODE",
        "SYS",
    }


def test_a_lost_gpu_is_lost_in_every_source(make_host: HostMaker) -> None:
    host = make_host(P5, "gpu-lost")
    lost = host.gpus[3]
    assert keys(host)["gpu.3.error"] == "15"
    assert "gpu.3.name" not in keys(host)
    answer = render(host).answers["nvidia-smi/q-x"]
    assert answer.rc == 15
    assert "Unable to determine the device handle for GPU0000:86:00.0: GPU is lost" in answer.stdout
    assert [device.address for device in lspci.parse(says(host, "lspci")).devices if device.dead] == [lost.address]
    assert render(host).root[f"sys/bus/pci/devices/{lost.address}/config"] == DEAD_CONFIG
    events = kernel_log.parse(says(host, "dmesg")).events
    assert {event.kind for event in events} == {"xid", "fallen-off-bus"}
    assert [event.code for event in events if event.kind == "xid"] == [79]
    listed = smi_list.parse_list(says(host, "nvidia-smi/L")).inventory
    assert (len(listed.gpus), listed.lost) == (7, (lost.address,))


def test_a_missing_gpu_is_in_no_source(make_host: HostMaker) -> None:
    host = make_host(P5, "gpu-missing")
    rendered = render(host)
    everything = [answer.stdout for answer in rendered.answers.values()]
    everything += [rendered.machine, *rendered.root]
    assert not any("86:00.0" in text for text in everything)
    assert keys(host)["gpu.count"] == "7"
    assert len(topo.parse(says(host, "nvidia-smi/topo-m")).gpus) == 7
    assert kernel_log.parse(says(host, "dmesg")).events == ()


def test_a_single_gpu_that_is_missing_leaves_no_devices(make_host: HostMaker) -> None:
    answer = render(make_host("g6.xlarge", "gpu-missing")).answers["nvidia-smi/L"]
    assert (answer.stdout, answer.rc) == ("No devices were found\n", 6)


def test_a_link_that_is_down_is_down_in_every_source(make_host: HostMaker) -> None:
    host = make_host(P5, "nvlink-down")
    links = nvlink.parse(says(host, "nvidia-smi/nvlink-s")).gpus[3].nvlinks
    assert not isinstance(links, Missing)
    assert [link.index for link in links if link.active is False] == [7]
    assert keys(host)["gpu.3.nvlink.7.active"] == "0"
    cells = topo.parse(says(host, "nvidia-smi/topo-m")).links
    assert {cell for (row, _), cell in cells.items() if row == 3} == {"NV17"}  # as the driver counts: by row
    assert {cell for (row, _), cell in cells.items() if row != 3} == {"NV18"}


def test_in_a_mesh_both_ends_of_a_link_are_down(make_host: HostMaker) -> None:
    host = make_host("p3.16xlarge", "nvlink-down")
    cells = topo.parse(says(host, "nvidia-smi/topo-m")).links
    assert cells[3, 7] == cells[7, 3] == "PHB"
    down = [gpu.slot for gpu in host.gpus if not all(gpu.links)]
    assert down == [3, 7]
    assert keys(host)["gpu.3.p2p.7"] == "3"


def test_a_pending_repair_shows_where_the_board_keeps_it(make_host: HostMaker) -> None:
    rows = smi_xml.parse(says(make_host(P5, "remap-pending"), "nvidia-smi/q-x")).gpus[3]
    assert (rows.remapped_rows.pending, rows.remapped_rows.uncorrectable) == (True, 1)
    pages = smi_xml.parse(says(make_host("p3.16xlarge", "remap-pending"), "nvidia-smi/q-x")).gpus[3]
    assert (pages.retired_pages.pending, pages.retired_pages.double_bit) == (True, 1)


def test_uncorrectable_errors_are_counted_and_logged(make_host: HostMaker) -> None:
    host = make_host(P5, "ecc-uncorrectable")
    ecc = smi_xml.parse(says(host, "nvidia-smi/q-x")).gpus[3].ecc
    assert (ecc.volatile_uncorrected, ecc.aggregate_uncorrected) == (2, 2)
    assert keys(host)["gpu.3.ecc.volatile.uncorrected"] == "2"
    assert [event.code for event in kernel_log.parse(says(host, "dmesg")).events] == [48]


def test_a_library_that_is_too_new_stops_every_call(make_host: HostMaker) -> None:
    host = make_host(P5, "driver-mismatch")
    for name in ("q-x", "topo-m", "topo-p2p-r", "nvlink-s", "L", "version"):
        answer = render(host).answers[f"nvidia-smi/{name}"]
        assert answer.rc == 18
        assert answer.stdout.startswith("Failed to initialize NVML: Driver/library version mismatch\n")
    assert keys(host)["nvml.init"] == "18"
    assert "580.105.08" in str(render(host).root["proc/driver/nvidia/version"])


def test_an_old_driver_is_old_in_every_source(make_host: HostMaker) -> None:
    host = make_host(P5, "wrong-driver")
    rendered = render(host)
    texts = [answer.stdout for name, answer in rendered.answers.items() if name != "nvcc"]
    assert not any("580.105.08" in text for text in [*texts, rendered.machine, *map(str, rendered.root.values())])
    assert smi_xml.parse(says(host, "nvidia-smi/q-x")).driver_version == "535.104.05"


def test_a_wrong_gpu_has_another_name_and_device_id(make_host: HostMaker) -> None:
    host = make_host(P5, "wrong-gpu")
    assert keys(host)["gpu.3.name"] == "NVIDIA H200"
    assert "[10de:2335]" in says(host, "lspci")


def test_a_hot_gpu_is_at_its_slowdown_and_says_why_it_is_slow(make_host: HostMaker) -> None:
    for instance_type, victim in ((P5, 3), ("g4dn.xlarge", 0)):
        hot = smi_xml.parse(says(make_host(instance_type, "thermal-throttle"), "nvidia-smi/q-x")).gpus[victim]
        assert not isinstance(hot.throttle_reasons, Missing)
        assert {"hw_slowdown", "hw_thermal_slowdown"} <= hot.throttle_reasons
        assert not isinstance(hot.temperature_c, Missing)
        assert hot.temperature_c > 85


def test_an_interface_that_is_no_efa_is_missing_everywhere(make_host: HostMaker) -> None:
    host = make_host(P5, "efa-missing")
    assert says(host, "fi_info").count("provider: efa") == 31
    assert says(host, "lspci").count("[1d0f:efa2]") == 31


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("corrupt-gemm", "corrupt_at", "3"),
        ("slow-gpu", "fp16_tflops", "234.0"),
        ("no-work", "no_work", "1"),
        ("too-fast", "fp16_tflops", "3510.0"),
    ],
)
def test_a_burn_in_fault_reaches_the_stub_libraries(name: str, key: str, value: str, make_host: HostMaker) -> None:
    assert keys(make_host(P5, name))[f"gpu.3.burnin.{key}"] == value
