"""Change one thing in a healthy machine's evidence: what is bad closes the gate, what means the same does nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.hosts.description import types
from validation.verdict import Verdict

if TYPE_CHECKING:
    from tests.unit.validation.machines.conftest import Machine

Machines = Callable[[str], "Machine"]
TYPES = ("p5.48xlarge", "p4d.24xlarge", "p3.16xlarge", "g4dn.xlarge")
P5, P3, G4 = "p5.48xlarge", "p3.16xlarge", "g4dn.xlarge"


def nth(text: str, old: str, new: str, at: int) -> str:
    """The text with its ``at``-th ``old`` changed; a negative number counts from the end."""
    places = [found.start() for found in re.finditer(re.escape(old), text)]
    start = places[at]
    return text[:start] + new + text[start + len(old) :]


def tag(name: str, word: str) -> str:
    return f"<{name}>{word}</{name}>"


REASON = "clocks_event_reason_{}"
# One word of nvidia-smi's XML that means trouble, while NVML says that all is well: element, good word, bad word.
XML_WORDS = [
    *((REASON.format(name), "Not Active", "Active") for name in (
        "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown",
    )),
    ("current_ecc", "Enabled", "Disabled"),
    ("pending_ecc", "Enabled", "Disabled"),
    ("current_mig", "Disabled", "Enabled"),
    ("pending_mig", "Disabled", "Enabled"),
    ("remapped_row_pending", "No", "Yes"),
    ("remapped_row_failure", "No", "Yes"),
    ("channel_repair_pending", "No", "Yes"),
    ("tpc_repair_pending", "No", "Yes"),
    ("sram_threshold_exceeded", "No", "Yes"),
    ("gpu_recovery_action", "None", "Reset"),
    ("state", "Completed", "In Progress"),
    ("status", "Success", "Insufficient Resources"),
    ("product_name", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"),
    ("product_name", "NVIDIA H100 80GB HBM3", "GPU is lost"),
    ("uuid", "GPU-", "GPU-f"),
    ("vbios_version", "96.00.99.00.01", "[Unknown Error]"),
]  # fmt: skip
# The same from NVML, while the XML says that all is well: where in a device, and the bad value.
NVML_VALUES: list[tuple[tuple[str, ...], Any]] = [
    (("throttle_reasons",), ["hw_slowdown"]),
    (("ecc", "enabled"), False),
    (("ecc", "pending"), False),
    (("ecc", "volatile_uncorrected"), 1),
    (("ecc", "sram_threshold_exceeded"), True),
    (("mig", "enabled"), True),
    (("remapped_rows", "pending"), True),
    (("remapped_rows", "failure"), True),
    (("repairs", "channel_pending"), True),
    (("repairs", "inforom_corrupt"), True),
    (("recovery_action",), "Drain and Reset"),
    (("fabric", "state"), "In Progress"),
    (("fabric", "status"), "NVML_ERROR_NOT_READY"),
    (("fabric", "health_summary"), "Unhealthy"),
    (("name",), "NVIDIA H100 PCIe"),
    (("pcie", "width"), 8),
    (("temperature", "tlimit_margin_c"), -1),
    (("memory", "total_mib"), 40000),
    (("p2p", "0"), "TNS"),
    (("nvlinks", "3", "active"), False),
    (("nvlinks", "3", "rate_mbps"), 13281),
    (("uuid",), {"error": "NVML_ERROR_GPU_IS_LOST"}),
    (("serial",), {"error": "NVML_ERROR_UNKNOWN"}),
]
# One change of another item that means trouble: item, what stands there, what then does.
TEXTS = [
    (P5, "topo-m", "NV18", "NV17"),
    (P5, "topo-m", "NV18", "SYS"),
    (P3, "topo-m", "NV2", "NV1"),
    (P3, "topo-m", "PHB", "NODE"),
    (P5, "topo-p2p-r", "\tOK", "\tTNS"),
    (P5, "nvlink-s", "26.562 GB/s", "<inactive>"),
    (P5, "nvlink-e", "CRC Errors: 0", "CRC Errors: 77"),
    (P5, "lspci", "(rev a1)", "(rev ff)"),
    (G4, "lspci", "(rev a1)", "(rev ff)"),
    (P5, "sysfs-pcie", "current_link_width:16", "current_link_width:63"),
    (P5, "fabricmanager", "ActiveState=active", "ActiveState=failed"),
    (P5, "fabricmanager", "LoadState=loaded", "LoadState=not-found"),
    (P5, "fabricmanager-version", "580.105.08", "580.126.09"),
    (P5, "driver-module", "580.105.08", "580.126.09"),
    (P5, "driver-module", "Open Kernel Module", "Kernel Modul"),
    (P5, "fi-info", "domain: rdmap79s0-rdm", "domain: rdmap80s0-rdm"),
    (P5, "ibv-devinfo", "PORT_ACTIVE (4)", "PORT_DOWN (1)"),
    (P5, "lsblk", "Amazon EC2 NVMe Instance Storage", "Amazon Elastic Block Store"),
    (P5, "lsblk", "3800000000000", "380000000000"),
    (P5, "sysfs-numa", "0000:53:00.0/numa_node:0", "0000:53:00.0/numa_node:1"),
    (P5, "sysfs-numa", "node1/cpulist:", "node2/cpulist:"),
    (P5, "kernel", "x86_64", "aarch64"),
    (G4, "kernel", "x86_64", "riscv64"),
    (P5, "boot-id", "0d9a4b7e", "0d9a"),
]
KERNEL = [
    "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "NVRM: GPU 0000:53:00.0: GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:53:00): 48, pid=1, name=x, DBE (double bit error) ECC error",
    "NVRM: Xid (PCI:0000:53:00): 119, pid=1, name=x, Timeout after 6s of waiting for RPC response from GPU0 GSP!",
    "nvidia-nvswitch0: SXid (PCI:0000:cb:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
    "pcieport 0000:50:01.0: AER: Uncorrected (Fatal) error received: 0000:53:00.0",
    "EXT4-fs (nvme0n1p1): Remounting filesystem read-only",
    "blk_update_request: I/O error, dev nvme1n1, sector 5439488 op 0x0:(READ) flags 0x80700",
    "watchdog: BUG: soft lockup - CPU#12 stuck for 23s! [train:4242]",
]


@pytest.mark.parametrize(("name", "good", "bad"), XML_WORDS)
@pytest.mark.parametrize("at", [0, -1])
def test_trouble_that_only_nvidia_smi_tells_closes_the_gate(
    machine_of: Machines, name: str, good: str, bad: str, at: int
) -> None:
    machine = machine_of(P5)
    before = tag(name, good) if name != "uuid" else f"<uuid>{good}"
    after = tag(name, bad) if name != "uuid" else f"<uuid>{bad}"
    changed = nth(machine.text("nvidia-smi-q-x"), before, after, at)
    assert not machine.verdict({"nvidia-smi-q-x": changed}).opens_gate


@pytest.mark.parametrize(("where", "bad"), NVML_VALUES, ids=lambda value: str(value))
def test_trouble_that_only_nvml_tells_closes_the_gate(machine_of: Machines, where: tuple[str, ...], bad: Any) -> None:
    machine = machine_of(P5)
    document = json.loads(machine.text("nvml"))
    place = document["devices"][5]
    for part in where[:-1]:
        place = place[int(part) if isinstance(place, list) else part]
    assert where[-1] in place
    place[where[-1]] = bad
    assert not machine.verdict({"nvml": json.dumps(document)}).opens_gate


@pytest.mark.parametrize(("name", "item", "good", "bad"), TEXTS)
def test_one_bad_word_of_any_other_item_closes_the_gate(
    machine_of: Machines, name: str, item: str, good: str, bad: str
) -> None:
    machine = machine_of(name)
    assert not machine.verdict({item: nth(machine.text(item), good, bad, 0)}).opens_gate


@pytest.mark.parametrize("line", KERNEL)
def test_one_bad_line_of_the_kernel_log_closes_the_gate(machine_of: Machines, line: str) -> None:
    machine = machine_of(P5)
    log = machine.text("kernel-log") + f"[  914.201337] {line}\n"
    assert machine.verdict({"kernel-log": log}) is Verdict.FAIL


@pytest.mark.parametrize("name", types())
def test_line_ends_colours_and_byte_order_marks_change_no_verdict(machine_of: Machines, name: str) -> None:
    machine = machine_of(name)
    changes: dict[str, Callable[[str], str]] = {
        "carriage returns": lambda text: text.replace("\n", "\r\n"),
        "colours": lambda text: text.replace("\n", "\x1b[0m\n"),
        "byte order mark": lambda text: f"\ufeff{text}",
    }
    for what, change in changes.items():
        texts = {item.name: change(item.stdout) for item in machine.bundle.items.values() if item.stdout}
        assert machine.verdict(texts) is Verdict.PASS, what


def in_a_comma_locale(text: str) -> str:
    """Decimal points as commas, and Yes and No in German: a tool that ran in another locale than the probe's."""
    return re.sub(r"(?<=\d)\.(?=\d)", ",", text).replace(">Yes<", ">Ja<").replace(">No<", ">Nein<")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("item", ["nvidia-smi-q-x", "nvlink-s", "driver-module", "nvcc", "cuda-version-files"])
