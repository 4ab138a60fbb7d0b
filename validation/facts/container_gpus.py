"""``nvidia-ctk cdi list`` and the CDI specification it lists: the GPUs that containers can be given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from profiles.errors import ParseError
from validation.facts.text import lines

TOOL = "nvidia-ctk cdi list"
SPECIFICATION = "CDI specification"
_FOUND = re.compile(r"Found (\d{1,9}) CDI devices?\b")
_DEVICE = re.compile(r"^(?P<vendor>[\w.-]+)/(?P<kind>[\w-]+)=(?P<name>[\w.:-]+)$")
_BROKEN = re.compile(r'level=warning msg="(?P<path>/\S+): \[?(?P<why>[^\]]*)')
# What the strategies of nvidia-ctk cdi generate call a GPU by its number: "0", and "gpu0" since 1.14.
_INDEX = re.compile(r"^(?:gpu)?(?P<index>\d{1,9})$")
_VERSION = re.compile(r"^[ \t]*NVIDIA Container Toolkit CLI version (\S+)$", re.M)
_COMMIT = re.compile(r"^[ \t]*commit: ([0-9a-f]{7,40})$", re.M)
_DRIVER = re.compile(r"/lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d+(?:\.\d+)?)\b")


@dataclass(frozen=True)
class ContainerGpus:
    """Device names as CDI has them, of every vendor. ``indices``: NVIDIA's GPUs among them by number.

    ``broken`` are files that the tool could not read, each with its reason; ``driver`` is the version whose libraries
    a specification mounts.
    """

    devices: tuple[str, ...]
    broken: tuple[str, ...] = ()
    driver: str = ""

    @property
    def indices(self) -> tuple[int, ...]:
        """Apart from UUIDs, slices, "all", and what no GPU is."""
        matches = (_DEVICE.match(name) for name in self.devices)
        found = (_INDEX.match(match["name"]) for match in matches if match and _is_gpu(match))
        return tuple(sorted(int(match["index"]) for match in found if match))

    @property
    def gpus(self) -> tuple[str, ...]:
        """Every name of a GPU of NVIDIA's, under which a container can ask for it."""
        return tuple(name for name in self.devices if (match := _DEVICE.match(name)) and _is_gpu(match))


def _is_gpu(match: re.Match[str]) -> bool:
    return match["vendor"].endswith("nvidia.com") and match["kind"] == "gpu"


@dataclass(frozen=True)
class ContainerToolkit:
    """``nvidia-ctk --version``. ``version`` is ``unknown`` for one that was built without saying it."""

    version: str
    commit: str = ""


def is_version(text: str) -> bool:
    return _VERSION.search(text) is not None


def parse_version(text: str) -> ContainerToolkit:
    """Raises ParseError where there is no version."""
    content = "\n".join(lines(text))
    version, commit = _VERSION.search(content), _COMMIT.search(content)
    if version is None:
        raise ParseError("nvidia-ctk --version", 1, "no line 'NVIDIA Container Toolkit CLI version'")
    return ContainerToolkit(version[1], commit[1] if commit else "")


def is_it(text: str) -> bool:
    """True for the tool's list, with its own words or without, and for a specification of NVIDIA's."""
    if _FOUND.search(text):
        return True
    if "cdiVersion" in text and ("nvidia.com/" in text):
        return True
    found = [line.strip() for line in lines(text) if line.strip()]
    return bool(found) and all(_DEVICE.match(line) for line in found)


def parse(text: str) -> ContainerGpus:
    """Raises ParseError where another number of devices is listed than the tool says it found, or a file is cut."""
    if "cdiVersion" in text:
        return _specification(text)
    announced, devices, broken = None, [], []
    for line in lines(text):
        found, device, error = _FOUND.search(line), _DEVICE.match(line.strip()), _BROKEN.search(line)
        if found:
            announced = int(found[1])
        elif device:
            devices.append(device[0])
        elif error:
            broken.append(f"{error['path']}: {error['why']}")
    if announced is None and not devices:
        raise ParseError(TOOL, 0, "neither a line 'Found N CDI devices' nor a device")
    if announced is not None and announced != len(devices):
        raise ParseError(TOOL, 0, f"{announced} CDI devices found, {len(devices)} listed: the text is cut short")
    return ContainerGpus(tuple(devices), tuple(broken))


def _specification(text: str) -> ContainerGpus:
    try:
        data: Any = yaml.safe_load("\n".join(lines(text)))
    except (yaml.YAMLError, RecursionError) as error:
        raise ParseError(SPECIFICATION, 0, f"not a whole document: {str(error)[:200]}") from error
    if not isinstance(data, dict) or not isinstance(data.get("devices"), list) or not isinstance(data.get("kind"), str):
        raise ParseError(SPECIFICATION, 0, "no kind and no list of devices")
    names = [one.get("name") for one in data["devices"] if isinstance(one, dict)]
    if not names or not all(isinstance(name, str) for name in names):
        raise ParseError(SPECIFICATION, 0, "a device without a name")
    if not isinstance(data.get("containerEdits"), dict):  # written last: what every device needs
        raise ParseError(SPECIFICATION, 0, "no edits that all devices share: the text is cut short")
    driver = _DRIVER.search(text)
    return ContainerGpus(tuple(f"{data['kind']}={name}" for name in names), driver=driver[1] if driver else "")
