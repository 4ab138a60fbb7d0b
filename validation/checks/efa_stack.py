"""Do NCCL, its plug-in for EFA, libfabric and the EFA installer fit together, and the plug-in the machine?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.compat import Rule, rules
from validation.checks.wording import at_least
from validation.facts.components import Components
from validation.facts.missing import Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

# A trouble: the text, the row that says so, and whether the row names a limit (else only what was tested).
Trouble = tuple[str, Rule, bool]


class EfaStack(Check):
    """The plug-in supports the machine, and the versions around it are ones that it runs with."""

    id = "efa.stack"
    title = "NCCL on EFA fits together"
    why = "A plug-in that is too old for the machine, or for the NCCL or libfabric beside it, is slow or does not load."
    source = "aws-ofi-nccl release notes v1.21.x; awsome-distributed-training 0edaf152 (profiles/software-matrix.csv)"
    remedy = "Run a newer aws-efa-installer, which brings versions that were tested together."
    fault_class = FaultClass.SOFTWARE
    requires = (Components,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if expected.efa_count == 0:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "the stack asked for no EFA")
            return
        components = facts.need(Components)
        plugin = components.aws_ofi_nccl
        pinned = expected.software.aws_ofi_nccl is not None
        if isinstance(plugin, Missing):
            if plugin.reason is Reason.ABSENT:
                message = "aws-ofi-nccl is not installed on the host; containers bring their own"
                yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            else:
                # A host whose containers bring the plug-in is not bad because of a file that cannot be read.
                unread = self.missing("host", "version of aws-ofi-nccl", plugin)
                yield unread if pinned else replace(unread, required=False)
            return
        found = list(_troubles(plugin, components, expected.instance_type))
        for text, rule, is_limit in found:
            # A plug-in that nobody pinned harms nobody: containers bring their own.
            verdict = Verdict.FAIL if is_limit and pinned else Verdict.WARN
            yield self.finding(verdict, "host", text, measured=plugin, source=rule.source)
        if not found:
            yield self.finding(Verdict.PASS, "host", f"aws-ofi-nccl {plugin} fits what is around it", measured=plugin)


def _troubles(plugin: str, components: Components, instance_type: str) -> Iterator[Trouble]:
    for rule in rules("instance-ofi-nccl"):
        if rule.subject == instance_type and not at_least(plugin, rule.version_min):
            yield f"aws-ofi-nccl {plugin} is too old for {instance_type}: {rule.version_min} or newer", rule, True
    yield from _with_nccl(plugin, components.nccl)
    floor = _floor("ofi-nccl-libfabric", plugin)
    libfabric = components.libfabric
    if floor and not isinstance(libfabric, Missing) and not at_least(_numbers(libfabric), floor.version_min):
        yield f"aws-ofi-nccl {plugin} needs libfabric {floor.version_min} or newer, not {libfabric}", floor, True
    for rule in rules("ofi-nccl-efa-installer"):
        installer = components.efa_installer
        if rule.subject == plugin and not isinstance(installer, Missing) and at_least(installer, rule.version_max):
            yield f"aws-ofi-nccl {plugin} is slow or crashes with EFA installer {installer}", rule, True


def _with_nccl(plugin: str, versions: tuple[str, ...] | Missing) -> Iterator[Trouble]:
    floor = _floor("ofi-nccl-nccl", plugin)
    tested = next((rule for rule in rules("ofi-nccl-tested-nccl") if rule.subject == plugin), None)
    for version in () if isinstance(versions, Missing) else versions:
        if floor and not at_least(version, floor.version_min):
            yield f"aws-ofi-nccl {plugin} needs NCCL {floor.version_min} or newer, not {version}", floor, True
        elif tested and not at_least(tested.version_max, version):
            yield f"NCCL {version} is newer than aws-ofi-nccl {plugin} was tested with", tested, False


def _floor(kind: str, plugin: str) -> Rule | None:
    """The row of the newest plug-in release that is not newer than this one; rows hold from their subject on."""
    known = [rule for rule in rules(kind) if at_least(plugin, rule.subject)]
    return max(known, key=lambda rule: [int(part) for part in rule.subject.split(".")], default=None)


def _numbers(version: str) -> str:
    """``2.3.1amzn1.0`` as ``2.3.1``: Amazon's own numbering after it has no order against others."""
    return re.split(r"[^\d.]", version, maxsplit=1)[0].strip(".")
