"""Are the hosts of a stack alike? Judged over the hosts' reports, after each has its own verdict.

Only hosts of one instance type are compared, and only what was read on them: what could not be looked at on a host,
its own checks say. Nothing is said of a type with a single host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from validation.checks.software import default_toolkit
from validation.checks.wording import listed
from validation.facts.components import Components
from validation.facts.gpu import GpuInventory
from validation.facts.host import CudaToolkits, HostInfo
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.report.model import HostReport, StackReport
from validation.verdict import FaultClass, Finding, Verdict, combine_stack

UNIFORM = "stack.uniform"


@dataclass(frozen=True)
class Rule:
    """What must be the same on all hosts of a type: ``key`` of the inventory, and what a difference comes to."""

    key: str
    check: str
    what: str
    verdict: Verdict
    fault_class: FaultClass
    why: str
    source: str
    remedy: str


_IMAGE = "Bring all hosts to one image, and keep it from upgrading itself; then validate again."
_FLEETS = "imbue-ai/cluster-health (exact counts of driver, VBIOS, GSP over the fleet); azurehpc-health-checks 0e0a1ac"
RULES: tuple[Rule, ...] = (
    Rule(
        "driver",
        "stack.driver",
        "driver",
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "A job over hosts with different drivers fails where the oldest lacks something, and nobody can reproduce it.",
        _FLEETS,
        _IMAGE,
    ),
    Rule(
        "kernel",
        "stack.kernel",
        "kernel",
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "A host that upgraded its kernel by itself may come up without its driver after the next boot.",
        "imbue-ai/cluster-health; aws-k8s-tester 9c7b987a",
        _IMAGE,
    ),
    Rule(
        "os",
        "stack.os",
        "operating system",
        Verdict.FAIL,
        FaultClass.CONFIGURATION,
        "Hosts of one stack come from one image; another release means that one of them does not.",
        "imbue-ai/cluster-health (exact count of the Ubuntu version)",
        _IMAGE,
    ),
    Rule(
        "image",
        "stack.image",
        "machine image",
        Verdict.WARN,
        FaultClass.CONFIGURATION,
        "Two images that agree in system, kernel and driver today are upgraded apart tomorrow.",
        "cloud-init's instance data (AWS ami-id, Alibaba Cloud image-id)",
        _IMAGE,
    ),
    Rule(
        "cuda",
        "stack.cuda",
        "CUDA toolkit",
        Verdict.WARN,
        FaultClass.SOFTWARE,
        "The same program is built differently on each host; programs that bring their own toolkit do not mind.",
        "the pin of the stack judges each host; this one compares them where nothing is pinned",
        _IMAGE,
    ),
    Rule(
        "nccl",
        "stack.nccl",
        "NCCL",
        Verdict.WARN,
        FaultClass.SOFTWARE,
        "NCCL wants one version on all ranks; containers that bring their own do not mind.",
        "NCCL user guide: all ranks of a communicator use one version",
        _IMAGE,
    ),
    Rule(
        "aws_ofi_nccl",
        "stack.nccl_plugin",
        "aws-ofi-nccl",
        Verdict.WARN,
        FaultClass.SOFTWARE,
        "Different plug-ins choose different protocols for one message, and the job hangs.",
        "aws-ofi-nccl release notes v1.21.x",
        _IMAGE,
    ),
    Rule(
        "vbios",
        "stack.vbios",
        "VBIOS",
        Verdict.WARN,
        FaultClass.OPERATOR,
        "Boards with another VBIOS were made or mended at another time; healthy fleets have several.",
        _FLEETS,
        "Ask the provider for hosts of one kind if the job minds; nothing is broken.",
    ),
    Rule(
        "gsp_firmware",
        "stack.gsp_firmware",
        "GSP firmware",
        Verdict.WARN,
        FaultClass.SOFTWARE,
        "The GSP firmware comes with the driver; another one means an upgrade that a reboot has not ended.",
        _FLEETS,
        "Reboot the host that differs; if it still does, install the driver again.",
    ),
)


def inventory_of(facts: Facts) -> dict[str, str]:
    """What of a host is compared with the others, by key; only what could be read."""
    found: dict[str, object] = {}
    if HostInfo in facts:
        host = facts.need(HostInfo)
        found.update(os=f"{host.os_id} {host.os_version}", kernel=host.kernel, image=host.image)
    if GpuInventory in facts:
        inventory = facts.need(GpuInventory)
        found["driver"] = inventory.driver_version
        found["vbios"] = _several(gpu.vbios for gpu in inventory.gpus)
        found["gsp_firmware"] = _several(gpu.gsp_firmware for gpu in inventory.gpus)
    if CudaToolkits in facts:
        versions = facts.need(CudaToolkits).versions
        found["cuda"] = versions.get(default_toolkit(versions), "")
    if Components in facts:
        components = facts.need(Components)
        found["nccl"] = components.nccl if isinstance(components.nccl, Missing) else ", ".join(components.nccl)
        found["aws_ofi_nccl"] = components.aws_ofi_nccl
    return {key: value for key, value in found.items() if isinstance(value, str) and value}


def _several(values: Iterator[str | Missing]) -> str:
    return ", ".join(sorted({value for value in values if isinstance(value, str)}))


def compared(report: StackReport) -> StackReport:
    """The report with the findings about its hosts together, and the verdict that comes of both."""
    findings = tuple(_findings(report.hosts))
    verdict = combine_stack((host.verdict for host in report.hosts), findings)
    return replace(report, findings=findings, verdict=verdict)


def _findings(hosts: Sequence[HostReport]) -> Iterator[Finding]:
    kinds: dict[str, list[HostReport]] = defaultdict(list)
    for host in hosts:
        if host.inventory:
            kinds[host.instance_type].append(host)
    for kind, members in kinds.items():
        if len(members) < 2:
            continue
        subject = "stack" if len(kinds) == 1 else f"stack/{kind}"
        trouble = [finding for rule in RULES if (finding := _difference(rule, members, subject)) is not None]
        yield from trouble
        if not trouble:
            same = listed((rule.what for rule in RULES if any(rule.key in host.inventory for host in members)), limit=9)
            yield Finding(UNIFORM, subject, Verdict.PASS, f"{len(members)} hosts of {kind} are alike: {same}")


def _difference(rule: Rule, hosts: Sequence[HostReport], subject: str) -> Finding | None:
    where: dict[str, list[str]] = defaultdict(list)
    for host in hosts:
        if rule.key in host.inventory:
            where[host.inventory[rule.key]].append(host.host)
    if len(where) < 2:
        return None
    return Finding(
        check=rule.check,
        subject=subject,
        verdict=rule.verdict,
        message=f"the hosts have {len(where)} versions of {rule.what}: {_places(where)}",
        measured=listed(sorted(where)),
        expected=f"one {rule.what} on all hosts of {hosts[0].instance_type}",
        source=rule.source,
        remedy=rule.remedy,
        fault_class=rule.fault_class if rule.verdict is Verdict.FAIL else None,
    )


def _places(where: Mapping[str, list[str]]) -> str:
    """``580.105.08 on 14 hosts, 535.104.05 on gpu-3``: the most common first, and the odd ones by name."""
    ranked = sorted(where.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    texts = [
        f"{version} on {f'{len(names)} hosts' if at == 0 and len(names) > 3 else listed(names)}"
        for at, (version, names) in enumerate(ranked)
    ]
    return "; ".join(texts)
