"""``lspci`` in its forms for people: the functions on the PCI bus, their links and ACS, and the ones that are dead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from profiles.errors import ParseError
from validation.facts.host import Acs, PciBus, PciDevice
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.text import lines, pci_address

TOOL = "lspci"
_NUMBERED = "lspci -nn"
# With -PP the bridges above stand before the address.
_ADDRESS = re.compile(
    r"^\s*(?:(?:[0-9a-f]{2,8}:)?[0-9a-f:]*[0-9a-f]{2}\.[0-7]/)*"
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: (?P<rest>\S.*))?$"
)
_TAIL = r"(?P<tail>(?: \((?:rev|prog-if) .*\))?)$"
_BOTH = re.compile(
    r"^(?P<kind>.+?) \[(?P<class>[0-9a-f]{4})\]: (?P<name>.*?) ?\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]"
    + _TAIL
)
_NUMBERS = re.compile(r"^(?:Class )?(?P<class>[0-9a-f]{4}): (?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})" + _TAIL)
_NAMES = re.compile(r"^(?P<kind>[^:\"\[]+?)(?: \[(?P<class>[0-9a-f]{4})\])?: (?P<name>\S.*?)" + _TAIL)
_UNKNOWN_DEVICE = re.compile(r"\bDevice (?P<device>[0-9a-f]{4})(?: \[.*)?$")
# Classes and vendors by the name that the PCI ID database gives them, as far as a check asks for one.
_CLASSES = {
    "vga compatible controller": "0300",
    "3d controller": "0302",
    "display controller": "0380",
    "ethernet controller": "0200",
    "infiniband controller": "0207",
    "network controller": "0280",
    "pci bridge": "0604",
    "bridge": "0680",
    "audio device": "0403",
}
_GPU_OR_SWITCH = re.compile(r"^(?:VGA|3D|Display|Bridge:|Bridge \[0680\]|(?:Class )?03\d\d: )|NVIDIA|\b10de:")
_VENDORS = (
    ("nvidia ", "10de"),
    ("mellanox ", "15b3"),
    ("amazon.com", "1d0f"),
    ("red hat", "1af4"),
    ("vmware", "15ad"),
    ("microsoft ", "1414"),
)
_LINK = re.compile(
    r"^\s*Lnk(?P<which>Cap|Sta):.*?Speed (?:unknown|(?P<speed>\d{1,4}(?:\.\d+)?)GT/s)[^,]*, Width x(?P<width>\d{1,3})\b"
)
_BUS = re.compile(r"^\s*Bus: primary=\w+, secondary=(?P<first>[0-9a-f]{2}), subordinate=(?P<last>[0-9a-f]{2})\b")
_EXPRESS = re.compile(r"^\s*Capabilities: \[\w+\] Express (?:\(v\d\) )?(?P<port>[A-Z][\w/ -]*?)(?: \(Slot[+-]\))?,")
_ACS = re.compile(r"^\s*ACSCtl:\s*(?P<flags>(?:[A-Z]\w+[+-] ?)+)")
_ACS_CUT = re.compile(r"^\s*ACSCtl:(?!.*\bReqRedir[+-].*\bCmpltRedir[+-])")
_OPEN = re.compile(r"\((?:rev|prog-if)\b[^)]*$")
_DRIVER = re.compile(r"^\s*Kernel driver in use: (?P<driver>\S+)")
_DENIED = re.compile(r"^\s*Capabilities: <access denied>")
_TREE = re.compile(r"^[-+ \t|\\]*\[[0-9a-f]{4,8}:[0-9a-f]{2}\]|^[ |]+[+\\]-[0-9a-f]{2}\.[0-7]", re.MULTILINE)
_RECORD = re.compile(r"^[ \t]*(?:Slot|Device):\t[0-9a-f:]+\.[0-7]$", re.MULTILINE)
_QUOTED = re.compile(r'^[ \t]*[0-9a-f:]+\.[0-7] "[^"]*" "', re.MULTILINE)
_PATH = re.compile(r"^[ \t]*(?:[0-9a-f:]+\.[0-7]/)+[0-9a-f]{2}\.[0-7] ", re.MULTILINE)
# The end of a function's line whose beginning is gone.
_BEHEADED = re.compile(r"^(?!\s*(?:Subsystem|DeviceName)\b).*(?:\[[0-9a-f]{4}:[0-9a-f]{4}\]|\(rev [0-9a-f]{2}\))\s*$")


@dataclass(frozen=True)
class AcsLines:
    """The ACS controls of ``lspci -vvv | grep ACSCtl``, which does not tell whose they are."""

    controls: tuple[Acs, ...]


def parse(text: str) -> PciBus:
    """Every function listed, with class and device numbers: what the gate reads of ``lspci -Dnn``.

    Raises ParseError as :func:`parse_any`, where a function has no numbers, and where an unindented line is none.
    """
    return _bus(text, strict=True)


def parse_any(text: str) -> PciBus | AcsLines:
    """Every function listed, whether with numbers (``-nn``, ``-n``) or by name only, and what ``-v`` and ``-k`` add.

    ``dead`` where all of configuration space reads ones (``rev ff``, header type 7f). Raises ParseError where the form
    is one for programs or a tree, a line has lost its address or its end, one is listed twice, or none is listed.
    """
    _check_form(text)
    controls = tuple(_acs(match["flags"]) for line in _whole_lines(text) if (match := _ACS.match(line)))
    if controls and not any(_ADDRESS.match(line.rstrip()) for line in lines(text)):
        return AcsLines(controls)
    return _bus(text, strict=False)


def _whole_lines(text: str) -> list[str]:
    """The lines. Raises ParseError where the flags of one are cut short."""
    found = lines(text)
    for number, line in enumerate(found, start=1):
        if _ACS_CUT.match(line):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is cut short")
    return found


def _bus(text: str, *, strict: bool) -> PciBus:
    devices: list[PciDevice] = []
    found = _whole_lines(text)
    for number, line in enumerate(found, start=1):
        match = _ADDRESS.match(line.rstrip())
        if match:
            devices.append(_function(match["address"], match["rest"] or "", number, last=number == len(found)))
        elif line[:1].strip() and "lspci" not in line and (strict or _BEHEADED.match(line)):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is no PCI function")
        elif devices:
            devices[-1] = _detail(devices[-1], line, number)
        elif _ACS.match(line) or _LINK.match(line):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r}: whose that is was left out; give lspci -nnvvv")
        if match and strict and not _numbered(devices[-1]):
            raise ParseError(_NUMBERED, number, f"{line.strip()[:80]!r} has no class and device numbers")
    if not devices:
        raise ParseError(TOOL, 0, "no PCI function is listed")
    twice = sorted(address for address, times in Counter(one.address for one in devices).items() if times > 1)
    if twice:
        raise ParseError(TOOL, 0, f"listed twice: {', '.join(twice)}")
    return PciBus(tuple(devices))


def _numbered(device: PciDevice) -> bool:
    return all(isinstance(number, str) for number in (device.class_id, device.vendor_id, device.device_id))


def is_it(text: str) -> bool:
    """Whether a text is lspci's, in whichever form: functions, their links or ACS alone, a tree, records."""
    for line in text.split("\n"):
        match = _ADDRESS.match(line.rstrip())
        if _LINK.match(line) or _ACS.match(line) or (match and match["rest"] and _fields(match["rest"])):
            return True
    return _form(text) is not None


