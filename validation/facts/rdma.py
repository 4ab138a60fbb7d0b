"""RDMA ports: ``ibv_devinfo``, ``ibstat`` and ``ibstatus``. Each names state and link layer of every port."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from profiles.errors import ParseError
from validation.facts.host import RdmaDevice, RdmaDevices
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import lines, word

_FIELD = re.compile(r"^\s*([A-Za-z_/0-9][A-Za-z_ /0-9]*):\s+(.*\S)\s*$")
_RATE = re.compile(r"^(\d+(?:\.\d+)?)(?:\s*Gb/sec.*)?$")
_NONE = re.compile(r"No IB devices found|no devices found|Fatal error:\s+No devices", re.I)
_FAILED = re.compile(r"Failed to get IB devices list: (.*\S)")
_NAMES_ONLY = re.compile(r"^[ \t]*device[ \t]+node GUID|^\d+ HCAs? found:", re.M)
# The states of a port as the tools word them: libibverbs (also before PORT_), infiniband-diags and iproute2; Linux
# enum ib_port_state. The kernel knows four link layers, and old libibverbs says IB for the first.
_STATES = frozenset(
    (
        *("NOP", "NO", "DOWN", "INIT", "INITIALIZE", "INITIALIZING", "ARMED"),
        *("ACTIVE", "ACTIVE_DEFER", "ACTDEFER", "UNKNOWN"),
    )
)
_LAYERS = frozenset(("InfiniBand", "IB", "Ethernet", "Unspecified", "Unknown"))
# What stands below the name of a device in each tool's output, and nowhere else.
_BELOW = frozenset(
    (
        *("phys_port_cnt", "port", "state", "phys_state", "link_layer"),  # ibv_devinfo
        *("phys state", "Number of ports", "State", "Link layer"),  # ibstatus, ibstat
    )
)
LOAD = "Load the kernel's RDMA modules (modprobe ib_uverbs) and the network card's driver, and ask again."
AMAZON = "0x1d0f"
ALIBABA = "0x1ded"  # Linux drivers/infiniband/hw/erdma/erdma_verbs.c, erdma_query_device


@dataclass
class _Adapter:
    """What was read of one adapter so far; ``count`` is how many ports it says that it has."""

    name: str
    line: int
    common: RdmaDevice
    ports: dict[int, RdmaDevice] = field(default_factory=dict)
    count: int | None = None
    at: int = 1

    def put(self, **values: object) -> None:
        """Sets fields of the port that is being read."""
        self.ports[self.at] = replace(self.ports.get(self.at, RdmaDevice(port_name(self.name, self.at))), **values)  # type: ignore[arg-type]

    def devices(self) -> list[RdmaDevice]:
        """The ports, each with what the adapter says of all of them."""
        of_all = {"vendor_id": self.common.vendor_id, "firmware": self.common.firmware}
        return [replace(port, **of_all) for _, port in sorted(self.ports.items())]  # type: ignore[arg-type]


def known_state(state: str) -> bool:
    """Whether a word is the state of a port, and not the beginning of one that was cut off."""
    return state.upper().removeprefix("PORT_").partition(" ")[0] in _STATES


def port_name(device: str, port: int) -> str:
    """``mlx5_0`` for port 1, which most adapters have only; ``mlx5_0/2`` for another."""
    return device if port == 1 else f"{device}/{port}"


def parse_ibv_devinfo(text: str) -> RdmaDevices:
    """``ibv_devinfo [-v]``. An EFA device has zero GUIDs and firmware 0.0.0.0 when it is healthy; no GUID is judged."""
    tool = "ibv_devinfo"
    failed = _FAILED.search(text)
    if failed:
        raise ParseError(tool, 0, f"{failed[1]}: nothing was looked at", LOAD)
    found: list[_Adapter] = []
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        if stripped.startswith("hca_id:"):
            name = stripped.partition(":")[2].strip()
            found.append(_Adapter(name, number, RdmaDevice(name)))
            continue
        match = _FIELD.match(line)
        if match and found:
            _devinfo_field(found[-1], match[1].strip(), match[2])
        elif match:
            _refuse_headless(tool, number, match[1].strip())
    return _devices(tool, text, found)


def _devinfo_field(adapter: _Adapter, key: str, value: str) -> None:
    if key == "vendor_id":
        adapter.common = replace(adapter.common, vendor_id=word(value.lower()))
    elif key == "fw_ver":
        adapter.common = replace(adapter.common, firmware=word(value))
    elif key == "phys_port_cnt" and value.isdigit():
        adapter.count = int(value)
    elif key == "port" and value.isdigit():
        adapter.at = int(value)
        adapter.put()
    elif key == "state" or (key.startswith("port ") and "PORT_" in value):
        adapter.put(state=value.split()[0].rstrip(","))
    elif key == "phys_state":
        adapter.put(physical=value.split()[0])
    elif key == "link_layer":
        adapter.put(link_layer=word(value))


def parse_ibstatus(text: str) -> RdmaDevices:
    """``ibstatus``: one block a port."""
    tool = "ibstatus"
    found: list[_Adapter] = []
    for number, line in enumerate(lines(text), start=1):
        head = re.match(r"^Infiniband device '([^']+)' port (\d+) status:", line.strip())
        if head:
            found.append(_Adapter(head[1], number, RdmaDevice(head[1]), at=int(head[2])))
            found[-1].put()
            continue
        match = _FIELD.match(line)
        if match is None:
            continue
        if not found:
            _refuse_headless(tool, number, match[1].strip())
            continue
        adapter, key, value = found[-1], match[1].strip(), match[2]
        if key == "state":
            adapter.put(state=value.partition(":")[2].strip() or value)
        elif key == "phys state":
            adapter.put(physical=value.partition(":")[2].strip() or value)
        elif key == "rate":
            adapter.put(rate_gbit_s=_rate(value, tool, number))
        elif key == "link_layer":
            adapter.put(link_layer=word(value))
    return _devices(tool, text, found, layer=True)


def parse_ibstat(text: str) -> RdmaDevices:
    """``ibstat``: one block an adapter, with its ports inside."""
    tool = "ibstat"
    found: list[_Adapter] = []
    for number, line in enumerate(lines(text), start=1):
        head = re.match(r"^CA:? '([^']+)'", line.strip())
        if head:
            found.append(_Adapter(head[1], number, RdmaDevice(head[1])))
            continue
        port = re.match(r"^Port (\d+):$", line.strip())
        if port and found:
            found[-1].at = int(port[1])
            found[-1].put()
            continue
        match = _FIELD.match(line)
        if match and found:
            _ibstat_field(found[-1], match[1].strip(), match[2], number)
        elif match or port:
            _refuse_headless(tool, number, "State" if port else line.strip().partition(":")[0])
    return _devices(tool, text, found, layer=True)


def _ibstat_field(adapter: _Adapter, key: str, value: str, number: int) -> None:
    if key == "State":
        adapter.put(state=word(value))
    elif key == "Physical state":
        adapter.put(physical=word(value))
    elif key == "Rate":
        adapter.put(rate_gbit_s=_rate(value, "ibstat", number))
    elif key == "Link layer":
        adapter.put(link_layer=word(value))
    elif key == "Firmware version":
        adapter.common = replace(adapter.common, firmware=word(value))
    elif key == "Number of ports" and value.isdigit():
        adapter.count = int(value)


def _refuse_headless(tool: str, line: int, key: str) -> None:
    """A port's field before the name of any device: its device was cut off."""
    if key in _BELOW:
        raise ParseError(tool, line, f"{key} before the name of any device: the text's beginning is missing")


