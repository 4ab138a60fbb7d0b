"""``nvidia-smi``: the query as XML, the list, the versions, and the lines it prints when it cannot work.

The structure of the XML follows captures of drivers 570 to 595 (k8s-test-infra 3b2b865d, 2026-08-21); the template
holds every element of those that a reader may use.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jinja2

from sandbox.hosts.render.answers import Answer
from sandbox.hosts.render.csv import fields
from sandbox.hosts.render.links import nvlink_errors, nvlink_status, p2p_matrix, topology
from sandbox.hosts.state import NVML_GPU_IS_LOST, NVML_LIBRARY_MISMATCH, Gpu, Host

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
NO_DEVICES = 6
NO_MATRIX = 255
INFOROM_CORRUPTED = 14
QUERY_ENDS = "query-gpu/.broken"  # what ``--query-gpu`` prints in place of any column


@functools.cache
def _xml() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("nvidia-smi.xml.j2")


def query_xml(host: Host) -> str:
    """``nvidia-smi -q -x``."""
    branch = int(host.driver.split(".")[0])
    return _xml().render(
        host=host,
        gpus=list(enumerate(host.gpus)),
        dtd=13 if branch >= 580 else 12,
        yes=lambda value: "Yes" if value else "No",
        active=lambda gpu, bit: "Active" if gpu.throttle & bit else "Not Active",
    )


def gpu_list(host: Host) -> str:
    """``nvidia-smi -L``: the others with their instances, a complaint where the lost GPU's line would be."""
    lines = []
    for index, gpu in enumerate(host.gpus):
        lines.append(complaint(gpu, "gpu ") if gpu.lost else f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})\n")
        profile = gpu.board.mig.name if gpu.board.mig else ""
        lines += [f"  MIG {profile:<11} Device {at:2d}: (UUID: {uuid})\n" for at, uuid in enumerate(gpu.instances)]
    return "".join(lines)


def complaint(gpu: Gpu, prefix: str = "GPU") -> str:
    """What is said of a lost GPU, with the blank lines after it; the list alone writes the address apart."""
    return (
        f"Unable to determine the device handle for {prefix}{gpu.address}: GPU is lost.  "
        "Reboot the system to recover this GPU\n\n\n"
    )


def version(host: Host) -> str:
    """``nvidia-smi --version``."""
    short = ".".join(host.library.split(".")[:2])
    return (
        f"NVIDIA-SMI version  : {host.library}\nNVML version        : {short}\n"
        f"DRIVER version      : {host.driver}\nCUDA Version        : {host.cuda_driver}\n"
    )


def _broken(host: Host) -> Answer | None:
    """What every call prints where the driver cannot be asked at all."""
    if host.mismatch:
        short = ".".join(host.library.split(".")[:2])
        text = f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {short}\n"
        return Answer(text, rc=NVML_LIBRARY_MISMATCH)
    if not host.gpus:
        return Answer("No devices were found\n", rc=NO_DEVICES)
    return None


def _queried(host: Host) -> dict[str, Answer]:
    """``nvidia-smi -q -x``, with the warning below it where a board's infoROM is corrupted: the tool then ends with 14.

    Source: nvidia-smi's manual (return value 14), and the line as users report it.
    """
    warnings = "".join(
        f"WARNING: infoROM is corrupted at gpu {gpu.address.upper()}\n" for gpu in host.gpus if gpu.inforom_corrupt
    )
    return {"q-x": Answer(query_xml(host) + warnings, rc=INFOROM_CORRUPTED)} if warnings else {}


def _without_one(host: Host) -> dict[str, Answer]:
    """The answers where a GPU is lost: all but the list show no GPU. As drivers 535 and 550 (Debian) print them."""
    lost = next((gpu for gpu in host.gpus if gpu.lost), None)
    if lost is None:
        return {}
    ended = Answer(complaint(lost), rc=NVML_GPU_IS_LOST)
    return {
        **dict.fromkeys(("q-x", "nvlink-s", "nvlink-e", QUERY_ENDS), ended),
        "topo-m": Answer("Failed to run topology matrix\n\n", rc=NO_MATRIX),
        "topo-p2p-r": Answer("Failed to display p2p capability matrix for the specified p2p Index\n\n", rc=NO_MATRIX),
        "L": Answer(gpu_list(host), rc=NVML_GPU_IS_LOST),
    }


def render(host: Host) -> dict[str, Answer]:
    """Every answer of ``nvidia-smi``; where the driver is broken, each of them is its complaint."""
    calls = {
        "q-x": query_xml,
        "topo-m": topology,
        "topo-p2p-r": p2p_matrix,
        "nvlink-s": nvlink_status,
        "nvlink-e": nvlink_errors,
        "L": gpu_list,
        "version": version,
    }
    broken = _broken(host)
    if broken:
        answers = dict.fromkeys((*calls, QUERY_ENDS), broken)
    else:
        answers = {name: Answer(call(host)) for name, call in calls.items()}
        answers |= _queried(host) | _without_one(host)
    for name, (header, column) in {} if QUERY_ENDS in answers else fields(host).items():
        answers[f"query-gpu/{name}"] = Answer("".join(f"{cell}\n" for cell in column))
        answers[f"query-gpu/{name}.header"] = Answer(header + "\n")
    return {f"nvidia-smi/{name}": answer for name, answer in answers.items()}