def test_numbers_and_words_of_another_locale_are_refused_or_read_alike(
    machine_of: Machines, name: str, item: str
) -> None:
    machine = machine_of(name)
    changed = in_a_comma_locale(machine.text(item))
    others = {"nvlink-s": ("nvml",), "nvcc": ("cuda-version-files",), "cuda-version-files": ("nvcc",)}.get(item, ())
    if item == "nvlink-s" and changed == machine.text(item):
        assert machine.verdict({**machine.without(*others), item: changed}).opens_gate
        return
    assert changed != machine.text(item)
    assert not machine.verdict({**machine.without(*others), item: changed}).opens_gate


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("name", TYPES)
def test_a_text_cut_short_is_missed(machine_of: Machines, name: str, share: float) -> None:
    """But for a kernel log, which is a log at any length, and for what another source tells as well."""
    machine = machine_of(name)
    needed = {"nvidia-smi-q-x", "nvml", "lspci"}
    if machine.profile.gpu.count.value > 1:
        needed |= {"topo-m"}
    if machine.profile.links.nvlinks and machine.profile.links.nvlinks.value:
        needed |= {"nvlink-e"}
    if machine.expected.efa_count:
        needed |= {"fi-info", "ibv-devinfo"}
    functions = set(re.findall(r"devices/(\S+?)/vendor", machine.text("sysfs-pcie")))
    for item in needed:
        text = machine.text(item)
        cut = text[: int(len(text) * share)]
        if item == "topo-m" and ("Legend" in cut or "\nNIC0" in cut):
            continue  # every row of a GPU is there
        if item == "lspci" and all(address in cut for address in functions):
            continue  # what is gone are disks
        assert not machine.verdict({item: cut}).opens_gate, item


