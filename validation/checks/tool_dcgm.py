"""What DCGM says, and what that means. Its closing words are not believed: a skipped test reads like a pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.dcgm import DcgmDiag, DcgmNote, DcgmTest
from validation.facts.dcgm_health import DcgmHealth
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_SKIPPED = ("skip", "not run")
# NVIDIA's extended utility diagnostic is a package of its own, for root alone: DCGM skips it on healthy hosts.
_EXTRA_PACKAGE = re.compile(r"\beud\b|_eud\b", re.I)
_CONFIGURATION = 5  # DCGM's severity of what is set up otherwise than it wants, and no fault of hardware
_OTHER_FAULT = re.compile(r"\bECC\b|bit error|\bXid\b|\bCRC\b|replay|recovery|below|mismatch", re.I)
_NARROW = re.compile(r"running at PCIe? link width (\d+)X", re.I)
_LANES_MIN = 4  # no machine gives a GPU fewer, see pcie.width
# Errors that were counted on a link: it is there, and carries data badly.
_NVLINK_ERRORS = re.compile(r"NvLink errors|\bCRC\b|replay|recovery", re.I)
_RUN_AGAIN = "Run the diagnostic again on that GPU alone; if it repeats, replace the host."


@dataclass(frozen=True)
class _Known:
    """What a failure of a test means where its words are those of a known cause that is no broken GPU."""

    words: re.Pattern[str]
    verdict: Verdict
    fault_class: FaultClass
    remedy: str

    def fits(self, test: str, note: DcgmNote) -> bool:
        return self.words.search(f"{test}: {note.text}") is not None


_KNOWN = (
    _Known(
        re.compile(r"persistence mode|environment variables?\b|graphics process|enforced power limit", re.I),
        Verdict.WARN,
        FaultClass.CONFIGURATION,
        "A setting, no fault of the GPU: set it as DCGM asks, and run the diagnostic again.",
    ),
    # DCGM files these under configuration too; a lost GPU and a fabric that did not train look like that.
    _Known(
        re.compile(r"different than the number of devices|training error", re.I),
        Verdict.FAIL,
        FaultClass.REBOOT_ONCE,
        "Reboot once; if it repeats, replace the host.",
    ),
    _Known(
        re.compile(r"denylist|blacklist|nvml library|cuda (?:main|toolkit|runtime) library|permissions and os", re.I),
        Verdict.FAIL,
        FaultClass.SOFTWARE,
        "Mend the driver's installation as DCGM says, and run the diagnostic again.",
    ),
    # DCGM 4.5.0 measures right after its own burn-in (NVIDIA/DCGM issue 272).
    _Known(
        re.compile(r"utilization for the GPU.*is greater than", re.I),
        Verdict.UNKNOWN,
        FaultClass.OPERATOR,
        "The GPU was busy, so nothing was measured: run this test alone (dcgmi diag -r nvbandwidth).",
    ),
    # NVIDIA/go-dcgm issue 52.
    _Known(
        re.compile(r"CUDA-capable device\(s\) is/are busy or unavailable", re.I),
        Verdict.UNKNOWN,
        FaultClass.OPERATOR,
        "Another process holds the GPU, or its compute mode is exclusive: free it, and run the diagnostic again.",
    ),
    # NVIDIA/DCGM issue 242.
    _Known(
        re.compile(r"total+ing 0(?:\.0+)? seconds", re.I),
        Verdict.WARN,
        FaultClass.OPERATOR,
        "A violation of no duration is a known false alarm of DCGM: run the test again.",
    ),
)


class DcgmDiagResult(Check):
    """Every test that DCGM ran passed on every GPU, and none was skipped."""

    id = "tool.dcgm"
    title = "DCGM diagnostic"
    why = (
        'DCGM says "Successfully ran diagnostic" and skips every hardware test on a board it does not list; it fails '
        "healthy boards for a setting, for being busy, and for a violation of 0.0 seconds."
    )
    source = (
        "NVIDIA/DCGM issues 49, 55, 139, 198, 242, 272, 284, go-dcgm issue 52, severities of dcgm_errors.c (2025), "
        "aws-k8s-tester PR 806 (error 46 on links that are x8 by design); "
        "a table with Pass and Fail in one cell (stas00/ml-engineering)"
    )
    remedy = _RUN_AGAIN
    fault_class = FaultClass.REPLACE_NOW
    requires = (DcgmDiag,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        diag = facts.need(DcgmDiag)
        remedy = "Mend what DCGM names, and run the diagnostic again."
        for error in diag.errors:
            yield self.finding(Verdict.UNKNOWN, "host", f"DCGM did not run it: {error}", remedy=remedy)
        found = [finding for test in diag.tests for finding in self._bad(test, expected)]
        yield from found
        skipped = [test.name for test in diag.tests if any(word in _SKIPPED for _, word in test.results)]
        extra = [name for name in skipped if _EXTRA_PACKAGE.search(name)]
        if skipped:
            yield self._skip(skipped, len(diag.tests), only_extra=len(extra) == len(skipped))
        elif not found and diag.tests:
            names = listed([test.name for test in diag.tests])
            yield self.finding(Verdict.PASS, "host", f"{counted(len(diag.tests), 'test')} passed: {names}")

    def _skip(self, skipped: list[str], tests: int, *, only_extra: bool) -> Finding:
        message = f"{len(skipped)} of {counted(tests, 'test')} skipped, so nothing was looked at: {listed(skipped)}"
        remedy = "Give DCGM the board's limits, or run kiln validate --burn-in instead: a skipped test is no pass."
        if only_extra and len(skipped) < tests:
            remedy = "It needs NVIDIA's separate package and root: install it, or do without this one test."
            return self.finding(Verdict.WARN, "host", message, expected="every test runs", remedy=remedy)
        return self.finding(Verdict.UNKNOWN, "host", message, expected="every test runs", remedy=remedy)

    def _bad(self, test: DcgmTest, expected: Expectation) -> Iterator[Finding]:
        """What one test found, and what it warns of although it calls itself passed."""
        trouble = False
        for word, verdict in (("fail", Verdict.FAIL), ("error", Verdict.UNKNOWN), ("warn", Verdict.WARN)):
            for gpu in test.gpus(word):
                trouble = True
                yield self._failed(test, gpu, word, verdict, expected)
        if not trouble and test.notes and test.gpus("pass"):
            message = f"{test.name}: pass, with a warning{_said(test.notes)}"
            yield self.finding(Verdict.WARN, "host", message, expected="pass without a warning")

    def _failed(self, test: DcgmTest, gpu: int, word: str, verdict: Verdict, expected: Expectation) -> Finding:
        notes = test.notes_on(gpu)
        message = f"{test.name}: {word}{_said(notes)}"
        reasons = notes or (DcgmNote(""),)
        if word == "fail" and all(_only_down(note.text) for note in reasons):
            return _links_down(self, gpu, message, expected)
        if word == "fail" and all(_NARROW.search(note.text) for note in reasons):
            return _narrow(self, gpu, message, [note.text for note in reasons], expected)
        known = next((item for item in _KNOWN if all(item.fits(test.name, note) for note in reasons)), None)
        if known is None and word == "fail" and all(note.severity == _CONFIGURATION for note in reasons):
            remedy = "DCGM blames what is set up, so the GPU was not judged: mend it as DCGM says, and run again."
            return self.finding(Verdict.UNKNOWN, _who(gpu), message, expected="pass", remedy=remedy)
        if known is None or word != "fail":
            return self.finding(verdict, _who(gpu), message, expected="pass")
        return self.finding(
            known.verdict, _who(gpu), message, expected="pass", remedy=known.remedy, fault_class=known.fault_class
        )


def _who(gpu: int) -> str:
    return f"GPU{gpu}" if gpu >= 0 else "host"


def _said(notes: Iterable[DcgmNote]) -> str:
    said = list(dict.fromkeys(note.text for note in notes if note.text))
    return f" ({' '.join(said)})" if said else ""


class DcgmHealthResult(Check):
    """DCGM's health watches report nothing that is a fault of this machine."""

    id = "tool.dcgm_health"
    title = "DCGM health"
    why = (
        "DCGM reports every NVLink of a board without a bridge as down, and IMEX as not ready on a host that needs "
        "none: faults only where such a thing is expected."
    )
    source = "NVIDIA/NVSentinel PR 1481 and issue 1471, NVIDIA/aicr issue 2641; NVIDIA/DCGM issue 49"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (DcgmHealth,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        health = facts.need(DcgmHealth)
        if health.error:
            remedy = "Turn the watches on (dcgmi health -s a), wait a minute, and ask again."
            yield self.finding(Verdict.UNKNOWN, "host", f"DCGM looked at nothing: {health.error}", remedy=remedy)
            return
        bad = [incident for incident in health.incidents if incident[2].lower() != "healthy"]
        for gpu, system, word, said in bad:
            yield self._incident(gpu, system, word, said, expected)
        overall = health.overall.lower()
        if overall == "healthy" and not bad:
            yield self.finding(Verdict.PASS, "host", "DCGM calls every watched system healthy")
        elif overall not in ("healthy", *(word.lower() for _, _, word, _ in bad)):
            message = f"the overall health is {health.overall}, and no system listed is: a row is lost"
            yield self.finding(Verdict.UNKNOWN, "host", message)

    def _incident(self, gpu: int, system: str, word: str, said: tuple[str, ...], expected: Expectation) -> Finding:
        message = f"{system}: {word} ({' '.join(said)})" if said else f"{system}: {word}"
        if "nvlink" not in system.lower() or _NVLINK_ERRORS.search(" ".join(said)):
            grave = Verdict.FAIL if word.lower() == "failure" else Verdict.UNKNOWN
            verdict = Verdict.WARN if word.lower() == "warning" else grave
            return self.finding(verdict, _who(gpu), message, expected="Healthy")
        if _only_imex(" ".join(said)):
            remedy = "Where NVLink spans hosts (NVL72), start nvidia-imex; on any other host turn this watch off."
            message += "; IMEX is needed only where NVLink spans hosts, and says nothing of the links"
            return self.finding(Verdict.WARN, _who(gpu), message, remedy=remedy, fault_class=FaultClass.CONFIGURATION)
        return _links_down(self, gpu, message, expected)


def _links_down(check: Check, gpu: int, message: str, expected: Expectation) -> Finding:
    """Links that are down, by what the machine is built with: on a board without a bridge they are down by design."""
    links = expected.profile.links.nvlinks if expected.profile else None
    if links is None:
        remedy = "Judge it with --profile TYPE: on a board without NVLink bridge this is no fault."
        return check.finding(
            Verdict.WARN, _who(gpu), f"{message}; a fault only on a machine with NVLink", remedy=remedy
        )
    if links.value == 0:
        return check.finding(Verdict.NOT_APPLICABLE, _who(gpu), f"{message}; but this machine has no NVLink by design")
    return check.finding(Verdict.FAIL, _who(gpu), message, expected=f"{links.value} NVLinks active")


def _narrow(check: Check, gpu: int, message: str, said: list[str], expected: Expectation) -> Finding:
    """A PCIe link of few lanes, by what the machine is wired with: DCGM wants x16 of every board that it lists so."""
    wired = expected.profile.links.pcie_width if expected.profile else None
    found = min(int(match[1]) for text in said if (match := _NARROW.search(text)))
    if wired is None and found < _LANES_MIN:
        expect = f"x{_LANES_MIN} or more"
        return _reboot(check, gpu, f"{message}; no machine is wired so", f"x{found}", expect)
    if wired is None:
        remedy = "Judge it with --profile TYPE: some machines give a GPU 8 lanes or 4 by design."
        message += "; a fault only where the machine is wired with more"
        return check.finding(Verdict.WARN, _who(gpu), message, measured=f"x{found}", remedy=remedy)
    if found >= wired.value:
        message += f"; but this machine is wired with x{wired.value} by design"
        return check.finding(Verdict.NOT_APPLICABLE, _who(gpu), message, measured=f"x{found}")
    return _reboot(check, gpu, message, f"x{found}", f"x{wired.value}")


def _reboot(check: Check, gpu: int, message: str, measured: str, expected: str) -> Finding:
    fault, remedy = FaultClass.REBOOT_ONCE, "Reboot once; if it repeats, replace the host."
    return check.finding(
        Verdict.FAIL,
        _who(gpu),
        message,
        measured=measured,
        expected=expected,
        remedy=remedy,
        fault_class=fault,
    )


def _only_down(said: str) -> bool:
    return re.search(r"NvLink link \d+ is (?:currently )?down", said) is not None and not _OTHER_FAULT.search(said)


def _only_imex(said: str) -> bool:
    return "IMEX" in said and not re.search(r"\bNvLink link\b|\bdown\b|\bCRC\b|replay|recovery", said, re.I)
