"""What the output of one tool means: recognised, read, judged as far as the text alone allows.

The checks are the gate's own. One that needs facts this text does not hold, or a profile that was not given, is listed
in ``not_judged`` with what would judge it. Verdict: FAIL if a finding is; else UNKNOWN if the text could not be read
whole, says that something could not be looked at, or measured nothing; else WARN; else PASS if something was judged
good; else NOT_APPLICABLE.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from profiles import catalog
from profiles.errors import ConfigError, ParseError, Problem
from profiles.expectation import expect
from profiles.models import Expectation, InstanceProfile
from validation.checks import CHECKS
from validation.checks.base import Check
from validation.checks.tools import TOOL_CHECKS
from validation.facts import driver_fault, inventory_view, nvml
from validation.facts.gpu import DriverFault, GpuInventory
from validation.facts.missing import ABSENT, Missing
from validation.facts.services import Services
from validation.facts.smi_list import GpuList
from validation.facts.smi_table import SmiTable
from validation.facts.store import FactGapError, Facts
from validation.judge import advisory
from validation.recognise import Kind, by_name, names, recognise
from validation.verdict import Finding, Verdict

_NOT_IN_TABLE = ("gpu.throttle", "memory.row_remap", "gpu.recovery_action")
SCHEMA = "kiln/explain/v1"
READ = "text.read"  # the finding's check where the text itself is the trouble
_WHOLE = "What is shown is judged all the same; show the whole output to have the rest judged too."
_FIELDS = "say which fields were asked for, in their order: --fields index,name,..."
_PROFILE = "--profile TYPE"
_BUNDLE = "kiln check, with the evidence of the whole host"
# What only the stack's settings decide, or a second reading: no text of a tool can be right or wrong about it alone.
_STACK = "what the stack asked for (kiln check, kiln validate)"
_NEEDS_MORE = {
    "efa.count": _STACK,
    "efa.rdma": _STACK,
    "cuda.toolkit": _STACK,
    "gpu.mig": _STACK,
    "gpu.persistence": _STACK,
    "host.kernel": _STACK,
    "gpu.idle": "to know that nobody should be using the GPUs (kiln validate)",
    "pcie.replays": "a second reading: a count since the driver was loaded says nothing alone",
}


@dataclass(frozen=True)
class NotJudged:
    """A check that this text concerns and could not be made, and what would make it."""

    check: str
    needs: str


@dataclass(frozen=True)
class Explanation:
    """One text: what it is, what it says, what is wrong with it."""

    kind: str
    title: str
    facts: tuple[object, ...]
    findings: tuple[Finding, ...]
    not_judged: tuple[NotJudged, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "title": self.title,
            "facts": self._facts(),
            "findings": [finding.to_dict() for finding in self.findings],
            "not_judged": [{"check": item.check, "needs": item.needs} for item in self.not_judged],
            "verdict": self.verdict.value,
        }

    def _facts(self) -> dict[str, Any]:
        """By name; the inventory that a fact holds beside something else is said once."""
        facts = {type(fact).__name__: to_json(fact) for fact in self.facts}
        for name, fact in facts.items():
            if GpuInventory.__name__ in facts and name != GpuInventory.__name__:
                fact.pop("inventory", None)
        return facts


def explain(text: str, *, kind: str | None = None, profile: str | InstanceProfile | None = None) -> Explanation:
    """The explanation of a text. Raises ConfigError for a kind or an instance type that there is none of."""
    expected = _expectation(profile)
    chosen = _kind(text, kind)
    if chosen is None:
        message = "no tool known here prints such a text"
        remedy = f"Name the tool with --kind, one of: {', '.join(names())}."
        remedy += f" A CSV of nvidia-smi without its header: {_FIELDS}" if "," in text else ""
        unknown = Finding(READ, "text", Verdict.UNKNOWN, message, remedy=remedy)
        return Explanation("unknown", "not recognised", (), (unknown,), (), Verdict.UNKNOWN)
    facts, findings = _read(text, chosen)
    judged, open_checks = _judge(facts, expected)
    findings = (*findings, *judged)
    return Explanation(chosen.name, chosen.title, facts, findings, open_checks, _verdict(findings))


def _expectation(profile: str | InstanceProfile | None) -> Expectation:
    if profile is None:
        return Expectation(instance_type="")
    if isinstance(profile, InstanceProfile):
        return Expectation(instance_type=profile.instance_type, profile=profile)
    if catalog.load(profile) is None:
        near = ", ".join(catalog.nearest(profile))
        fix = f"Did you mean {near}?" if near else ""
        raise ConfigError(
            "no such profile", [Problem("--profile", repr(profile), "an instance type of the catalogue", fix)]
        )
    return expect(profile)


def _kind(text: str, name: str | None) -> Kind | None:
    if name is None:
        return recognise(text)
    kinds = by_name(name)
    if not kinds:
        raise ConfigError("no such kind", [Problem("--kind", repr(name), f"one of {', '.join(names())}")])
    return kinds[0]


def _read(text: str, kind: Kind) -> tuple[tuple[object, ...], tuple[Finding, ...]]:
    """The facts of the text, the driver's own words of failure among them, and what is wrong with the text itself."""
    facts: list[object] = []
    findings: list[Finding] = []
    fault = _fault(text, kind)
    try:
        fact = kind.parse(text)
    except ParseError as error:
        if fault is None:
            remedy = error.remedy or "Capture the whole output again; Kiln does not judge half of one."
            findings.append(_trouble(Verdict.UNKNOWN, f"could not be read whole: {error}", remedy))
    except Exception as error:  # noqa: BLE001 - what breaks a parser was not read: UNKNOWN, with its cause
        message = f"could not be read: {type(error).__name__}: {str(error)[:200]}"
        findings.append(_trouble(Verdict.UNKNOWN, message, "This is a defect of the parser: report it, with the text."))
    else:
        facts += _unfolded(fact)
    inventories = [fact for fact in facts if isinstance(fact, GpuInventory)]
    if fault is not None and not any(isinstance(fact, DriverFault) for fact in facts):
        listed = any(inventory.lost for inventory in inventories)
        facts += [] if fault.kind == "gpu-lost" and listed else [fault]
    omitted = [reason for fact in facts for reason in getattr(fact, "omitted", ())]
    findings += [_trouble(Verdict.UNKNOWN, f"not the whole output: {reason}", _WHOLE) for reason in omitted]
    for inventory in inventories:
        findings += [
            Finding(READ, subject, verdict, message, remedy=remedy)
            for subject, verdict, message, remedy in inventory_view.unread(inventory)
        ]
    return tuple(facts), tuple(findings)


