"""RDMA ports and the network interfaces on them: ``rdma link`` (text and ``-j``) and ``ibdev2netdev``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from profiles.errors import ParseError
from validation.facts.host import RdmaDevice, RdmaDevices
from validation.facts.missing import ABSENT, Missing
from validation.facts.rdma import LOAD, known_state, port_name
from validation.facts.text import clean, lines, prompt

TOOL = "rdma link"
MAP_TOOL = "ibdev2netdev"
# iproute2 before 5.0 prints "1/1: mlx5_0/1: state ...", later ones "link mlx5_0/1 state ...".
_LINK = re.compile(r"^(?:\d+(?:/\d+)?: )?(?:link )?(?P<name>[^/\s:]+)/(?P<port>\d+):? (?P<rest>(?:.* )?state \S+.*)$")
_FAILED = re.compile(r"Failed to open NETLINK_RDMA socket")
_DEVICES = re.compile(r'^\d+: \S+ node_type |"node_type"', re.M)
# "mlx5_0 port 1 ==> ib0 (Up)"; with -v the PCI address before and the port's own state after the number.
_MAP = re.compile(
    r"^(?:\S+:\S+\.\d )?(?P<name>[^\s(]+) (?:.* )?port (?P<port>\d+) (?:\((?P<state>\w+) *\) )?"
    r"==> (?P<netdev>\S+) \((?P<up>Up|Down)\)\s*$"
)


def parse(text: str) -> RdmaDevices:
    """``rdma link [-d]`` or ``rdma -j link``: every port with its state. No port at all is a fact of the JSON only."""
    if _FAILED.search(text):
        raise ParseError(TOOL, 0, "the kernel has no RDMA: nothing was looked at", LOAD)
    if _DEVICES.search(text) and "physical_state" not in text:
        raise ParseError(TOOL, 0, "devices without the state of a port", "Use rdma link instead of rdma dev.")
    content = clean(text)
    ports = _from_json(content) if content.lstrip().startswith("[") else _from_text(content)
    return RdmaDevices(tuple(ports))


def _from_json(text: str) -> list[RdmaDevice]:
    try:
        data = json.loads(text)
        return [_port(entry["ifname"], entry["port"], entry) for entry in data]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParseError(TOOL, 0, f"not a whole list of ports with ifname, port and state ({error!r})") from error


def _from_text(text: str) -> list[RdmaDevice]:
    ports = []
    for number, line in enumerate(lines(text), start=1):
        match = _LINK.match(line.strip())
        if match:
            words = match["rest"].split()
            if len(words) % 2:
                raise ParseError(TOOL, number, f"{words[-1][:40]!r} without its value; the text is cut short")
            ports.append(_port(match["name"], int(match["port"]), dict(zip(words[::2], words[1::2], strict=False))))
        elif line.strip() and prompt(line) is None and not (ports and line[0].isspace()):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not a link")
    if not ports:
        raise ParseError(TOOL, 0, "no link, and no word that there is none")
    return ports


def _port(name: str, port: int, values: Mapping[str, object]) -> RdmaDevice:
    def said(key: str) -> str | Missing:
        found = values.get(key)
        return found if isinstance(found, str) else ABSENT

    state, physical = said("state"), said("physical_state")
    if isinstance(state, Missing) or isinstance(physical, Missing):
        raise ParseError(TOOL, 0, f"{port_name(name, port)}: no state or no physical state; the text is cut short")
    if not known_state(state):
        raise ParseError(TOOL, 0, f"{port_name(name, port)}: {state[:40]!r} is no state of a port")
    return RdmaDevice(port_name(name, port), state=state, physical=physical, netdev=said("netdev"))


def parse_map(text: str) -> RdmaDevices:
    """``ibdev2netdev [-v]``: each port's interface and whether it is up. Only ``-v`` tells the port's own state."""
    ports = []
    for number, line in enumerate(lines(text), start=1):
        match = _MAP.match(line.strip())
        if match:
            name = port_name(match["name"], int(match["port"]))
            state = match["state"] or ABSENT
            if isinstance(state, str) and not known_state(state):
                raise ParseError(MAP_TOOL, number, f"{name}: {state[:40]!r} is no state of a port")
            ports.append(RdmaDevice(name, state=state, netdev=match["netdev"], netdev_up=match["up"] == "Up"))
        elif line.strip() and prompt(line) is None:
            raise ParseError(MAP_TOOL, number, f"{line.strip()[:80]!r} is not a port and its interface")
    if not ports:
        raise ParseError(MAP_TOOL, 0, "no port")
    return RdmaDevices(tuple(ports))
