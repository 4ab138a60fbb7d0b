"""The real nvidia-smi over the stub NVML: the parsers read what it prints, and it says what the description says.

``tools/nvidia_smi.sh`` finds or fetches it. ``make smi`` and CI run these tests; ``make test`` leaves them out, since
they need a package that not every machine may install.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from profiles.errors import ParseError
from sandbox.hosts.description import types
from sandbox.hosts.host import SimulatedHost
from sandbox.hosts.render import render
from validation.facts import (
    driver_fault,
    nvlink,
    nvlink_errors,
    smi_csv,
    smi_list,
    smi_table,
    smi_text,
    smi_xml,
    topo,
    topo_p2p,
)
from validation.facts.gpu import Gpu
from validation.facts.missing import Missing, Reason
from validation.recognise import recognise

pytestmark = [pytest.mark.system, pytest.mark.realsmi]

P5 = "p5.48xlarge"
WITH_NVLINK = (P5, "p4d.24xlarge", "p3.16xlarge")
VICTIM = "0000:86:00.0"  # whom a fault on one GPU hits
LOST = 15  # NVML_ERROR_GPU_IS_LOST, which nvidia-smi ends with
# What nvidia-smi has learned to print since driver 535, or prints elsewhere.
NEWER = {
    "fabric.clique_id",
    "fabric.cluster_uuid",
    "fabric.health_summary",
    "nvlinks",
    "recovery_action",
    "repairs.channel_pending",
    "repairs.tpc_pending",
    "vgpu_license",
}

Smi = Callable[..., str]
MakeHost = Callable[..., SimulatedHost]


@pytest.fixture(scope="session")
def nvidia_smi(repository: Path) -> Path:
    """The real program. Its absence is a failure, with the way out."""
    found = subprocess.run(
        ["sh", str(repository / "tools" / "nvidia_smi.sh")], capture_output=True, text=True, timeout=120, check=False
    )
    if found.returncode:
        pytest.fail(f"these tests need the real nvidia-smi: {found.stderr.strip()}", pytrace=False)
    return Path(found.stdout.strip())


@pytest.fixture(scope="module")
def make_host(tmp_path_factory: pytest.TempPathFactory) -> MakeHost:
    """A simulated host of a type, with faults. Nobody changes it: the same wish gives the same host."""
    home = tmp_path_factory.mktemp("hosts")

    @functools.cache
    def make(instance_type: str, *faults: str) -> SimulatedHost:
        host = SimulatedHost.create(home, "-".join((instance_type, *faults)), "gpu-a", instance_type)
        for name in faults:
            host.inject(name)
        return host

    return make


@pytest.fixture
def smi(nvidia_smi: Path) -> Smi:
    """Runs the program on a host and returns its output; ``ends`` is the status that it must end with."""

    def run(host: SimulatedHost, *arguments: str, ends: int = 0) -> str:
        environment = {
            "PATH": "/usr/bin:/bin",
            "LD_LIBRARY_PATH": str(host.folder / "lib"),
            "KILN_STUB_MACHINE": str(host.folder / "machine.txt"),
        }
        done = subprocess.run(
            [str(nvidia_smi), *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == ends, f"{arguments}: {done.stdout[:2000]}{done.stderr}"
        return done.stdout

    return run


def rendered(host: SimulatedHost) -> tuple[Gpu, ...]:
    """The GPUs as the sandbox's own rendering of ``nvidia-smi -q -x`` has them."""
    return smi_xml.parse(render(host.state).answers["nvidia-smi/q-x"].stdout).gpus


def flat(value: object, name: str = "") -> dict[str, object]:
    """The fields of a fact by dotted name, each with its value; of a missing value the reason, not the words."""
    if isinstance(value, Missing):
        return {name: value.reason}
    if not is_dataclass(value):
        return {name: value}
    inner = [(f"{name}.{part.name}".lstrip("."), getattr(value, part.name)) for part in fields(value)]
    return {key: found for path, part in inner for key, found in flat(part, path).items()}


