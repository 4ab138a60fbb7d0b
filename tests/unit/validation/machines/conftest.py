"""The whole evidence of a healthy machine of each simulated type, as the probe brings it home, without a process.

Tools answer as the sandbox renders them, files are read by the probe's own code, and NVML's document is made from the
stub library's description (a system test holds it against the real binding over that library).
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiles.expectation import expect
from profiles.models import Expectation, InstanceProfile
from sandbox.hosts.description import machine
from sandbox.hosts.render import render
from sandbox.hosts.render.answers import Rendered
from sandbox.hosts.state import Identity, healthy
from validation.evidence import Bundle, Item, Outcome
from validation.facts.assemble import RULES
from validation.facts.assemble import _read as read
from validation.facts.store import Facts, Gap
from validation.judge import judge_facts
from validation.probe import nvml
from validation.probe.collectors import collectors
from validation.probe.files import Root
from validation.probe.nvml_links import FABRIC_STATES, FABRIC_SUMMARIES, LINK_REMOTES, P2P_STATUS, TOPOLOGY
from validation.probe.nvml_links import fabric_health as health_words
from validation.probe.process import ToolMissingError
from validation.verdict import Finding, Verdict, combine

BOOT = "0d9a4b7e-52c1-4f0e-9b1c-3f6c1c7f1d2a"
NO_UNIT = "Id={}\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n"
REFUSED = {"error": "NVML_ERROR_NOT_SUPPORTED"}
# What a command line prints, by the sandbox's name for the answer.
ANSWERS: Mapping[str, str] = {
    "nvidia-smi -q -x": "nvidia-smi/q-x",
    "nvidia-smi topo -m": "nvidia-smi/topo-m",
    "nvidia-smi topo -p2p r": "nvidia-smi/topo-p2p-r",
    "nvidia-smi nvlink -s": "nvidia-smi/nvlink-s",
    "nvidia-smi nvlink -e": "nvidia-smi/nvlink-e",
    "uname -srm": "uname/srm",
}


class Machine:
    """A healthy machine, with every EFA that its type can carry, and what is made of it when some evidence changes.

    Only facts that are read from what has changed are read again, so that a thousand changes take seconds.
    """

    def __init__(self, instance_type: str) -> None:
        self.expected = _expected(instance_type)
        self.bundle = _bundle(instance_type)
        self._facts: dict[type, object] = {}
        self._read_from: dict[type, set[str]] = {}
        for kind, rule in RULES.items():
            recorder = _Recorder(self.bundle.items)
            self._facts[kind] = _read(rule, replace(self.bundle, items=recorder))
            self._read_from[kind] = recorder.asked

    @property
    def profile(self) -> InstanceProfile:
        assert self.expected.profile is not None
        return self.expected.profile

    def text(self, item: str) -> str:
        return self.bundle.items[item].stdout

    def without(self, *items: str) -> dict[str, Item]:
        """These items as they are where nothing of the kind is installed."""
        return {name: replace(self.bundle.items[name], outcome=Outcome.NOT_FOUND, stdout="", rc=None) for name in items}

    def findings(self, changes: Mapping[str, Item | str | None]) -> tuple[Finding, ...]:
        """The judge's, with these items in the place of their own: another text, another item, or none at all."""
        changed = {
            name: replace(self.bundle.items[name], stdout=change) if isinstance(change, str) else change
            for name, change in changes.items()
        }
        whole = {**self.bundle.items, **changed}
        bundle = replace(self.bundle, items={name: item for name, item in whole.items() if item is not None})
        facts = {
            kind: _read(RULES[kind], bundle) if self._read_from[kind] & changed.keys() else fact
            for kind, fact in self._facts.items()
        }
        gaps = {kind: fact for kind, fact in facts.items() if isinstance(fact, Gap)}
        values = {kind: fact for kind, fact in facts.items() if kind not in gaps}
        return judge_facts(Facts(values, gaps), self.expected, self.bundle.host)

    def verdict(self, changes: Mapping[str, Item | str | None]) -> Verdict:
        return combine(self.findings(changes))


class _Recorder(dict[str, Item]):
    """Items that remember which of them were asked for."""

    def __init__(self, items: Mapping[str, Item]) -> None:
        super().__init__(items)
        self.asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Item:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)


