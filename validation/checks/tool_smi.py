"""What the short outputs of nvidia-smi mean where nobody says which machine they are from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.errors import RETIRED_PAGES_MAX
from validation.checks.wording import counted, listed
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.host import P2pMatrix
from validation.facts.missing import Missing
from validation.facts.smi_list import SmiVersion
from validation.facts.smi_rows import RetiredPageList
from validation.facts.smi_table import SmiTable
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

# Boards that are soldered beside others to a baseboard with NVLink, with every link wired. V100 and the boards made for
# export are not here: how many of their links are wired differs by machine.
_FULLY_WIRED = ("A100-SXM4-40GB", "A100-SXM4-80GB", "H100 80GB HBM3", "H200", "B200")
# Boards in slots, joined by bridges that leave some of their links without a peer: 12 of 18 are up on a good H100 PCIe.
# Source: Azure/azurehpc-health-checks issue 162, 2026-06.
_BRIDGED = re.compile(r"\bPCIe\b|\bNVL$", re.IGNORECASE)
# Cells of the table whose ERR! passes by itself (azhpc-diagnostics issue 77, V100).
_PASSING = {"power", "limit"}
_HOT_C = (
    89  # the lowest slowdown that nvidia-smi -q prints of A100, H100, L40S and GB200 (captures of 2026-08; A10G: 95)
)


class NvlinkAlone(Check):
    """What NVLink states mean without knowing the machine: all up is good, all down on an SXM board is not."""

    id = "tool.nvlink"
    title = "NVLink states alone"
    why = (
        '"All links are inactive" has no line a scan for "<inactive>" would find, and the GPU passes every other test.'
    )
    source = (
        "Azure/azurehpc-health-checks test data; gpud issue 1085; NVIDIA/DCGM issue 198 (DCGM names no board); "
        "a single SXM board in a VM may have no peer"
    )
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (GpuInventory,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if expected.profile is not None:
            return  # nvlink.links_active judges it, by the machine's own number
        gpus = facts.need(GpuInventory).gpus
        several = len(gpus) > 1 or any(gpu.index > 0 for gpu in gpus)
        findings = [self._judged(gpu, several=several) for gpu in gpus]
        yield from (finding for finding in findings if finding is not None)
        if all(_all_up(gpu) for gpu in gpus):
            counts = sorted({len(gpu.nvlinks) for gpu in gpus if not isinstance(gpu.nvlinks, Missing)})
            yield self.finding(Verdict.PASS, "host", f"every link listed is active: {listed(counts)} on each GPU")

    def _judged(self, gpu: Gpu, *, several: bool) -> Finding | None:
        links = gpu.nvlinks
        if isinstance(links, Missing) or (links and all(link.active is not False for link in links)):
            return None
        wired = not isinstance(gpu.name, str) or gpu.name.removeprefix("NVIDIA ") in _FULLY_WIRED
        up = sum(link.active is True for link in links)
        down = [link.index for link in links if link.active is False]
        some = f"link {down[0]} is down" if len(down) == 1 else f"links {listed(down)} are down"
        what = some if up else "all NVLinks are down"
        if not wired:
            message = f"{some}; whether they are wired on this machine, {gpu.name} alone does not tell"
            remedy = "Judge it with --profile TYPE, or compare with the other GPUs: each should have as many."
            if not up or _BRIDGED.search(str(gpu.name)):
                return None
            return self.finding(Verdict.UNKNOWN, gpu.label, message, measured=f"{up} active NVLinks", remedy=remedy)
        if not isinstance(gpu.name, str):
            remedy = "Judge it with --profile TYPE: on a board without NVLink bridge this is no fault."
            message = f"{what}; a fault only where this board's links are wired"
            return self.finding(Verdict.WARN, gpu.label, message, measured=f"{up} active NVLinks", remedy=remedy)
        message = f"{what}; every {gpu.name} on a baseboard has all of its links wired"
        if several:
            return self.finding(Verdict.FAIL, gpu.label, message, measured=f"{up} active NVLinks")
        message = f"{message}; right only where this GPU has no peer"
        return self.finding(Verdict.WARN, gpu.label, message, measured=f"{up} active NVLinks")


def _all_up(gpu: Gpu) -> bool:
    return not isinstance(gpu.nvlinks, Missing) and bool(gpu.nvlinks) and all(k.active is True for k in gpu.nvlinks)


class PeersAlone(Check):
    """What a peer-to-peer matrix means without knowing the machine: OK for all pairs is good anywhere."""

    id = "tool.p2p"
    title = "Peer-to-peer matrix alone"
    why = "CNS is right on a board without peer access (L4), and a fault on one with NVLink: only a profile can tell."
    source = "nvidia-smi topo -p2p r of 8 H100 (OK) and 2 L4 (CNS by design)"
    remedy = "Look at ACS, IOMMU and the driver's settings."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (P2pMatrix,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if expected.profile is not None:
            return  # topology.p2p judges it
        words = Counter(facts.need(P2pMatrix).status.values())
        if words and set(words) == {"OK"}:
            message = f"all {words['OK']} pairs OK, which says nothing about their bandwidth"
            yield self.finding(Verdict.PASS, "host", message)
        if words["U"]:
            yield self.finding(Verdict.UNKNOWN, "host", f"the driver does not know of {counted(words['U'], 'pair')}")
        if words["DR"]:
            yield self.finding(Verdict.WARN, "host", f"{counted(words['DR'], 'pair')} disabled by a driver setting")


class SmiTableRead(Check):
    """No cell of the table prints an error. What the cells hold is judged by the checks of what they show."""

    id = "tool.smi_table"
    title = "Errors in nvidia-smi's table"
    why = "A GPU that needs a reset stays in the table, with ERR! for its fan or power and good values beside it."
    source = (
        "captures of drivers 325 to 610; nvidia_gpu_exporter issue 393 (ERR! for the fan: the driver asks for a "
        "reset); azhpc-diagnostics issue 77 (ERR! for the power of a V100 passes by itself)"
    )
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (SmiTable,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        table = facts.need(SmiTable)
        for index, cells in table.errors:
            message = f"the table prints ERR! for {listed(cells)}"
            say = partial(self.finding, subject=f"GPU{index}", message=message, measured="ERR!")
            if set(cells) <= _PASSING:
                yield say(
                    Verdict.UNKNOWN, remedy="Run nvidia-smi again: on some boards the power reads ERR! now and then."
                )
            else:
                yield say(Verdict.FAIL)
        yield from (self._hot(gpu) for gpu in table.inventory.gpus if _degrees(gpu) >= _HOT_C)
        if not table.errors:
            message = f"no cell of {counted(len(table.inventory.gpus), 'GPU')} prints an error"
            yield self.finding(Verdict.PASS, "host", message)

    def _hot(self, gpu: Gpu) -> Finding:
        message = (
            f"{_degrees(gpu):.0f} degrees C; boards slow down from {_HOT_C} to 95 on, this one's is not in the table"
        )
        remedy = "Look at nvidia-smi -q -d TEMPERATURE,PERFORMANCE, and at the cooling."
        return self.finding(Verdict.WARN, gpu.label, message, measured=f"{_degrees(gpu):.0f} degrees C", remedy=remedy)


def _degrees(gpu: Gpu) -> float:
    return 0.0 if isinstance(gpu.temperature_c, Missing) else gpu.temperature_c


class RetiredPagesListed(Check):
    """Few enough pages are retired on every GPU."""

    id = "tool.retired_pages"
    title = "List of retired pages"
    why = "A board retires pages as its memory fails; with too many it is returned, and the list says no word of it."
    source = "azurehpc-health-checks 0e0a1ac (62 pages); nvidia-smi --help-query-retired-pages"
    remedy = "Replace the host: the board's memory fails."
    fault_class = FaultClass.REPLACE_NOW
    requires = (RetiredPageList,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        gpus = facts.need(RetiredPageList).gpus
        bad = [gpu for gpu in gpus if gpu.total >= RETIRED_PAGES_MAX]
        for gpu in bad:
            message = f"{gpu.total} pages are retired, {RETIRED_PAGES_MAX} or more"
            yield self.finding(Verdict.FAIL, gpu.gpu, message, measured=f"{gpu.total} pages")
        if not bad:
            most = max((gpu.total for gpu in gpus), default=0)
            message = f"at most {counted(most, 'page')} on one GPU" if most else "no page is retired"
            yield self.finding(Verdict.PASS, "host", f"{message}; whether one is pending is not in this list")


class SmiVersionsMatch(Check):
    """nvidia-smi's library and the kernel module are of one version."""

    id = "tool.smi_version"
    title = "nvidia-smi --version"
    why = "A library upgraded under a loaded module stops every new CUDA program."
    source = "nvidia-smi --version of drivers 590 and 610 (DRIVER became KMD version)"
    remedy = "Reboot, so that the module of the installed driver is loaded."
    fault_class = FaultClass.SOFTWARE
    requires = (SmiVersion,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        version = facts.need(SmiVersion)
        if isinstance(version.nvml, Missing):
            return
        same = version.driver == version.nvml or version.driver.startswith(f"{version.nvml}.")
        message = f"kernel module {version.driver}, library {version.nvml}"
        yield self.finding(Verdict.PASS if same else Verdict.FAIL, "host", message, expected="one version")
