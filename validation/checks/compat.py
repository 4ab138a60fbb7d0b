"""Do driver, CUDA toolkit and GPU fit together? The rules are rows of ``profiles/software-matrix.csv``."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import profiles
from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.software import default_toolkit
from validation.checks.wording import at_least, is_version, listed
from validation.facts.gpu import GpuInventory
from validation.facts.host import CudaToolkits
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict


@dataclass(frozen=True)
class Rule:
    """One row: versions of ``kind`` that ``subject`` runs with. An empty bound is none known."""

    kind: str
    subject: str
    version_min: str
    version_max: str
    source: str


@functools.cache
def rules(kind: str) -> tuple[Rule, ...]:
    """The rows of one kind: cuda-family, cuda-toolkit, driver-architecture, cuda-architecture, ofi-nccl-nccl, ..."""
    path = Path(profiles.__file__).parent / "software-matrix.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Rule(**{name: row[name] for name in Rule.__annotations__}) for row in csv.DictReader(file)]
    return tuple(row for row in rows if row.kind == kind)


def _of(kind: str, subject: str) -> Rule | None:
    return next((rule for rule in rules(kind) if rule.subject == subject), None)


class CudaDriver(Check):
    """The driver can run the CUDA toolkit that a program gets."""

    id = "software.cuda_driver"
    title = "Driver runs the CUDA toolkit"
    why = "Below the floor of its CUDA family no program starts; below the toolkit's own driver features are missing."
    source = "NVIDIA CUDA compatibility guide; CUDA toolkit release notes table 3 (profiles/software-matrix.csv)"
    remedy = "Install a newer driver, an older toolkit, or the cuda-compat package of the toolkit."
    fault_class = FaultClass.SOFTWARE
    requires = (CudaToolkits, GpuInventory)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        version = facts.need(GpuInventory).driver_version
        if CudaToolkits not in facts and expected.software.cuda is None:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "no CUDA toolkit is pinned, and none was found")
            return
        versions = facts.need(CudaToolkits).versions
        place = default_toolkit(versions)
        if isinstance(version, Missing):
            yield self.missing("host", "driver version", version)
        elif not place:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "no CUDA toolkit is the default")
        elif not is_version(version) or not is_version(versions[place]):
            yield self.finding(Verdict.UNKNOWN, "host", f"driver {version!r}, CUDA {versions[place]!r}: not comparable")
        else:
            yield self._judged(version, versions[place], pinned=expected.software.cuda is not None)

    def _judged(self, driver: str, cuda: str, *, pinned: bool) -> Finding:
        major, minor = [*cuda.split("."), "0"][:2]
        family, toolkit = _of("cuda-family", major), _of("cuda-toolkit", f"{major}.{minor}")
        if family is None:
            return self.finding(Verdict.WARN, "host", f"CUDA {cuda} is not in the table", measured=cuda)
        if not at_least(driver, family.version_min):
            # A toolkit nobody asked for may lie there unused, or run by its forward compatibility package.
            return self.finding(
                Verdict.FAIL if pinned else Verdict.WARN,
                "host",
                f"driver {driver} cannot run CUDA {cuda}",
                measured=driver,
                expected=f"{family.version_min} or newer",
                source=family.source,
            )
        if toolkit is not None and not at_least(driver, toolkit.version_min):
            return self.finding(
                Verdict.WARN,
                "host",
                f"driver {driver} is older than CUDA {cuda} came with: minor-version compatibility only",
                measured=driver,
                expected=f"{toolkit.version_min} or newer",
                source=toolkit.source,
            )
        return self.finding(Verdict.PASS, "host", f"driver {driver} runs CUDA {cuda}", measured=driver)


class GpuSupport(Check):
    """Driver and CUDA toolkit still support, or already support, the GPU's architecture."""

    id = "software.gpu_support"
    title = "GPU is supported"
    why = "Drivers after R580 do not see a V100; CUDA before 12.8 compiles nothing for Blackwell."
    source = "NVIDIA CUDA toolkit, driver and architecture matrix (profiles/software-matrix.csv)"
    remedy = "Install a driver branch and a toolkit that name this architecture."
    fault_class = FaultClass.SOFTWARE
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        inventory = facts.need(GpuInventory)
        architectures = {gpu.architecture for gpu in inventory.gpus}
        unknown = [value for value in architectures if isinstance(value, Missing)]
        names = sorted(value.split()[0] for value in architectures if not isinstance(value, Missing))
        if unknown or not names:
            why = str(unknown[0]) if unknown else "no GPU answered"
            yield self.finding(Verdict.UNKNOWN, "host", f"architecture of the GPUs: {why}")
            return
        cuda = self._cuda(facts)
        # A toolkit that nobody asked for harms nobody: programs mostly bring their own.
        verdict = Verdict.FAIL if expected.software.cuda else Verdict.WARN
        found = [self.finding(Verdict.FAIL, "host", text) for text in _driver_trouble(names, inventory)]
        found += [self.finding(verdict, "host", text) for text in _cuda_trouble(names, cuda)]
        yield from found
        if not found:
            driver = f"driver {inventory.driver_version}" + (f" and CUDA {cuda}" if cuda else "")
            yield self.finding(Verdict.PASS, "host", f"{listed(names)} is supported by {driver}")

    def _cuda(self, facts: Facts) -> str:
        """The default toolkit's version; empty where there is none, which cuda.toolkit judges."""
        versions = facts.need(CudaToolkits).versions if CudaToolkits in facts else {}
        place = default_toolkit(versions)
        return versions[place] if place and is_version(versions[place]) else ""


def _driver_trouble(names: Iterable[str], inventory: GpuInventory) -> Iterable[str]:
    version = inventory.driver_version
    if isinstance(version, Missing) or not is_version(version):
        return  # driver.version speaks of it
    for name in names:
        rule = _of("driver-architecture", name)
        if rule and rule.version_max and int(version.split(".")[0]) > int(rule.version_max):
            yield f"driver {version} does not support {name}; the last branch is R{rule.version_max}"


def _cuda_trouble(names: Iterable[str], cuda: str) -> Iterable[str]:
    for name in names if cuda else ():
        rule = _of("cuda-architecture", name)
        if rule and rule.version_min and not at_least(cuda, rule.version_min):
            yield f"CUDA {cuda} does not know {name}; the first is {rule.version_min}"
        if rule and rule.version_max and int(cuda.split(".")[0]) > int(rule.version_max.split(".")[0]):
            yield f"CUDA {cuda} no longer supports {name}; the last is {rule.version_max}"