def _read(rule: Callable[[Bundle], object], bundle: Bundle) -> object:
    return read(lambda: rule(bundle), "")


@pytest.fixture(scope="session")
def machine_of() -> Callable[[str], Machine]:
    return functools.cache(Machine)


def _expected(instance_type: str) -> Expectation:
    toolkit = machine(instance_type).software.toolkit.rpartition(".")[0]
    return expect(instance_type, efa_count=_efa(instance_type), driver="580", cuda=toolkit)


def _efa(instance_type: str) -> int:
    efa = machine(instance_type).efa
    return len(efa.addresses) if efa else 0


@functools.cache
def _bundle(instance_type: str) -> Bundle:
    state = healthy(Identity("h1", "gpu-a", instance_type, "i-0123456789abcdef0", BOOT, _efa(instance_type)))
    shown = render(state)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in shown.root.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        items = {entry.name: _item(entry, shown) for entry in collectors(Root(folder))}
    return Bundle("gpu-a", items)


def _item(entry: Any, shown: Rendered) -> Item:
    source, task = entry.ways[0]
    if entry.name == "nvml":
        return Item("nvml", source, Outcome.OK, json.dumps(nvml_document(shown.machine)))
    if entry.is_file:
        written: list[str] = []
        try:
            task(written.append)
        except ToolMissingError as error:
            return Item(entry.name, source, Outcome.NOT_FOUND, error=str(error))
        return Item(entry.name, source, Outcome.OK, "".join(written))
    words = source.split()
    name = ANSWERS.get(source, f"systemctl/{words[2]}.service" if words[0] == "systemctl" else words[0])
    if words[0] == "systemctl" and name not in shown.answers:
        return Item(entry.name, source, Outcome.OK, NO_UNIT.format(name.partition("/")[2]), rc=0)
    if name not in shown.answers:
        return Item(entry.name, source, Outcome.NOT_FOUND, error=f"{words[0]}: not found")
    answer = shown.answers[name]
    return Item(entry.name, source, Outcome.OK, answer.stdout, answer.stderr, answer.rc)


def nvml_document(machine_text: str) -> dict[str, Any]:
    """The document of validation/probe/nvml.py from the text that the stub library answers from."""
    keys = dict(line.split("=", 1) for line in machine_text.splitlines() if not line.startswith("#"))
    count = int(keys["gpu.count"])
    cuda = int(keys["cuda.driver"])
    return {
        "driver_version": keys["driver.version"],
        "nvml_version": keys["nvml.version"],
        "cuda_driver_version": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "device_count": count,
        "errors": [],
        "devices": [{"index": index, **_device(_Keys(keys, f"gpu.{index}."), count, index)} for index in range(count)],
    }


class _Keys:
    """The keys of one GPU. What is not there, the driver refuses."""

    def __init__(self, keys: Mapping[str, str], prefix: str) -> None:
        self._keys, self._prefix = keys, prefix

    def __contains__(self, name: str) -> bool:
        return f"{self._prefix}{name}" in self._keys

    def text(self, name: str) -> Any:
        return self._keys.get(f"{self._prefix}{name}", REFUSED)

    def number(self, name: str, divisor: int = 1) -> Any:
        found = self.text(name)
        return found if found is REFUSED else int(found) // divisor if divisor != 1000 else int(found) / divisor

    def flag(self, name: str) -> Any:
        found = self.number(name)
        return found if found is REFUSED else bool(found)

    def word(self, name: str, words: Mapping[int, str]) -> Any:
        found = self.number(name)
        return found if found is REFUSED else words[found]

    def group(self, *, needs: str, **values: Any) -> Any:
        return values if needs in self else REFUSED