def assert_same(real: Gpu, ours: Gpu, *, unprinted: set[str]) -> None:
    """The real tool says what the rendering says, and leaves out nothing that it has but ``unprinted``."""
    one, two = flat(real), flat(ours)
    unequal = {name: (value, two[name]) for name, value in one.items() if value != two[name]}
    assert {name for name, (value, _) in unequal.items() if value is Reason.ABSENT} <= unprinted
    assert {name: pair for name, pair in unequal.items() if Reason.ABSENT not in pair} == {}


def csv_columns(help_text: str) -> list[str]:
    """Every column that this nvidia-smi's own help names."""
    return sorted({line.split('"')[1] for line in help_text.splitlines() if line.startswith('"') and line[1].islower()})


@pytest.mark.parametrize("instance_type", types())
def test_the_xml_and_the_text_say_what_the_rendering_says(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type)
    xml, text = smi(host, "-q", "-x"), smi(host, "-q")
    inventory = smi_xml.parse(xml)
    assert (inventory.driver_version, inventory.cuda_driver_version) == (host.state.driver, host.state.cuda_driver)
    assert inventory.attached == len(host.state.gpus)
    for real, ours in zip(inventory.gpus, rendered(host), strict=True):
        assert_same(real, ours, unprinted=NEWER)
    assert smi_text.parse(text).gpus == inventory.gpus


@pytest.mark.parametrize("instance_type", types())
def test_the_list_and_the_table_name_every_gpu(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type)
    listed = smi_list.parse_list(smi(host, "-L"))
    assert [(gpu.name, gpu.uuid) for gpu in listed.inventory.gpus] == [(gpu.name, gpu.uuid) for gpu in host.state.gpus]
    table = smi_table.parse_table(smi(host))
    shown, inventory = table.inventory, smi_xml.parse(smi(host, "-q", "-x"))
    assert (shown.driver_version, shown.cuda_driver_version) == (host.state.driver, host.state.cuda_driver)
    assert (table.errors, shown.omitted, shown.lost) == ((), (), ())
    for gpu, whole in zip(shown.gpus, inventory.gpus, strict=True):
        assert (gpu.index, gpu.pci_address, gpu.persistence) == (whole.index, whole.pci_address, whole.persistence)
        assert (gpu.memory_total_mib, gpu.temperature_c) == (whole.memory_total_mib, whole.temperature_c)
        assert (gpu.ecc.volatile_uncorrected, gpu.mig_enabled) == (whole.ecc.volatile_uncorrected, whole.mig_enabled)


@pytest.mark.parametrize("instance_type", types())
def test_every_csv_column_is_read_as_the_xml_is(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type)
    columns = csv_columns(smi(host, "--help-query-gpu"))
    assert len(columns) > 100
    inventory = smi_csv.parse(smi(host, f"--query-gpu={','.join(columns)}", "--format=csv"))
    repairs = {f"remapped_rows.{name}" for name in ("correctable", "uncorrectable", "pending", "failure")}
    elsewhere = {"brand", "architecture", "gsp_firmware", "virtualization", "processes", "slowdown_c", "pcie.replays"}
    for real, ours in zip(inventory.gpus, rendered(host), strict=True):
        assert_same(real, ours, unprinted=NEWER | elsewhere | repairs | {"ecc.sram_threshold_exceeded"})


@pytest.mark.parametrize("instance_type", types())
def test_the_pair_matrix_is_that_of_the_description(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type)
    real = topo.parse(smi(host, "topo", "-m"))
    ours = topo.parse(render(host.state).answers["nvidia-smi/topo-m"].stdout)
    assert real.links == ours.links == {pair: cell for pair, cell in cells(host).items() if cell != "X"}
    assert (real.cpu_affinity, real.numa) == (ours.cpu_affinity, ours.numa)


def cells(host: SimulatedHost) -> dict[tuple[int, int], str]:
    gpus = host.state.gpus
    return {
        (one, two): "X" if one == two else host.state.pair(gpus[one], gpus[two])
        for one in range(len(gpus))
        for two in range(len(gpus))
    }