def _fault(text: str, kind: Kind) -> DriverFault | None:
    """The driver's own word that it cannot work. A kernel log tells of the past, so its lines are judged as such."""
    if kind.name == "kernel-log":
        return None
    if kind.name == "nvml":
        try:
            return nvml.fault(text)
        except ParseError:
            return None
    return driver_fault.first(text, kind.name)


def _unfolded(fact: object) -> list[object]:
    """A fact that holds an inventory, or the unit that the gate looks at, beside something else gives both."""
    if isinstance(fact, Services) and fact.fabric_manager is not None:
        return [fact.fabric_manager, fact]
    return [fact.inventory, fact] if isinstance(fact, (GpuList, SmiTable)) else [fact]


def _trouble(verdict: Verdict, message: str, remedy: str) -> Finding:
    return Finding(READ, "text", verdict, message, remedy=remedy)


def _judge(facts: tuple[object, ...], expected: Expectation) -> tuple[tuple[Finding, ...], tuple[NotJudged, ...]]:
    """Every check that this text concerns: made, or listed with what it lacks."""
    store = Facts({type(fact): fact for fact in facts})
    findings: list[Finding] = []
    open_checks: list[NotJudged] = []
    for check in dict.fromkeys((*CHECKS, *TOOL_CHECKS)):
        if not _concerns(check, store, expected):
            continue
        whole = all(kind in store for kind in check.requires) or DriverFault in store
        if check.id in _NEEDS_MORE:
            open_checks.append(NotJudged(check.id, _NEEDS_MORE[check.id]))
        elif check.needs_profile and expected.profile is None:
            open_checks.append(NotJudged(check.id, _PROFILE if whole else f"{_BUNDLE} and {_PROFILE}"))
        else:
            made = [finding for finding in _made(check, store, expected) if whole or _stands(check, finding)]
            findings += made
            open_checks += [] if whole or made else [NotJudged(check.id, _BUNDLE)]
    if SmiTable in store:
        open_checks += [NotJudged(name, "nvidia-smi -q -x: the table does not show it") for name in _NOT_IN_TABLE]
    return tuple(findings), tuple(open_checks)


