"""Is the software around the driver in the versions that the stack pins? What is not pinned is told, not judged."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from functools import partial

from profiles.models import Expectation, SoftwareProfile
from validation.checks.base import Check
from validation.checks.wording import listed, same_version
from validation.facts.components import Components
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict


class PinnedCheck(Check):
    """What the checks of one pinned version share. ``what`` is its name in a sentence."""

    what: str
    fault_class = FaultClass.SOFTWARE
    requires = (Components,)
    needs_profile = False

    @abc.abstractmethod
    def pin(self, software: SoftwareProfile) -> str | None:
        """The pinned version or branch."""

    @abc.abstractmethod
    def found(self, components: Components) -> str | tuple[str, ...] | Missing:
        """What is installed; several versions may be, side by side."""

    def not_applicable(self, expected: Expectation) -> str:  # noqa: ARG002 - overridden where it depends on it
        """Why this host needs no such thing; empty where it does if it is pinned."""
        return ""

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        reason, pin = self.not_applicable(expected), self.pin(expected.software)
        if reason:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", reason)
        elif pin is None:
            there = self.found(facts.need(Components)) if Components in facts else None
            shown = "" if there is None or isinstance(there, Missing) else f" ({_text(there)} is installed)"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", f"no version of {self.what} is pinned{shown}")
        else:
            yield self._judged(self.found(facts.need(Components)), pin, expected)

    def _judged(self, found: str | tuple[str, ...] | Missing, pin: str, expected: Expectation) -> Finding:
        source = f"software profile {expected.software.name}"
        if isinstance(found, Missing):
            if found.reason is Reason.ABSENT:
                message = f"{self.what} {pin} is pinned, and none is installed"
                return self.finding(Verdict.FAIL, "host", message, measured="none", expected=pin, source=source)
            return self.missing("host", f"version of {self.what}", found, expected=pin)
        versions = (found,) if isinstance(found, str) else found
        good = [version for version in versions if same_version(version, pin)]
        say = partial(self.finding, measured=_text(found), expected=pin, source=source)
        if len(good) == len(versions):
            return say(Verdict.PASS, "host", f"{self.what} {_text(found)}, as pinned")
        if good:
            message = f"{self.what} {pin} is installed beside others ({_text(found)}): a program may get any of them"
            return say(Verdict.WARN, "host", message)
        return say(Verdict.FAIL, "host", f"{self.what} {_text(found)} is installed, {pin} is pinned")


class EfaPinnedCheck(PinnedCheck):
    """What only a host with EFA needs."""

    def not_applicable(self, expected: Expectation) -> str:
        return "" if expected.efa_count else "the stack asked for no EFA"


class EfaInstaller(EfaPinnedCheck):
    """The EFA software comes from the pinned installer."""

    id = "efa.installer"
    title = "EFA installer"
    what = "the EFA installer"
    why = "The installer brings driver, libfabric and NCCL plug-in that were tested together; mixed nodes hang in NCCL."
    source = "the software profile's pin; /opt/amazon/efa_installed_packages"
    remedy = "Run the pinned aws-efa-installer in the image, or change the pin."

    def pin(self, software: SoftwareProfile) -> str | None:
        return software.efa_installer

    def found(self, components: Components) -> str | Missing:
        return components.efa_installer


class OfiNccl(EfaPinnedCheck):
    """NCCL's plug-in for EFA is the pinned one."""

    id = "efa.nccl_plugin"
    title = "aws-ofi-nccl"
    what = "aws-ofi-nccl"
    why = "Without the plug-in NCCL falls back to TCP; another version has other limits and other bugs."
    source = "the software profile's pin; the version inside libnccl-net.so"
    remedy = "Install the EFA installer that carries the pinned plug-in, or change the pin."

    def pin(self, software: SoftwareProfile) -> str | None:
        return software.aws_ofi_nccl

    def found(self, components: Components) -> str | Missing:
        return components.aws_ofi_nccl


class Nccl(PinnedCheck):
    """NCCL is the pinned one."""

    id = "software.nccl"
    title = "NCCL's version"
    what = "NCCL"
    why = "Hosts with different NCCL versions do not find each other, or choose different algorithms and hang."
    source = "the software profile's pin; the names of the libraries libnccl.so.X.Y.Z"
    remedy = "Install the pinned libnccl2, and remove other copies, or change the pin."

    def pin(self, software: SoftwareProfile) -> str | None:
        return software.nccl

    def found(self, components: Components) -> tuple[str, ...] | Missing:
        return components.nccl


class Dcgm(PinnedCheck):
    """DCGM is the pinned one."""

    id = "software.dcgm"
    title = "DCGM's version"
    what = "DCGM"
    why = "Its diagnostic's tables of boards and limits differ by version, and so do its verdicts."
    source = "the software profile's pin; dcgmi --version"
    remedy = "Install the pinned datacenter-gpu-manager, or change the pin."

    def pin(self, software: SoftwareProfile) -> str | None:
        return software.dcgm

    def found(self, components: Components) -> str | Missing:
        return components.dcgm


class ContainerToolkit(PinnedCheck):
    """The NVIDIA Container Toolkit is the pinned one."""

    id = "software.container_toolkit"
    title = "NVIDIA Container Toolkit"
    what = "the container toolkit"
    why = "Without it no container sees a GPU; old versions let a container out of its walls."
    source = "the software profile's pin; nvidia-ctk --version"
    remedy = "Install the pinned nvidia-container-toolkit, or change the pin."

    def pin(self, software: SoftwareProfile) -> str | None:
        return software.container_toolkit

    def found(self, components: Components) -> str | Missing:
        return components.container_toolkit


def _text(found: str | tuple[str, ...]) -> str:
    return found if isinstance(found, str) else listed(found)
