"""Versions of the software around the driver: Fabric Manager, EFA stack, NCCL, DCGM, container toolkit.

Each field stands for itself: ABSENT where the thing is not installed, COULD_NOT_LOOK with the reason where it could not
be asked. What a machine needs of them, only a check can tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.missing import Missing
from validation.facts.text import lines

_NUMBERS = r"\d+(?:\.\d+)+"
_LIBRARY = re.compile(rf"/libnccl\.so\.({_NUMBERS})$")
_PLUGIN = re.compile(r"^/\S+/libnccl-net[^/]*\.so:(\d+\.\d+\.\d+)[\w.-]*$")
# Debian names a package name_version_arch, Red Hat name-version-release.arch.
_LIBFABRIC = re.compile(rf"(?:^|\s)libfabric1?-aws(?:-bin)?[_-]({_NUMBERS}(?:amzn[\d.]+)?)")


@dataclass(frozen=True)
class Components:
    """Versions as the software prints them; ``nccl`` holds every one that is installed, oldest first."""

    fabric_manager: str | Missing
    efa_installer: str | Missing
    libfabric: str | Missing
    aws_ofi_nccl: str | Missing
    nccl: tuple[str, ...] | Missing
    container_toolkit: str | Missing
    dcgm: str | Missing
    peermem: tuple[str, ...] | Missing  # kernel modules that let an InfiniBand adapter read GPU memory


def _said(tool: str, words: str) -> Callable[[str], str]:
    """A parser of ``WORDS 1.2.3``, wherever in the text it stands."""
    pattern = re.compile(rf"^\s*{words}\s*:?\s*({_NUMBERS})", re.M)

    def parse(text: str) -> str:
        match = pattern.search("\n".join(lines(text)))
        if match is None:
            raise ParseError(tool, 1, f"no line with a version: {text.strip()[:80]!r}")
        return match[1]

    return parse


fabric_manager = _said("nv-fabricmanager --version", "Fabric Manager version is")
dcgm = _said("dcgmi --version", r"dcgmi\s+version")
container_toolkit = _said("nvidia-ctk --version", "NVIDIA Container Toolkit CLI version")
efa_installer = _said("/opt/amazon/efa_installed_packages", "# EFA installer version")


def libfabric(text: str) -> str:
    """libfabric's version among the EFA installer's packages: ``2.3.1amzn1.0``."""
    match = _LIBFABRIC.search("\n".join(lines(text)))
    if match is None:
        raise ParseError("/opt/amazon/efa_installed_packages", 0, "no package libfabric-aws")
    return match[1]


def nccl(text: str) -> tuple[str, ...]:
    """The versions of the libraries by their file names; a bare ``libnccl.so.2`` is a link to one of them."""
    found = {match[1] for line in lines(text) if (match := _LIBRARY.search(line.strip()))}
    if not found:
        raise ParseError("libnccl.so", 1, f"no file name with a whole version: {text.strip()[:80]!r}")
    return tuple(sorted(found, key=lambda version: [int(part) for part in version.split(".")]))


def aws_ofi_nccl(text: str) -> str:
    """The plug-in's version; its library lies there under several names, which must agree."""
    wanted = [line.strip() for line in lines(text) if line.strip()]
    found = {match[1] if (match := _PLUGIN.match(line)) else "" for line in wanted}
    if len(found) != 1 or "" in found:
        raise ParseError("libnccl-net.so", 1, f"not one version: {', '.join(wanted)[:160]!r}")
    return found.pop()


def modules(text: str) -> tuple[str, ...]:
    """The last part of each path of ``/sys/module``."""
    found = tuple(line.strip().rsplit("/", 1)[1] for line in lines(text) if line.strip().startswith("/sys/module/"))
    if not found:
        raise ParseError("/sys/module", 1, "no path of a module")
    return found


# Field -> (evidence item, its parser).
FIELDS: Mapping[str, tuple[str, Callable[[str], str | tuple[str, ...]]]] = {
    "fabric_manager": ("fabricmanager-version", fabric_manager),
    "efa_installer": ("efa-packages", efa_installer),
    "libfabric": ("efa-packages", libfabric),
    "aws_ofi_nccl": ("nccl-plugins", aws_ofi_nccl),
    "nccl": ("nccl-libraries", nccl),
    "container_toolkit": ("nvidia-ctk", container_toolkit),
    "dcgm": ("dcgmi-version", dcgm),
    "peermem": ("peermem-modules", modules),
}
