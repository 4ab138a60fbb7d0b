"""Loaded kernel modules: /proc/driver/nvidia/version, and the EFA module's /sys/module entry."""

from __future__ import annotations

import re

from profiles.errors import ParseError
from validation.facts.host import DriverModule, EfaModule
from validation.facts.missing import ABSENT
from validation.facts.text import lines

TOOL = "/proc/driver/nvidia/version"
EFA_TOOL = "/sys/module/efa"
_NVRM = re.compile(
    r"^NVRM version:\s+NVIDIA UNIX\s+(?P<open>Open )?(?:\S+ )?Kernel Module(?: for \S+)?\s+"
    r"(?P<version>\d+\.\d+(?:\.\d+)?)\b"
)


def parse(text: str) -> DriverModule:
    """Version and flavour. "Open Kernel Module" is the open one; the proprietary one names the machine instead."""
    for line in lines(text):
        match = _NVRM.match(line.strip())
        if match:
            return DriverModule(version=match["version"], open=match["open"] is not None)
    raise ParseError(TOOL, 1, "no line 'NVRM version: NVIDIA UNIX ... Kernel Module ... VERSION'")


def parse_efa(text: str) -> EfaModule:
    """``/sys/module/efa:present`` and ``/sys/module/efa/version:X``, as the probe writes them."""
    version = re.search(r"^/sys/module/efa/version:(\S+)\s*$", text, re.M)
    if not re.search(r"^/sys/module/efa:present\s*$", text, re.M):
        raise ParseError(EFA_TOOL, 0, "no line '/sys/module/efa:present'")
    return EfaModule(loaded=True, version=version[1] if version else ABSENT)
