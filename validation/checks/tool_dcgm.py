"""What DCGM says, and what that means. Its closing words are not believed: a skipped test reads like a pass."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.dcgm import DcgmDiag, DcgmHealth, DcgmTest
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_SKIPPED = ("skip", "not run")


class DcgmDiagResult(Check):
    """Every test that DCGM ran passed on every GPU, and none was skipped."""

    id = "tool.dcgm"
    title = "DCGM diagnostic"
    why = 'DCGM says "Successfully ran diagnostic" and skips every hardware test on a board it does not list.'
    source = "NVIDIA/DCGM issues 55, 139, 198; a table with Pass and Fail in one cell (stas00/ml-engineering)"
    remedy = "Run the diagnostic again on that GPU alone; if it repeats, replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (DcgmDiag,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        tests = facts.need(DcgmDiag).tests
        good = True
        for test in tests:
            for word, verdict in (("fail", Verdict.FAIL), ("error", Verdict.UNKNOWN), ("warn", Verdict.WARN)):
                for gpu in test.gpus(word):
                    good = False
                    yield self.finding(verdict, _who(gpu), f"{test.name}: {word}{_notes(test)}", expected="pass")
        skipped = [test.name for test in tests if any(word in _SKIPPED for _, word in test.results)]
        if skipped:
            message = (
                f"{len(skipped)} of {counted(len(tests), 'test')} skipped, so nothing was looked at: {listed(skipped)}"
            )
            remedy = "Give DCGM the board's limits, or run kiln validate --burn-in instead: a skipped test is no pass."
            yield self.finding(Verdict.UNKNOWN, "host", message, expected="every test runs", remedy=remedy)
        elif good:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(tests), 'test')} passed")


def _who(gpu: int) -> str:
    return f"GPU{gpu}" if gpu >= 0 else "host"


def _notes(test: DcgmTest) -> str:
    return f" ({' '.join(test.notes)})" if test.notes else ""


class DcgmHealthResult(Check):
    """DCGM's health watches report nothing that is a fault of this machine."""

    id = "tool.dcgm_health"
    title = "DCGM health"
    why = "DCGM reports every NVLink of a board without a bridge as down: a fault only where links are expected."
    source = "NVIDIA/NVSentinel PR 1481; NVIDIA/DCGM issue 49"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (DcgmHealth,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        health = facts.need(DcgmHealth)
        links = expected.profile.links.nvlinks if expected.profile else None
        for gpu, system, word, said in health.incidents:
            if word.lower() == "healthy":
                continue
            message = f"{system}: {word} ({listed(said, limit=3)})"
            if "nvlink" not in system.lower():
                verdict = Verdict.WARN if word.lower() == "warning" else Verdict.FAIL
                yield self.finding(verdict, _who(gpu), message, expected="Healthy")
            elif links is None:
                remedy = "Judge it with --profile TYPE: on a board without NVLink bridge this is no fault."
                message += "; a fault only on a machine with NVLink"
                yield self.finding(Verdict.WARN, _who(gpu), message, remedy=remedy)
            elif links.value == 0:
                message = f"{system}: {word}, but this machine has no NVLink by design"
                yield self.finding(Verdict.NOT_APPLICABLE, _who(gpu), message)
            else:
                yield self.finding(Verdict.FAIL, _who(gpu), message, expected=f"{links.value} NVLinks active")
        if health.overall.lower() == "healthy":
            yield self.finding(Verdict.PASS, "host", "DCGM calls every watched system healthy")
