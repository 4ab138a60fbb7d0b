"""``lspci -nn`` / ``-Dnn`` / ``-vvv -nn``: the functions on the PCI bus, and the ones that no longer answer."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from profiles.errors import ParseError
from validation.facts.host import PciBus, PciDevice
from validation.facts.text import lines, pci_address

TOOL = "lspci -nn"
_FUNCTION = re.compile(
    r"^(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>.+?) \[(?P<class>[0-9a-f]{4})\]: "
    r"(?P<name>.*?) ?\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\](?P<rest>(?: \((?:rev|prog-if) [^)]*\))*)$"
)
_ADDRESS = re.compile(r"^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] ")
_LINK = re.compile(r"^\s+Lnk(?P<which>Cap|Sta):.*Speed (?P<speed>\d+(?:\.\d+)?)GT/s[^,]*, Width x(?P<width>\d+)")


def parse(text: str) -> PciBus:
    """Every function listed. ``dead`` where all of configuration space reads ones (``rev ff``, header type 7f).

    Raises ParseError where a line has no class and device numbers (``-nn`` was not given) or nothing is listed.
    """
    devices: list[PciDevice] = []
    for number, line in enumerate(lines(text), start=1):
        match = _FUNCTION.match(line.rstrip())
        if match:
            address = pci_address(match["address"])
            assert address is not None
            devices.append(
                PciDevice(
                    address=address,
                    class_id=match["class"],
                    vendor_id=match["vendor"],
                    device_id=match["device"],
                    name=match["name"],
                    dead="(rev ff)" in match["rest"],
                )
            )
        elif _ADDRESS.match(line):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} has no class and device numbers; run lspci -nn")
        elif line[:1].isspace() and line.strip() and devices:
            devices[-1] = _detail(devices[-1], line)
        elif line.strip() and not devices and "lspci" not in line:
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not a PCI function")
    if not devices:
        raise ParseError(TOOL, 0, "no PCI function is listed")
    twice = sorted(address for address, times in Counter(one.address for one in devices).items() if times > 1)
    if twice:
        raise ParseError(TOOL, 0, f"listed twice: {', '.join(twice)}")
    return PciBus(tuple(devices))


def _detail(device: PciDevice, line: str) -> PciDevice:
    if "Unknown header type 7f" in line:
        return replace(device, dead=True)
    match = _LINK.match(line)
    if match is None:
        return device
    speed, width = float(match["speed"]), int(match["width"])
    if match["which"] == "Cap":
        return replace(device, link_speed_max_gts=speed, link_width_max=width)
    return replace(device, link_speed_gts=speed, link_width=width)
