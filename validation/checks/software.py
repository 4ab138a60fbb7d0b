"""Is the installed software the one that was asked for, and does it fit together?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import listed, profile_of, same_version
from validation.facts.host import CudaToolkits, DriverModule
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_DEFAULTS = ("nvcc", "/usr/local/cuda")  # what a program gets that asks for no version


class CudaToolkit(Check):
    """The CUDA toolkit that a program gets by default is the pinned one."""

    id = "cuda.toolkit"
    title = "CUDA toolkit"
    why = "nvidia-smi prints the newest CUDA the driver can run, not the toolkit that is installed."
    source = "the stack's pin; nvcc --version and version.json, also where nvcc is not on PATH"
    remedy = "Install the pinned CUDA toolkit, or point /usr/local/cuda to it."
    fault_class = FaultClass.SOFTWARE
    requires = (CudaToolkits,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        pin = expected.software.cuda
        if pin is None:
            yield self._unpinned(facts)
            return
        versions = facts.need(CudaToolkits).versions
        places = [place for place, version in versions.items() if same_version(version, pin)]
        default = default_toolkit(versions)
        measured = versions[default] if default else "no default toolkit"
        source = f"software profile {expected.software.name}"
        say = partial(self.finding, measured=measured, expected=pin, source=source)
        if default in places:
            yield say(Verdict.PASS, "host", f"CUDA {versions[default]} ({default})")
        elif places:
            message = f"CUDA {pin} is installed at {listed(places)}, but a program gets {measured}"
            yield say(Verdict.WARN, "host", message)
        else:
            found = listed(f"{version} ({place})" for place, version in versions.items()) or "none"
            yield say(Verdict.FAIL, "host", f"CUDA {pin} is not installed; found: {found}")

    def _unpinned(self, facts: Facts) -> Finding:
        if CudaToolkits not in facts or not (versions := facts.need(CudaToolkits).versions):
            return self.finding(Verdict.NOT_APPLICABLE, "host", "no CUDA toolkit is pinned, and none was found")
        found = listed(f"{version} ({place})" for place, version in versions.items())
        return self.finding(Verdict.PASS, "host", f"CUDA {found}; no version is pinned")


def default_toolkit(versions: Mapping[str, str]) -> str:
    """Where the toolkit lies that a program gets: nvcc on PATH, /usr/local/cuda, else the only one there is."""
    for place in _DEFAULTS:
        if place in versions:
            return place
    return next(iter(versions)) if len(versions) == 1 else ""


class KernelModule(Check):
    """The loaded kernel module is of a flavour that the board can run, and of the pinned one."""

    id = "driver.kernel_module"
    title = "Open or proprietary kernel module"
    why = "Blackwell runs only with the open module, Volta only with the proprietary one."
    source = "NVIDIA driver installation guide 610, kernel modules"
    remedy = "Install the driver with the other kernel module."
    fault_class = FaultClass.SOFTWARE
    requires = (DriverModule,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        module = facts.need(DriverModule)
        flavour = "open" if module.open else "proprietary"
        allowed = profile_of(expected).needs.kernel_modules
        pin = expected.software.kernel_module
        if flavour not in allowed.value:
            yield self.finding(
                Verdict.FAIL,
                "host",
                f"the {flavour} kernel module is loaded; this board cannot run it",
                measured=flavour,
                expected=" or ".join(allowed.value),
                source=expected.source_of(allowed.source),
            )
        elif pin and pin != flavour:
            yield self.finding(
                Verdict.FAIL,
                "host",
                f"the {flavour} kernel module is loaded, the {pin} one is pinned",
                measured=flavour,
                expected=pin,
                source=f"software profile {expected.software.name}",
            )
        else:
            yield self.finding(Verdict.PASS, "host", f"the {flavour} kernel module is loaded", measured=flavour)
