"""RDMA devices: ``ibv_devinfo``, ``ibstat``, ``ibstatus`` and ``rdma link``. Each names state and link layer."""

from __future__ import annotations

import re
from dataclasses import replace

from profiles.errors import ParseError
from validation.facts.host import RdmaDevice, RdmaDevices
from validation.facts.missing import ABSENT, Missing
from validation.facts.text import lines, word

_FIELD = re.compile(r"^\s*([A-Za-z_ /0-9]+?):\s+(.*\S)\s*$")
_RATE = re.compile(r"^(\d+(?:\.\d+)?)(?:\s*Gb/sec.*)?$")
_RDMA_LINK = re.compile(
    r"^(?:\d+: )?link (?P<name>[^/\s]+)/(?P<port>\d+) state (?P<state>\S+)(?: physical_state (?P<physical>\S+))?"
)
_NONE = re.compile(r"No IB devices found|no devices found", re.I)
AMAZON = "0x1d0f"


def parse_ibv_devinfo(text: str) -> RdmaDevices:
    """``ibv_devinfo [-v]``. An EFA device has zero GUIDs and firmware 0.0.0.0 when it is healthy; no GUID is judged."""
    tool = "ibv_devinfo"
    found: list[tuple[int, RdmaDevice]] = []
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        if stripped.startswith("hca_id:"):
            found.append((number, RdmaDevice(stripped.partition(":")[2].strip())))
            continue
        match = _FIELD.match(line)
        if match is None or not found:
            continue
        key, value = match[1].strip(), match[2]
        device = found[-1][1]
        if key == "vendor_id":
            device = replace(device, vendor_id=word(value.lower()))
        elif key == "fw_ver":
            device = replace(device, firmware=word(value))
        elif key == "state" or (key.startswith("port ") and "PORT_" in value):
            device = replace(device, state=value.split()[0].rstrip(","))
        elif key == "link_layer":
            device = replace(device, link_layer=word(value))
        found[-1] = (found[-1][0], device)
    return _devices(tool, text, found)


def parse_ibstatus(text: str) -> RdmaDevices:
    """``ibstatus``: one block a port."""
    tool = "ibstatus"
    found: list[tuple[int, RdmaDevice]] = []
    for number, line in enumerate(lines(text), start=1):
        head = re.match(r"^Infiniband device '([^']+)' port (\d+) status:", line.strip())
        if head:
            found.append((number, RdmaDevice(head[1] if head[2] == "1" else f"{head[1]}/{head[2]}")))
            continue
        match = _FIELD.match(line)
        if match is None or not found:
            continue
        device, key, value = found[-1][1], match[1].strip(), match[2]
        if key == "state":
            device = replace(device, state=value.partition(":")[2].strip() or value)
        elif key == "rate":
            device = replace(device, rate_gbit_s=_rate(value, tool, number))
        elif key == "link_layer":
            device = replace(device, link_layer=word(value))
        found[-1] = (found[-1][0], device)
    return _devices(tool, text, found, layer=True)


def parse_ibstat(text: str) -> RdmaDevices:
    """``ibstat``: one block an adapter, with its ports inside."""
    tool = "ibstat"
    found: list[tuple[int, RdmaDevice]] = []
    for number, line in enumerate(lines(text), start=1):
        head = re.match(r"^CA '([^']+)'", line.strip())
        if head:
            found.append((number, RdmaDevice(head[1])))
            continue
        match = _FIELD.match(line)
        if match is None or not found:
            continue
        device, key, value = found[-1][1], match[1].strip(), match[2]
        if key == "State":
            device = replace(device, state=word(value))
        elif key == "Rate":
            device = replace(device, rate_gbit_s=_rate(value, tool, number))
        elif key == "Link layer":
            device = replace(device, link_layer=word(value))
        elif key == "Firmware version":
            device = replace(device, firmware=word(value))
        found[-1] = (found[-1][0], device)
    return _devices(tool, text, found, layer=True)


def parse_rdma_link(text: str) -> RdmaDevices:
    """``rdma link``: one line a port."""
    found = []
    for number, line in enumerate(lines(text), start=1):
        match = _RDMA_LINK.match(line.strip())
        if match:
            name = match["name"] if match["port"] == "1" else f"{match['name']}/{match['port']}"
            found.append((number, RdmaDevice(name, state=match["state"])))
        elif line.strip() and not line.strip().startswith("$"):
            raise ParseError("rdma link", number, f"{line.strip()[:80]!r} is not a link")
    return _devices("rdma link", text, found)


def _devices(tool: str, text: str, found: list[tuple[int, RdmaDevice]], *, layer: bool = False) -> RdmaDevices:
    """The devices, each with its state; a device without one is where the text was cut."""
    if not found:
        if _NONE.search(text):
            return RdmaDevices(())
        raise ParseError(tool, 0, "no device, and no word that there is none")
    for number, device in found:
        if isinstance(device.state, Missing):
            raise ParseError(tool, number, f"{device.name}: no state; the text is cut short")
        if layer and device.link_layer == ABSENT:
            raise ParseError(tool, number, f"{device.name}: no link layer; the text is cut short")
    return RdmaDevices(tuple(device for _, device in found))


def _rate(raw: str, tool: str, line: int) -> float:
    match = _RATE.match(raw.strip())
    if match is None:
        raise ParseError(tool, line, f"rate {raw!r}")
    return float(match[1])