@pytest.mark.parametrize("instance_type", types())
def test_the_peer_matrices_are_those_of_the_description(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type)
    for capability in "rw":
        matrix = topo_p2p.parse(smi(host, "topo", "-p2p", capability), capability)
        assert set(matrix.status.values()) <= {host.state.machine.p2p}
        assert len(matrix.status) == len(host.state.gpus) * (len(host.state.gpus) - 1)
    over_nvlink = topo_p2p.parse(smi(host, "topo", "-p2p", "n"), "n").status
    wired = {pair: "OK" if cell.startswith("NV") else "NS" for pair, cell in cells(host).items() if cell != "X"}
    assert over_nvlink == wired


@pytest.mark.parametrize("instance_type", WITH_NVLINK)
def test_every_link_is_listed_up_and_without_errors(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type)
    states = nvlink.parse(smi(host, "nvlink", "-s"))
    assert states == nvlink.parse(render(host.state).answers["nvidia-smi/nvlink-s"].stdout)
    errors = nvlink_errors.parse(smi(host, "nvlink", "-e"))
    assert len(errors.counters) == 3 * sum(len(gpu.links) for gpu in host.state.gpus)
    assert {counter.count for counter in errors.counters} == {0}


def test_boards_without_nvlink_are_no_links_and_no_facts(make_host: MakeHost, smi: Smi) -> None:
    """Driver 535 prints nothing for them, and nothing is not "no link is down"."""
    with pytest.raises(ParseError, match="no line 'GPU N: NAME'"):
        nvlink.parse(smi(make_host("g5.48xlarge"), "nvlink", "-s"))


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("-q", "-x"), "nvidia-smi-q-x"),
        (("-q",), "nvidia-smi-q"),
        (("-q", "-d", "ECC"), "nvidia-smi-q"),
        (("-L",), "nvidia-smi-l"),
        ((), "nvidia-smi"),
        (("--query-gpu=index,name,pci.bus_id", "--format=csv"), "nvidia-smi-csv"),
        (("topo", "-m"), "topo-m"),
        (("topo", "-p2p", "r"), "topo-p2p"),
        (("nvlink", "-s"), "nvlink-s"),
        (("nvlink", "-e"), "nvlink-e"),
    ],
)
def test_explain_recognises_each_output(arguments: tuple[str, ...], kind: str, make_host: MakeHost, smi: Smi) -> None:
    text = smi(make_host(P5), *arguments)
    found = recognise(text)
    assert found is not None
    assert found.name == kind
    found.parse(text)


@pytest.mark.parametrize(
    "fault",
    [
        "ecc-uncorrectable",
        "remap-pending",
        "thermal-throttle",
        "wrong-gpu",
        "wrong-driver",
        "gpu-missing",
        "mig-enabled",
    ],
)
def test_a_fault_shows_as_it_is_rendered(fault: str, make_host: MakeHost, smi: Smi) -> None:
    healthy, faulty = make_host("p4d.24xlarge"), make_host(P5, fault)
    inventory = smi_xml.parse(smi(faulty, "-q", "-x"))
    assert inventory.driver_version == faulty.state.driver
    for real, ours in zip(inventory.gpus, rendered(faulty), strict=True):
        assert_same(real, ours, unprinted=NEWER)
    assert inventory != smi_xml.parse(smi(healthy, "-q", "-x"))