def _devices(tool: str, text: str, found: list[_Adapter], *, layer: bool = False) -> RdmaDevices:
    """The ports, each with its state; one without it, or one that was announced and is not there, is a cut text."""
    if not found:
        if _NAMES_ONLY.search(text):
            raise ParseError(tool, 0, "names without the state of a port", "Use ibv_devinfo without -l.")
        if _NONE.search(text):
            return RdmaDevices(())
        raise ParseError(tool, 0, "no device, and no word that there is none")
    for adapter in found:
        for port in adapter.devices() or [adapter.common]:
            _check(tool, adapter.line, port, layer=layer)
        if adapter.count is not None and len(adapter.ports) < adapter.count:
            shown = f"{adapter.name}: {len(adapter.ports)} of {adapter.count} ports shown"
            raise ParseError(tool, adapter.line, f"{shown}; the text is cut short, or asked for one port only")
    return RdmaDevices(tuple(port for adapter in found for port in adapter.devices()))


def _check(tool: str, line: int, port: RdmaDevice, *, layer: bool) -> None:
    """Raises ParseError where a port lacks what its tool always says, or says a word that is none of its words."""
    if isinstance(port.state, Missing):
        raise ParseError(tool, line, f"{port.name}: no state; the text is cut short")
    if not known_state(port.state):
        raise ParseError(tool, line, f"{port.name}: {port.state[:40]!r} is no state of a port")
    if layer and port.link_layer == ABSENT:
        raise ParseError(tool, line, f"{port.name}: no link layer; the text is cut short")
    if isinstance(port.link_layer, str) and port.link_layer not in _LAYERS:
        raise ParseError(tool, line, f"{port.name}: {port.link_layer[:40]!r} is no link layer")


def _rate(raw: str, tool: str, line: int) -> float:
    match = _RATE.match(raw.strip())
    if match is None:
        raise ParseError(tool, line, f"rate {raw!r}")
    return float(match[1])