def swapped(header: str, one: str, other: str) -> str:
    return header.replace(one, "\0").replace(other, one).replace("\0", other)


@pytest.mark.parametrize("item", ["topo-m", "topo-p2p-r"])
def test_two_columns_of_a_matrix_swapped_in_its_header_are_missed(machine_of: Machines, item: str) -> None:
    machine = machine_of(P5)
    header, _, rest = machine.text(item).partition("\n")
    changed = f"{swapped(header, 'GPU1', 'GPU2')}\n{rest}"
    assert not machine.verdict({**machine.without("nvml"), item: changed}).opens_gate


def columns(text: str) -> Iterator[list[str]]:
    return (line.split("\t") for line in text.split("\n"))


def test_two_columns_of_cells_swapped_are_missed(machine_of: Machines) -> None:
    """Of a mesh; where every pair is alike, the diagonal shows it."""
    for name in (P3, P5):
        machine = machine_of(name)
        rows = list(columns(machine.text("topo-m")))
        for row in rows:
            if row[0].startswith("GPU"):
                row[1], row[4] = row[4], row[1]
        changed = "\n".join("\t".join(row) for row in rows)
        assert not machine.verdict({"topo-m": changed}).opens_gate, name


# Elements of the XML without which the gate may open, and why.
XML_SPARE = {
    "serial": "kept to recognise a unit, and judged by nobody",
    "gsp_firmware_version": "boards before Turing have none",
    "pending_mig": "the mode itself is judged",
    "gpu_virtualization_mode": "tells only whether a licence is needed",
    "virtualization_mode": "tells only whether a licence is needed",
    "compute_mode": "the stack does not set it",
    "pending_ecc": "the mode itself is judged",
    "sram_threshold_exceeded": "drivers before 570 print none",
    "channel_repair_pending": "drivers before 570 print none",
    "tpc_repair_pending": "drivers before 570 print none",
    "replay_counter": "told, and judged by nobody",
}
XML_NEEDED = (
    "product_name", "uuid", "persistence_mode", "current_mig", "current_ecc", "ecc_errors", "remapped_rows",
    "remapped_row_pending", "remapped_row_failure", "vbios_version", "fb_memory_usage", "clocks_event_reasons",
    "clocks_event_reason_hw_slowdown", "clocks_event_reason_gpu_idle", "fabric", "gpu_recovery_action", "pci",
    "pci_gpu_link_info", "link_widths", "current_link_width", "temperature", "gpu_temp", "gpu_power_readings",
    "current_power_limit", "processes", "product_architecture", "driver_version", "attached_gpus",
)  # fmt: skip


@pytest.mark.parametrize("element", XML_NEEDED)
def test_an_element_that_nvidia_smi_renames_is_missed_where_nvml_is_not_there(
    machine_of: Machines, element: str
) -> None:
    machine = machine_of(P5)
    text = machine.text("nvidia-smi-q-x")
    assert f"<{element}>" in text
    renamed = text.replace(f"<{element}>", f"<{element}_v2>").replace(f"</{element}>", f"</{element}_v2>")
    assert not machine.verdict({**machine.without("nvml"), "nvidia-smi-q-x": renamed}).opens_gate


@pytest.mark.parametrize("element", sorted(XML_SPARE))
def test_an_element_that_no_verdict_rests_on_may_go(machine_of: Machines, element: str) -> None:
    machine = machine_of(P5)
    text = machine.text("nvidia-smi-q-x")
    renamed = re.sub(rf"(</?){element}>", rf"\1{element}_v2>", text)
    assert renamed != text
    assert machine.verdict({**machine.without("nvml"), "nvidia-smi-q-x": renamed}).opens_gate