@pytest.mark.parametrize("instance_type", [P5, "p4d.24xlarge"])
def test_a_partitioned_gpu_is_one_gpu_with_its_instances(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    """The blocks of the MIG instances, which repeat the GPU's own names, are not taken for the GPU's."""
    host = make_host(instance_type, "mig-enabled")
    gpus = len(host.state.gpus)
    inventory = smi_xml.parse(smi(host, "-q", "-x"))
    assert smi_text.parse(smi(host, "-q")).gpus == inventory.gpus
    assert [gpu.mig_enabled for gpu in inventory.gpus] == [index == 3 for index in range(gpus)]
    assert {gpu.memory_total_mib for gpu in inventory.gpus} == {float(host.state.gpus[0].memory_mib)}
    assert smi(host, "-L") == render(host.state).answers["nvidia-smi/L"].stdout
    listed = smi_list.parse_list(smi(host, "-L"))
    assert len(listed.inventory.gpus) == gpus
    assert [part.uuid for part in listed.mig_devices] == host.state.gpus[3].instances
    table = smi_table.parse_table(smi(host))
    assert [gpu.mig_enabled for gpu in table.inventory.gpus] == [index == 3 for index in range(gpus)]
    assert {one.gpu for one in table.mig_slices} == {3}
    assert (table.errors, table.inventory.omitted) == ((), ())
    assert (
        topo.parse(smi(host, "topo", "-m")).links
        == topo.parse(render(host.state).answers["nvidia-smi/topo-m"].stdout).links
    )


@pytest.mark.parametrize("instance_type", WITH_NVLINK)
def test_a_link_that_is_down_shows_in_both_outputs(instance_type: str, make_host: MakeHost, smi: Smi) -> None:
    host = make_host(instance_type, "nvlink-down")
    assert topo.parse(smi(host, "topo", "-m")).links == {
        pair: cell for pair, cell in cells(host).items() if cell != "X"
    }
    states = nvlink.parse(smi(host, "nvlink", "-s")).gpus
    down = {
        (gpu.index, link.index)
        for gpu in states
        if not isinstance(gpu.nvlinks, Missing)
        for link in gpu.nvlinks
        if not link.active
    }
    expected = {(at, link) for at, gpu in enumerate(host.state.gpus) for link, up in enumerate(gpu.links) if not up}
    assert down == expected
    assert down


@pytest.mark.parametrize("arguments", [("-L",), ("-q", "-x"), ("-q",), (), ("nvlink", "-s")])
def test_a_lost_gpu_is_named_by_every_output_that_needs_it(
    arguments: tuple[str, ...], make_host: MakeHost, smi: Smi
) -> None:
    """All but the list end there: the other GPUs are not shown, and no parser takes that for an inventory."""
    text = smi(make_host(P5, "gpu-lost"), *arguments, ends=LOST)
    fault = driver_fault.first(text, "nvidia-smi")
    assert fault is not None
    assert (fault.kind, fault.gpu) == ("gpu-lost", VICTIM)
    if arguments == ("-L",):
        listed = smi_list.parse_list(text).inventory
        assert (len(listed.gpus), listed.lost) == (7, (VICTIM,))
        return
    for parse in (smi_xml.parse, smi_text.parse, nvlink.parse, smi_table.parse_table):
        with pytest.raises(ParseError):
            parse(text)


@pytest.mark.parametrize("arguments", [("topo", "-m"), ("topo", "-p2p", "r")])
def test_no_matrix_is_read_where_a_gpu_is_lost(arguments: tuple[str, ...], make_host: MakeHost, smi: Smi) -> None:
    text = smi(make_host(P5, "gpu-lost"), *arguments, ends=255)
    for parse in (topo.parse, topo_p2p.parse):
        with pytest.raises(ParseError, match="no matrix"):
            parse(text)


@pytest.mark.parametrize("instance_type", [P5, "g6.xlarge"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("q-x", ("-q", "-x")),
        ("L", ("-L",)),
        ("topo-m", ("topo", "-m")),
        ("topo-p2p-r", ("topo", "-p2p", "r")),
        ("nvlink-s", ("nvlink", "-s")),
        ("nvlink-e", ("nvlink", "-e")),
        ("query-gpu/.broken", ("--query-gpu=index,name", "--format=csv")),
    ],
)
def test_a_lost_gpu_is_rendered_to_the_letter(
    name: str, arguments: tuple[str, ...], instance_type: str, make_host: MakeHost, smi: Smi
) -> None:
    host = make_host(instance_type, "gpu-lost")
    ours = render(host.state).answers[f"nvidia-smi/{name}"]
    assert smi(host, *arguments, ends=ours.rc) == ours.stdout


def test_a_library_of_another_version_is_a_fault_of_its_own(make_host: MakeHost, smi: Smi) -> None:
    text = smi(make_host(P5, "driver-mismatch"), ends=18)
    fault = driver_fault.first(text, "nvidia-smi")
    assert fault is not None
    assert fault.kind == "library-mismatch"
