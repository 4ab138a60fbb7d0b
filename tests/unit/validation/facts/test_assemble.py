"""Evidence to facts: each read whole, or a gap that says why not; what two sources say is decided in one way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from validation.evidence import Bundle, Item, Outcome
from validation.facts.assemble import RULES, assemble
from validation.facts.components import Components
from validation.facts.gpu import DriverFault, GpuInventory
from validation.facts.host import (
    CudaToolkits,
    EfaModule,
    EfaNics,
    HostInfo,
    KernelLog,
    P2pMatrix,
    PciBus,
    Topology,
)
from validation.facts.missing import Missing
from validation.facts.nvlink_errors import NvLinkErrors
from validation.facts.store import FactGapError, Facts

PCI = "/sys/bus/pci/devices"


def item(name: str, stdout: str = "", **changes: Any) -> Item:
    return Item(name, changes.pop("source", name), changes.pop("outcome", Outcome.OK), stdout, rc=0, **changes)


def bundle(*items: Item, **changes: Any) -> Bundle:
    return Bundle("host1", {one.name: one for one in items}, **changes)


def absent(name: str) -> Item:
    return item(name, outcome=Outcome.NOT_FOUND)


def nvml(*uuids: str, active: int = 18, lost: Mapping[int, str] | None = None) -> Item:
    devices: list[dict[str, Any]] = [
        {
            "index": index,
            "name": "NVIDIA H100 80GB HBM3",
            "uuid": uuid,
            "nvlinks": [{"link": link, "active": link < active} for link in range(18)],
            "p2p": {str(other): "OK" for other in range(len(uuids)) if other != index},
        }
        for index, uuid in enumerate(uuids)
    ]
    for index, error in (lost or {}).items():
        devices.append({"index": index, "handle_error": error})
    return item("nvml", json.dumps({"driver_version": "580.1", "device_count": len(devices), "devices": devices}))


def gap_of(facts: Facts, kind: type) -> str:
    with pytest.raises(FactGapError) as caught:
        facts.need(kind)
    return caught.value.gap.reason


def test_a_bundle_without_its_end_gives_no_fact_at_all(topo_text: str) -> None:
    facts = assemble(bundle(item("topo-m", topo_text), complete=False))
    assert list(facts) == []
    assert set(facts.gaps()) == set(RULES)


def test_an_item_that_was_not_gathered_is_a_gap_for_its_fact() -> None:
    facts = assemble(bundle())
    assert "'topo-m' was not gathered" in gap_of(facts, Topology)
    # Components says it field by field: each of them stands for itself.
    assert set(facts.gaps()) == set(RULES) - {Components}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"outcome": Outcome.NOT_FOUND}, "topo -m: not found"),
        ({"outcome": Outcome.TIMEOUT, "duration_s": 15.2}, "topo -m: no answer within 15 s"),
        ({"outcome": Outcome.DENIED}, "topo -m: permission denied"),
        ({"outcome": Outcome.ERROR, "error": "fork failed"}, "topo -m: fork failed"),
        ({"truncated": True}, "topo -m: the output was cut off"),
        ({"rc": 15, "stderr": "GPU is lost\n"}, "topo -m: exit status 15: GPU is lost"),
        ({"stdout": "hello\n"}, "could not be read: nvidia-smi topo -m: no matrix"),
    ],
)
def test_why_a_fact_is_not_there_is_said(topo_text: str, change: dict[str, Any], reason: str) -> None:
    changed = replace(item("topo-m", topo_text, source="topo -m"), **change)
    assert reason in gap_of(assemble(bundle(changed)), Topology)


def test_what_breaks_a_parser_was_not_read() -> None:
    endless = "GPU " + "9" * 5_000 + ": NVIDIA H100 (UUID: GPU-0)\n"  # more digits than Python makes a number of
    assert "could not be read: ValueError" in gap_of(assemble(bundle(item("nvlink-e", endless))), NvLinkErrors)


def test_nvml_is_believed_and_what_it_lacks_comes_from_the_xml(xml_text: str) -> None:
    inventory = assemble(bundle(nvml("GPU-00000000", "GPU-00000001"), item("nvidia-smi-q-x", xml_text))).need(
        GpuInventory
    )
    assert (inventory.source, inventory.attached) == ("nvml", 2)
    assert inventory.gpus[1].pci_address == "0000:64:00.0"
    assert inventory.gpus[1].vbios == "96.00.99.00.01"


def test_the_xml_alone_serves_where_nvml_cannot_be_used(xml_text: str) -> None:
    facts = assemble(bundle(absent("nvml"), item("nvidia-smi-q-x", xml_text)))
    assert facts.need(GpuInventory).source == "nvidia-smi-q-x"


def test_an_xml_that_shows_fewer_gpus_than_are_attached_is_no_inventory(xml_text: str) -> None:
    text = xml_text.replace("<attached_gpus>2", "<attached_gpus>3")
    facts = assemble(bundle(absent("nvml"), item("nvidia-smi-q-x", text)))
    assert "3 GPUs attached, 2 shown" in gap_of(facts, GpuInventory)
    named = f"Unable to determine the device handle for GPU2: 0000:75:00.0: GPU is lost.\n{text}"
    assert assemble(
        bundle(
            item(
                "nvidia-smi-q-x",
                named,
            )
        )
    ).need(GpuInventory).lost == ("0000:75:00.0",)


def test_a_gpu_that_only_one_source_sees_is_lost(xml_text: str) -> None:
    inventory = assemble(bundle(nvml("GPU-00000000"), item("nvidia-smi-q-x", xml_text))).need(GpuInventory)
    assert [gpu.uuid for gpu in inventory.gpus] == ["GPU-00000000"]
    assert inventory.lost == ("0000:64:00.0",)


def test_a_gpu_that_nvidia_smi_calls_lost_is_lost_although_nvml_lists_it() -> None:
    words = "Unable to determine the device handle for GPU1: 0000:64:00.0: GPU is lost.  Reboot the system\n"
    items = (nvml("GPU-00000000", "GPU-00000001"), replace(item("nvidia-smi-q-x", words), rc=15))
    assert assemble(bundle(*items)).need(GpuInventory).lost == ("0000:64:00.0",)


def test_a_tool_that_hangs_is_told_although_the_other_answers(xml_text: str) -> None:
    hung = item("nvidia-smi-q-x", outcome=Outcome.TIMEOUT, duration_s=30.0)
    inventory = assemble(bundle(nvml("GPU-00000000"), hung)).need(GpuInventory)
    assert inventory.silent == ("nvidia-smi-q-x: no answer within 30 s",)
    both = assemble(bundle(nvml("GPU-00000000", "GPU-00000001"), item("nvidia-smi-q-x", xml_text)))
    assert both.need(GpuInventory).silent == ()


@pytest.mark.parametrize(
    ("smi", "told"),
    [
        ({"stdout": "Segmentation fault\n", "rc": 139}, "no XML document in the output"),
        ({"stdout": "", "outcome": Outcome.ERROR, "error": "Broken pipe"}, "Broken pipe"),
        ({"outcome": Outcome.DENIED}, "permission denied"),
        ({"rc": 255}, "exit status 255"),
    ],
)
def test_a_tool_that_breaks_is_told_although_the_other_answers(xml_text: str, smi: dict[str, Any], told: str) -> None:
    broken = replace(item("nvidia-smi-q-x", xml_text), **smi)
    inventory = assemble(bundle(nvml("GPU-00000000", "GPU-00000001"), broken)).need(GpuInventory)
    assert [told in text for text in inventory.silent] == [True]


def test_an_nvml_that_cannot_be_read_is_told_although_nvidia_smi_answers(xml_text: str) -> None:
    facts = assemble(bundle(item("nvml", '{"device_count": 2}'), item("nvidia-smi-q-x", xml_text)))
    assert facts.need(GpuInventory).silent == ("could not be read: nvml: no device_count or no devices",)


def test_a_tool_that_is_not_installed_is_not_missed_where_the_other_answers(xml_text: str) -> None:
    assert assemble(bundle(absent("nvml"), item("nvidia-smi-q-x", xml_text))).need(GpuInventory).silent == ()


def test_a_warning_below_the_document_names_the_gpu_and_explains_the_status(xml_text: str) -> None:
    text = f"{xml_text}WARNING: infoROM is corrupted at gpu 0000:64:00.0\n"
    items = (nvml("GPU-00000000", "GPU-00000001"), replace(item("nvidia-smi-q-x", text), rc=14))
    inventory = assemble(bundle(*items)).need(GpuInventory)
    assert (inventory.warned, inventory.silent) == (("0000:64:00.0",), ())


def test_two_sources_with_other_gpus_are_no_inventory(xml_text: str) -> None:
    facts = assemble(bundle(nvml("GPU-9", "GPU-00000001"), item("nvidia-smi-q-x", xml_text)))
    assert "does not" in gap_of(facts, GpuInventory)


def test_a_gpu_without_a_handle_is_lost_with_both_sources(xml_text: str) -> None:
    one = xml_text[: xml_text.index("\t<gpu", xml_text.index("</gpu>"))] + "</nvidia_smi_log>\n"
    items = (nvml("GPU-00000000", lost={1: "NVML_ERROR_GPU_IS_LOST"}), item("nvidia-smi-q-x", one))
    inventory = assemble(bundle(*items)).need(GpuInventory)
    assert (len(inventory.gpus), inventory.attached, inventory.lost) == (1, 2, ("GPU1",))


def test_a_link_that_either_source_sees_down_is_down(nvlink_text: str) -> None:
    printed = nvlink_text.replace("Link 3: 26.562 GB/s", "Link 3: <inactive>", 1)
    for items in (
        (nvml("GPU-00000000", "GPU-00000001"), item("nvlink-s", printed)),
        (nvml("GPU-00000000", "GPU-00000001", active=17), item("nvlink-s", nvlink_text)),
    ):
        links = assemble(bundle(*items)).need(GpuInventory).gpus[0].nvlinks
        assert not isinstance(links, Missing)
        assert sum(link.active is True for link in links) == 17


def test_links_come_from_the_text_where_nvml_cannot_be_used(xml_text: str, nvlink_text: str) -> None:
    facts = assemble(bundle(absent("nvml"), item("nvidia-smi-q-x", xml_text), item("nvlink-s", nvlink_text)))
    links = facts.need(GpuInventory).gpus[1].nvlinks
    assert not isinstance(links, Missing)
    assert len(links) == 18


def test_peer_matrices_that_contradict_each_other_are_no_fact(p2p_text: str) -> None:
    same = "\t".join(["", "GPU0", "GPU1"]) + "\n GPU0\tX\tOK\n GPU1\tOK\tX\n"
    assert assemble(bundle(nvml("a", "b"), item("topo-p2p-r", same))).need(P2pMatrix).status[0, 1] == "OK"
    other = assemble(bundle(nvml("a", "b"), item("topo-p2p-r", same.replace("OK\n", "NS\n", 1))))
    assert "NVML says OK, nvidia-smi topo -p2p says NS" in gap_of(other, P2pMatrix)
    assert "lists GPUs" in gap_of(assemble(bundle(nvml("a", "b"), item("topo-p2p-r", p2p_text))), P2pMatrix)


def test_the_driver_names_its_fault() -> None:
    start = item("nvml", json.dumps({"init_error": "NVML_ERROR_LIB_RM_VERSION_MISMATCH", "errors": []}))
    assert assemble(bundle(start)).need(DriverFault).kind == "library-mismatch"
    words = item("nvidia-smi-q-x", "", stderr="No devices were found\n")
    assert assemble(bundle(words)).need(DriverFault).kind == "no-devices"
    assert assemble(bundle(absent("driver-module"))).need(DriverFault).kind == "not-loaded"


def test_a_matrix_that_was_not_printed_is_a_gap_in_the_tools_words_and_no_fault_of_the_driver(xml_text: str) -> None:
    failed = replace(item("topo-m", "Failed to run topology matrix\n\n"), rc=255)
    facts = assemble(bundle(nvml("GPU-00000000"), item("nvidia-smi-q-x", xml_text), failed))
    assert DriverFault not in facts
    assert gap_of(facts, Topology) == "topo-m: exit status 255: Failed to run topology matrix"


def test_a_driver_that_works_names_no_fault(xml_text: str) -> None:
    assert DriverFault not in assemble(bundle(nvml("GPU-00000000"), item("nvidia-smi-q-x", xml_text)))


def test_efa_is_counted_by_libfabric_and_by_verbs_where_that_is_not_installed() -> None:
    none = item("fi-info", "", stderr="fi_getinfo: -61\n")
    assert assemble(bundle(replace(none, rc=61))).need(EfaNics).nics == ()
    ibv = item("ibv-devinfo", "hca_id: efa_0\n\tvendor_id: 0x1d0f\n\tstate: PORT_ACTIVE (4)\n")
    assert assemble(bundle(absent("fi-info"), ibv)).need(EfaNics).nics == ("efa_0",)
    assert "not found" in gap_of(assemble(bundle(absent("fi-info"), absent("ibv-devinfo"))), EfaNics)


def test_a_module_that_is_not_loaded_is_a_fact() -> None:
    assert not assemble(bundle(absent("efa-module"))).need(EfaModule).loaded


def test_nvcc_off_the_path_is_no_missing_toolkit() -> None:
    files = item("cuda-version-files", '/usr/local/cuda-12.6/version.json:{"cuda": {"version": "12.6.3"}}\n')
    assert assemble(bundle(absent("nvcc"), files)).need(CudaToolkits).versions == {"/usr/local/cuda-12.6": "12.6.3"}
    assert assemble(bundle(absent("nvcc"), absent("cuda-version-files"))).need(CudaToolkits).versions == {}


def test_the_bus_comes_from_lspci_its_links_from_sys() -> None:
    lspci = item("lspci", "0000:53:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n")
    files = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "current_link_width": "8"}
    sys = item("sysfs-pcie", "".join(f"{PCI}/0000:53:00.0/{name}:{value}\n" for name, value in files.items()))
    assert assemble(bundle(lspci, sys)).need(PciBus).devices[0].link_width == 8
    assert assemble(bundle(lspci)).need(PciBus).devices[0].dead is False
    assert assemble(bundle(absent("lspci"), sys)).need(PciBus).nvidia_gpus[0].link_width == 8
    refused = assemble(bundle(replace(lspci, rc=1, stdout="", stderr="lspci: Cannot open\n"), sys))
    assert "Cannot open" in gap_of(refused, PciBus)


def test_an_empty_kernel_log_is_a_gap() -> None:
    assert "empty" in gap_of(assemble(bundle(item("kernel-log", "\n"))), KernelLog)


def test_the_host_needs_all_of_its_names() -> None:
    texts = {
        "os-release": "ID=ubuntu\n",
        "kernel": "Linux 6 x86_64\n",
        "boot-id": "0b8d3b2c-6f6d-4d3c-9f57-0d3b6d1a2c3d\n",
    }
    items = [item(name, text) for name, text in texts.items()]
    host = assemble(bundle(*items, absent("instance"), root="/mnt")).need(HostInfo)
    assert (host.root, host.hostname) == ("/mnt", "host1")
    for at in range(3):
        assert HostInfo not in assemble(bundle(*items[:at], *items[at + 1 :], absent("instance")))