def _device(gpu: _Keys, count: int, index: int) -> dict[str, Any]:
    others = [other for other in range(count) if other != index]
    clocks = {
        f"{name}{suffix.replace('.', '_')}_mhz": gpu.number(f"clock.{name}{suffix}")
        for name in ("graphics", "sm", "memory", "video")
        for suffix in ("", ".max")
    }
    return {
        **{name: gpu.text(name) for name in ("name", "uuid", "serial", "vbios")},
        "gsp_firmware": gpu.text("gsp"),
        "pci_address": gpu.text("pci.bus_id"),
        "architecture": gpu.word("arch", nvml.ARCHITECTURES),
        "persistence": gpu.flag("persistence"),
        "compute_mode": gpu.word("compute_mode", nvml.COMPUTE_MODES),
        "virtualization": gpu.word("virtualization", nvml.VIRTUALIZATION),
        "mig": gpu.group(needs="mig.current", enabled=gpu.flag("mig.current"), pending=gpu.flag("mig.pending")),
        "memory": {
            "total_mib": gpu.number("memory.total", 2**20),
            "used_mib": gpu.number("memory.used", 2**20),
        },
        "ecc": _ecc(gpu),
        **_repairs(gpu),
        "clocks": clocks,
        "power": {
            "draw_w": gpu.number("power.usage", 1000),
            "limit_w": gpu.number("power.limit", 1000),
            "limit_default_w": gpu.number("power.default", 1000),
        },
        "temperature": {
            "gpu_c": gpu.number("temperature.gpu"),
            "slowdown_c": gpu.number("threshold.1"),
            "tlimit_margin_c": gpu.number("temperature.margin"),
        },
        "throttle_reasons": [name for bit, name in nvml.THROTTLE_REASONS if gpu.number("throttle") & bit],
        "recovery_action": gpu.word("recovery", nvml.RECOVERY_ACTIONS),
        "processes": 0,
        "pcie": {
            "generation": gpu.number("pcie.gen"),
            "generation_max": gpu.number("pcie.gen.max"),
            "width": gpu.number("pcie.width"),
            "width_max": gpu.number("pcie.width.max"),
            "replays": gpu.number("pcie.replay"),
        },
        "fabric": _fabric(gpu),
        "nvlinks": _nvlinks(gpu),
        "p2p": {str(other): gpu.word(f"p2p.{other}", P2P_STATUS) for other in others},
        "topology": {str(other): gpu.word(f"topology.{other}", TOPOLOGY) for other in others},
    }


def _ecc(gpu: _Keys) -> dict[str, Any]:
    counts = {
        f"{span}_{kind}": gpu.number(f"ecc.{span}.{kind}")
        for span in ("volatile", "aggregate")
        for kind in ("corrected", "uncorrected")
    }
    threshold = gpu.flag("ecc.sram_threshold")
    modes = {"enabled": gpu.flag("ecc.current"), "pending": gpu.flag("ecc.pending")}
    return {**modes, **counts, "sram_threshold_exceeded": threshold}


def _repairs(gpu: _Keys) -> dict[str, Any]:
    rows = {
        "correctable": gpu.number("remap.corrected"),
        "uncorrectable": gpu.number("remap.uncorrected"),
        "pending": gpu.flag("remap.pending"),
        "failure": gpu.flag("remap.failure"),
    }
    pages = {
        "single_bit": gpu.number("retired.single"),
        "double_bit": gpu.number("retired.double"),
        "pending": gpu.flag("retired.pending"),
    }
    repairs = {
        "channel_pending": gpu.flag("repair.channel"),
        "tpc_pending": gpu.flag("repair.tpc"),
        "unrepairable_memory": gpu.flag("repair.impossible"),
        "inforom_corrupt": gpu.flag("inforom.corrupt"),
    }
    return {
        "remapped_rows": rows if "remap.pending" in gpu else REFUSED,
        "retired_pages": pages,
        "repairs": repairs,
    }


def _fabric(gpu: _Keys) -> Any:
    if "fabric.state" not in gpu:
        return REFUSED
    return {
        "state": gpu.word("fabric.state", FABRIC_STATES),
        "status": "Success" if not gpu.number("fabric.status") else str(gpu.number("fabric.status")),
        "clique_id": gpu.number("fabric.clique"),
        "cluster_uuid": gpu.text("fabric.uuid"),
        "health_summary": gpu.word("fabric.summary", FABRIC_SUMMARIES),
        "health": health_words(gpu.number("fabric.health")),
    }


def _nvlinks(gpu: _Keys) -> Any:
    if "nvlink.count" not in gpu:
        return REFUSED
    rate = gpu.number("nvlink.rate_mbps")
    return [
        {
            "link": link,
            "active": gpu.flag(f"nvlink.{link}.active"),
            "rate_mbps": rate,
            "remote": gpu.word(f"nvlink.{link}.remote_type", LINK_REMOTES),
        }
        for link in range(gpu.number("nvlink.count"))
    ]