def _form(text: str) -> str | None:
    """The option that made the text one for programs, or a tree; None for the forms that are read."""
    forms = {"-t": _TREE, "-vmm": _RECORD, "-mm": _QUOTED, "-P": _PATH}
    return next((option for option, pattern in forms.items() if pattern.search(text)), None)


def _check_form(text: str) -> None:
    form = _form("\n".join(lines(text)))
    if form:
        raise ParseError(TOOL, 0, f"lspci {form} is not read here; give lspci -nn, or as root lspci -nnvvv")


def _fields(rest: str) -> re.Match[str] | None:
    """What stands after the address, by the first form that fits."""
    return next((match for form in (_BOTH, _NUMBERS, _NAMES) if (match := form.match(rest))), None)


def _function(address: str, rest: str, number: int, *, last: bool) -> PciDevice:
    """``last``: nothing follows the line, not even its end, so it may have been cut before it says (rev ff)."""
    match = _fields(rest)
    full = pci_address(address)
    if _OPEN.search(rest) or (last and match and not match["tail"] and _GPU_OR_SWITCH.search(rest)):
        raise ParseError(TOOL, number, f"{f'{address} {rest}'[:80].strip()!r} is cut short; give the whole line")
    if match is None or full is None:
        raise ParseError(TOOL, number, f"{f'{address} {rest}'[:80].strip()!r} does not say what it is; give lspci -nn")
    found = match.groupdict()
    name = found.get("name") or ""
    unnamed = _UNKNOWN_DEVICE.search(name)
    return PciDevice(
        address=full,
        class_id=found["class"] or _CLASSES.get(found["kind"].lower(), ABSENT),
        vendor_id=found.get("vendor") or _vendor(name),
        device_id=found.get("device") or (unnamed["device"] if unnamed else ABSENT),
        name=name,
        dead="(rev ff)" in found["tail"],
    )


def _vendor(name: str) -> str | Missing:
    return next((number for begins, number in _VENDORS if name.lower().startswith(begins)), ABSENT)


def _detail(device: PciDevice, line: str, number: int) -> PciDevice:
    """The function with what one line below it says; a line that is not known here says nothing."""
    if "Unknown header type 7f" in line:
        return replace(device, dead=True)
    if _DENIED.match(line):
        denied = Missing(Reason.COULD_NOT_LOOK, "access denied: lspci was not run as root")
        return replace(device, link_width=denied, link_width_max=denied, acs=denied)
    for pattern, told in _DETAILS:
        match = pattern.match(line)
        if match and pattern is _ACS and isinstance(device.acs, Acs):
            raise ParseError(TOOL, number, f"{line.strip()[:80]!r}: a second one of {device.address}, whose?")
        if match:
            return told(device, match)
    return device


def _linked(device: PciDevice, match: re.Match[str]) -> PciDevice:
    """The link; a function on an emulated bus has one of no lanes and unknown speed."""
    speed = float(match["speed"]) if match["speed"] else Missing(Reason.COULD_NOT_LOOK, "unknown")
    width = int(match["width"]) or Missing(Reason.NOT_APPLICABLE, "x0")
    if match["which"] == "Cap":
        return replace(device, link_speed_max_gts=speed, link_width_max=width)
    return replace(device, link_speed_gts=speed, link_width=width)


def _acs(flags: str) -> Acs:
    return Acs(frozenset(flag[:-1] for flag in flags.split() if flag.endswith("+")))


_DETAILS: tuple[tuple[re.Pattern[str], Callable[[PciDevice, re.Match[str]], PciDevice]], ...] = (
    (_LINK, _linked),
    (_BUS, lambda device, match: replace(device, buses=(int(match["first"], 16), int(match["last"], 16)))),
    (_EXPRESS, lambda device, match: replace(device, port=match["port"])),
    (_ACS, lambda device, match: replace(device, acs=_acs(match["flags"]))),
    (_DRIVER, lambda device, match: replace(device, driver=match["driver"])),
)
