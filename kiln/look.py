"""A look at a stack's hosts as they are now, with the keys that the engine keeps: does the last verdict still hold?"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from kiln.progress import progress
from plugins.kiln.inputs import GateInputs
from plugins.kiln.wire import SECRET, SIGNATURE
from profiles.errors import LookError
from profiles.models import Expectation
from stacks.status import GATE
from validation import staleness
from validation.report.model import HostReport, StackReport, digest
from validation.runner import Options, validate
from validation.verdict import Verdict, combine_hosts

DEADLINE_S = 45.0  # a host that is up answers in seconds; one that is not makes the verdict void anyway


@dataclass(frozen=True)
class Look:
    """What a look came to: why the verdict is void (empty: it stands), and the worst of what was found now."""

    reasons: tuple[str, ...]
    verdict: Verdict


def look(export: Mapping[str, Any]) -> Look:
    """Look at every host of the stack's gates, without a burn-in, and compare with what each gate recorded.

    ``export``: what ``pulumi stack export --show-secrets`` prints. Raises KilnError where it cannot be compared.
    """
    reasons: list[str] = []
    verdicts = []
    for inputs, report in _gates(export):
        present = _present(inputs)
        reasons += staleness.void(report, present)
        verdicts += [report.verdict, *(host.verdict for host in present.values() if host.verdict is Verdict.FAIL)]
    verdict = combine_hosts(verdicts)
    return Look(tuple(reasons), Verdict.UNKNOWN if reasons and verdict.opens_gate else verdict)


def _present(inputs: Mapping[str, Any]) -> dict[str, HostReport]:
    gate = GateInputs.read(inputs)
    options = Options(deadline_s=DEADLINE_S, concurrency=gate.options.concurrency)
    with progress() as shown:
        found = validate(gate.targets, options, progress=shown, cancel=threading.Event())
    expected = {target.name: _digest(target.expectation, gate.options.burn_in) for target in gate.targets}
    return {host.host: _as_judged(host, expected[host.host]) for host in found.hosts}


def _digest(expectation: Expectation, level: str) -> str:
    """The digest as the gate works it out: with the burn-in that the gate asks for, and this look does without."""
    return digest(expectation.model_copy(update={"burn_in": level}))


def _as_judged(host: HostReport, expectation: str) -> HostReport:
    return replace(host, identity=replace(host.identity, expectation=expectation)) if host.identity else host


def _gates(export: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], StackReport]]:
    """The inputs and the report of each gate. Raises LookError where one cannot be read."""
    resources = (export.get("deployment") or {}).get("resources") or ()
    for resource in resources:
        if not isinstance(resource, dict) or resource.get("type") != GATE or resource.get("delete"):
            continue
        try:
            inputs = cast("Mapping[str, Any]", _plain(resource["inputs"]))
            report = cast("Mapping[str, Any]", _plain(resource["outputs"]))["report"]
            yield inputs, StackReport.from_dict(json.loads(report))
        except (KeyError, TypeError, ValueError) as error:
            raise LookError(f"the gate's state cannot be read: {type(error).__name__}: {error}") from error


def _plain(value: object) -> object:
    """A value of the engine's export without the wrapping of its secrets."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return json.loads(value["plaintext"])
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
