"""``nvidia-ctk cdi list``: the GPUs that containers can be given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "nvidia-ctk cdi list"
_FOUND = re.compile(r"Found (\d+) CDI devices?\b")
_DEVICE = re.compile(r"^(nvidia\.com/gpu=(\S+))\s*$")


@dataclass(frozen=True)
class ContainerGpus:
    """Device names as CDI has them. ``indices``: the GPUs among them, apart from UUIDs, slices and "all"."""

    devices: tuple[str, ...]

    @property
    def indices(self) -> tuple[int, ...]:
        names = (name.partition("=")[2] for name in self.devices)
        return tuple(sorted(int(name) for name in names if name.isdigit()))


def parse(text: str) -> ContainerGpus:
    """Raises ParseError where another number of devices is listed than the tool says it found."""
    announced, devices = None, []
    for line in lines(text):
        found, device = _FOUND.search(line), _DEVICE.match(line.strip())
        if found:
            announced = int(found[1])
        elif device:
            devices.append(device[1])
    if announced is None:
        raise ParseError(TOOL, 0, "no line 'Found N CDI devices'")
    if announced != len(devices):
        raise ParseError(TOOL, 0, f"{announced} CDI devices found, {len(devices)} listed: the text is cut short")
    return ContainerGpus(tuple(devices))
