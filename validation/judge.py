"""The judge: runs the checks over one host's facts and turns everything that is not an answer into UNKNOWN.

A missing fact, a check that crashes or says nothing, an instance type without a profile and evidence that did not
arrive whole all close the gate. A check is required unless the profile lists it as advisory, with its reason.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import profiles
from profiles import catalog
from profiles.models import Expectation
from validation.checks import CHECKS
from validation.checks.base import Check
from validation.evidence import Bundle
from validation.facts.assemble import assemble
from validation.facts.store import FactGapError, Facts
from validation.verdict import Finding, Verdict

INCOMPLETE = "evidence.complete"
NO_PROFILE = "host.profile"
_COULD_NOT_LOOK = "could not look: "


def judge(bundle: Bundle, expected: Expectation, *, host: str, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    """All findings about one host, their subjects prefixed with its name.

    A bundle whose end marker or digest did not arrive gives one UNKNOWN and nothing else: what is there may be half.
    """
    if not bundle.complete:
        notes = "; ".join(bundle.notes) or "the end marker did not arrive, or its digest does not match"
        return (
            Finding(
                check=INCOMPLETE,
                subject=host,
                verdict=Verdict.UNKNOWN,
                message=f"the evidence did not arrive whole: {notes}",
                measured=f"{len(bundle.items)} items",
                expected="all items and the end marker",
                remedy="Validate again; if it repeats, look at the connection and at the host's load.",
            ),
        )
    return judge_facts(assemble(bundle), expected, host, checks)


def judge_facts(
    facts: Facts, expected: Expectation, host: str, checks: Sequence[Check] = CHECKS
) -> tuple[Finding, ...]:
    """As :func:`judge`, from facts. Every check of ``checks`` has at least one finding, or is named in one."""
    ready = [check for check in checks if expected.profile is not None or not check.needs_profile]
    findings = _told_once([finding for check in ready for finding in _run(check, facts, expected)])
    skipped = [check.id for check in checks if check not in ready]
    if skipped:
        findings.insert(0, _no_profile(expected.instance_type, skipped))
    elif expected.profile is not None and not expected.profile.reviewed:
        findings.insert(0, _draft(expected.instance_type))
    return tuple(replace(finding, subject=_prefixed(host, finding.subject)) for finding in findings)


def _run(check: Check, facts: Facts, expected: Expectation) -> Iterator[Finding]:
    """The findings of one check, advisory where the profile says so. What came before a gap or crash is kept."""
    for finding in _evaluate(check, facts, expected):
        if check.optional and finding.verdict is Verdict.UNKNOWN:
            finding = replace(finding, required=False)
        reason = advisory(check, finding, expected)
        if reason is None:
            yield finding
        else:
            yield replace(finding, required=False, message=_with_reason(finding, reason))


def advisory(check: Check, finding: Finding, expected: Expectation) -> str | None:
    """Why the profile lets a finding only warn; None where it closes the gate.

    A profile excuses what cannot be known of its type. A fault that was seen is known: no profile excuses it where the
    check is one of safety (corrupt results, memory errors, Xid, lost GPUs, modules that are not linked).
    """
    if expected.profile is None or not check.excusable(finding):
        return None
    return expected.profile.advisory.get(check.id)


def _evaluate(check: Check, facts: Facts, expected: Expectation) -> Iterator[Finding]:
    said = False
    try:
        for finding in check.evaluate(facts, expected):
            said = True
            yield finding
    except FactGapError as error:
        yield _gap(check, error)
    except Exception as error:  # noqa: BLE001 - a crash is UNKNOWN, with its traceback kept
        yield _crash(check, error)
    else:
        if not said:
            yield _unknown(check, "the check said nothing", remedy="This is a defect of the check: report it.")


def _gap(check: Check, error: FactGapError) -> Finding:
    message = f"{_COULD_NOT_LOOK}{error.gap.reason}"
    where = f" (evidence {error.gap.evidence})" if error.gap.evidence else ""
    remedy = f"Make this readable and validate again: {_words(error.kind.__name__)}{where}."
    return _unknown(
        check, message, remedy=remedy, measured=f"no {_words(error.kind.__name__)}", evidence=error.gap.evidence
    )


def _crash(check: Check, error: Exception) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    trail = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    message = f"the check crashed: {type(error).__name__}: {error} [{trail}]"
    return _unknown(check, message, remedy="This is a defect of the check: report it with this line.")


def _unknown(check: Check, message: str, *, remedy: str, measured: str = "", evidence: str = "") -> Finding:
    return check.finding(Verdict.UNKNOWN, "host", message, remedy=remedy, measured=measured, evidence=evidence)


def _told_once(findings: Iterable[Finding]) -> list[Finding]:
    """The same: where one gap stops many checks, the first tells it and the others name the first."""
    first: dict[str, str] = {}
    told = []
    for finding in findings:
        if finding.verdict is Verdict.UNKNOWN and finding.message.startswith(_COULD_NOT_LOOK):
            teller = first.setdefault(finding.message, finding.check)
            if teller != finding.check:
                finding = replace(finding, message=f"{_COULD_NOT_LOOK}for the reason given at {teller}")
        told.append(finding)
    return told


def _no_profile(instance_type: str, skipped: Iterable[str]) -> Finding:
    draft = f"kiln baseline record --hosts inventory.yaml --host NAME --type {instance_type}"
    remedy = f"Correct the instance type; or draft its profile from a host believed good, and review it: {draft}"
    near = catalog.nearest(instance_type)
    hint = f" (nearest: {', '.join(near)})" if near else ""
    if accelerator := catalog.foreign(instance_type):
        hint = f": it has {accelerator}, and Kiln judges NVIDIA GPUs only"
        remedy = "Take an instance type with NVIDIA GPUs, or leave the host out of the gate."
    return Finding(
        check=NO_PROFILE,
        subject="host",
        verdict=Verdict.UNKNOWN,
        message=f"instance type {instance_type!r} is not in the catalogue{hint}; not judged: {', '.join(skipped)}",
        measured=instance_type,
        expected="an instance type of the catalogue",
        remedy=remedy,
    )


def _draft(instance_type: str) -> Finding:
    return Finding(
        check=NO_PROFILE,
        subject="host",
        verdict=Verdict.UNKNOWN,
        message=f"the profile of {instance_type} is a draft, recorded from one host and reviewed by nobody",
        measured="reviewed: false",
        expected="reviewed: true",
        remedy="Look at every value of the file, correct it or give its true source, then set `reviewed: true` in it.",
    )


def _with_reason(finding: Finding, reason: str) -> str:
    good = finding.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE)
    return finding.message if good else f"{finding.message} (advisory on this type: {reason})"


def _prefixed(host: str, subject: str) -> str:
    return host if subject == "host" else f"{host}/{subject}"


def _words(name: str) -> str:
    """``GpuInventory`` as words: ``gpu inventory``."""
    return "".join(f" {c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _digest() -> str:
    folder = Path(__file__).resolve().parent
    files = [
        Path(__file__),
        *(folder / name for name in ("verdict.py", "evidence.py", "units.py", "host_findings.py")),
        *sorted((folder / "facts").glob("*")),
        *sorted((folder / "checks").glob("*")),
        *sorted(Path(profiles.__file__).parent.glob("*.csv")),
    ]
    parts = (path.name.encode() + b"\0" + path.read_bytes() for path in files if path.is_file())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


JUDGE_DIGEST = _digest()
"""Changes whenever a parser, a check, a table of theirs or the rules of combining change: a kept verdict is then void.

The values of the profiles are not in it: they are part of the expectation, which has a digest of its own.
"""
