"""Installed CUDA toolkits: ``nvcc --version`` and ``/usr/local/cuda*/version.json``. Not what nvidia-smi calls CUDA."""

from __future__ import annotations

import json
import re

from profiles.errors import ParseError
from validation.facts.host import CudaToolkits
from validation.facts.text import clean

TOOL = "nvcc --version"
FILES_TOOL = "CUDA version files"
_RELEASE = re.compile(r"^Cuda compilation tools, release (\d+\.\d+), V(\d+(?:\.\d+)+)\s*$", re.M)
_FILE = re.compile(r"^(?P<folder>\S*/cuda[^/\s]*)/version\.(?P<kind>json|txt):\s*", re.M)
_NO_COMPILER = re.compile(r"\bnvcc: .*not found|Command 'nvcc' not found")
_TXT = re.compile(r"CUDA Version (\d+(?:\.\d+)+)")


def parse(text: str) -> CudaToolkits:
    """The compiler's own version, from its release line: the other lines hold numbers that are not it."""
    content = clean(text)
    match = _RELEASE.search(content)
    if match is None and _NO_COMPILER.search(content):
        remedy = "Look at /usr/local/cuda*/version.json, or call nvcc by its path."
        raise ParseError(TOOL, 0, "nvcc is not on this shell's PATH, which is no missing toolkit", remedy)
    if match is None:
        raise ParseError(TOOL, 0, "no line 'Cuda compilation tools, release X.Y, VX.Y.Z'")
    return CudaToolkits({"nvcc": match[2]})


def parse_files(text: str) -> CudaToolkits:
    """``path: content`` of each version file, by the toolkit's folder. No file at all is no toolkit: an empty fact.

    The content of one file alone is read too; nothing tells its folder, so it goes by the file's name.
    """
    content = clean(text)
    if content.lstrip().startswith("{"):
        return CudaToolkits({"version.json": _version("version.json", "json", content)})
    if _TXT.match(content.strip()):
        return CudaToolkits({"version.txt": _version("version.txt", "txt", content)})
    starts = list(_FILE.finditer(content))
    if content.strip() and (not starts or content[: starts[0].start()].strip()):
        raise ParseError(FILES_TOOL, 1, f"{content.strip()[:80]!r} is not 'path: content'")
    versions = {}
    for at, match in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(content)
        versions[match["folder"]] = _version(match["folder"], match["kind"], content[match.end() : end])
    return CudaToolkits(versions)


def _version(folder: str, kind: str, body: str) -> str:
    if kind == "txt":
        match = _TXT.search(body)
        if match is None:
            raise ParseError(FILES_TOOL, 0, f"{folder}: no 'CUDA Version'")
        return match[1]
    try:
        data = json.loads(body)
        version = data["cuda"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        where = folder if folder.endswith(".json") else f"{folder}/version.json"
        raise ParseError(FILES_TOOL, 0, f"{where}: no cuda version ({error!r})") from error
    return str(version)
