"""What container runtimes say about GPUs, taken alone."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import listed
from validation.facts.container_error import ContainerError
from validation.facts.docker_info import DockerInfo
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_CONFIGURE = "Install nvidia-container-toolkit, run nvidia-ctk runtime configure for the runtime, and restart it."
_GENERATE = "Run nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, after every change of the driver again."
# What each reason means, and what mends it.
_REASONS: dict[str, tuple[str, str]] = {
    "no-runtime": ("the container runtime knows nothing of NVIDIA GPUs", _CONFIGURE),
    "no-cdi": ("no CDI specification describes the GPU that was asked for", _GENERATE),
    "driver-too-old": (
        "the image needs a newer driver than the host's",
        "Install a newer driver, or run an image for an older CUDA.",
    ),
    "no-such-gpu": (
        "a GPU was asked for by a name that this host does not have",
        "Compare NVIDIA_VISIBLE_DEVICES and --gpus with nvidia-smi -L; a GPU may be gone.",
    ),
    "not-given": (
        "the container started without the driver's files",
        "Start it with --gpus all or --runtime=nvidia. " + _CONFIGURE,
    ),
    "no-socket": (
        "nvidia-persistenced, whose socket the container is given, does not run",
        "Look at systemctl status nvidia-persistenced and start it; its own failure names the driver's.",
    ),
    "library": ("NVIDIA's container library could not set the container up", "Look at nvidia-smi on the host first."),
}


class ContainerStarts(Check):
    """A container that asks for GPUs starts and gets them."""

    id = "tool.container_start"
    title = "Start of a container with GPUs"
    why = "The same command fails for a missing toolkit, a stale specification and a driver that is too old."
    source = "messages of Docker, Podman and libnvidia-container; NVIDIA container toolkit, troubleshooting"
    remedy = _CONFIGURE
    fault_class = FaultClass.SOFTWARE
    requires = (ContainerError,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        error = facts.need(ContainerError)
        meaning, remedy = _REASONS[error.kind]
        yield self.finding(Verdict.FAIL, "host", f"{meaning}: {error.text}", remedy=remedy)


class DockerKnowsGpus(Check):
    """Docker has NVIDIA's runtime, or has found GPUs by CDI."""

    id = "tool.docker"
    title = "Docker's runtimes"
    why = "Without NVIDIA's runtime and without CDI devices, no container of Docker's sees a GPU."
    source = "docker info: Runtimes, and Discovered Devices since Docker 28.2"
    remedy = _CONFIGURE
    fault_class = FaultClass.SOFTWARE
    requires = (DockerInfo,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        info = facts.need(DockerInfo)
        told = [*(name for name in info.runtimes if "nvidia" in name), *(d for d in info.devices if "nvidia.com/" in d)]
        if told:
            message = f"containers can be given GPUs: {listed(told, limit=3)}; by default they run with {info.default}"
            yield self.finding(Verdict.PASS, "host", message)
        else:
            message = (
                f"no NVIDIA runtime among {listed(info.runtimes)}, and no CDI device: Docker gives no container a GPU"
            )
            yield self.finding(Verdict.WARN, "host", message)