def _stands(check: Check, finding: Finding) -> bool:
    """Whether a finding holds although facts are lacking: a fault that was seen, or what the profile alone decides."""
    return finding.verdict is Verdict.FAIL or (finding.verdict is Verdict.NOT_APPLICABLE and check.needs_profile)


def _concerns(check: Check, store: Facts, expected: Expectation) -> bool:
    """Whether the text says something about what the check looks at: a fact it requires, with the fields it reads."""
    if DriverFault in store and inventory_view.judges_faults(check.id, store.need(DriverFault)):
        return True
    if not any(kind in store for kind in check.requires):
        return False
    others = [kind for kind in check.requires if kind is not GpuInventory and kind in store]
    if GpuInventory not in check.requires or others:
        return True

    def trace(inventory: GpuInventory) -> object:
        facts = Facts({**{type(fact): fact for fact in store}, GpuInventory: inventory})
        return _made(check, facts, expected)

    blind = check.needs_profile and expected.profile is None
    return inventory_view.carries(check.id, store.need(GpuInventory), None if blind else trace)


def _made(check: Check, store: Facts, expected: Expectation) -> list[Finding]:
    """The check's findings, up to the first fact that this text does not hold; a crash is UNKNOWN."""
    found = _evaluated(check, store, expected)
    return [
        replace(finding, required=finding.required and advisory(check, finding, expected) is None) for finding in found
    ]


def _evaluated(check: Check, store: Facts, expected: Expectation) -> Iterator[Finding]:
    try:
        yield from check.evaluate(store, expected)
    except FactGapError:
        return
    except Exception as error:  # noqa: BLE001 - a crash is UNKNOWN, with where it happened
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        message = f"the check crashed: {type(error).__name__}: {error} [{where}]"
        yield check.finding(Verdict.UNKNOWN, "text", message, remedy="This is a defect of the check: report it.")


def _verdict(findings: Iterable[Finding]) -> Verdict:
    """The rule of the module's docstring; an advisory finding warns at most."""
    seen = set()
    for finding in findings:
        grave = finding.verdict in (Verdict.FAIL, Verdict.UNKNOWN) and not finding.required
        seen.add(Verdict.WARN if grave else finding.verdict)
    order = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS)
    return next((verdict for verdict in order if verdict in seen), Verdict.NOT_APPLICABLE)


def to_json(value: object) -> Any:
    """A fact as JSON: a field that the text does not carry is left out, a missing one says why, pairs are ``"0-1"``."""
    if isinstance(value, Missing):
        return {"missing": value.reason.value, "text": value.text}
    if is_dataclass(value) and not isinstance(value, type):
        derived = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        pairs = ((name, getattr(value, name)) for name in (*(item.name for item in fields(value)), *derived))
        return {name: to_json(item) for name, item in pairs if item != ABSENT and not _empty(item)}
    if isinstance(value, Mapping):
        return {_key(key): to_json(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return [to_json(item) for item in sorted(value)]
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    return value


def _empty(value: object) -> bool:
    """A nested fact none of whose fields the text carries."""
    if not is_dataclass(value) or isinstance(value, (type, Missing)):
        return False
    return all(getattr(value, item.name) in (ABSENT, ()) for item in fields(value))


def _key(key: object) -> str:
    return "-".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
