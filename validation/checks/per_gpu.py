"""A check that looks at one GPU after the other: one finding per bad GPU, or one good finding for all of them."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from profiles.models import Expectation
from validation.checks.base import ADD_THE_VALUE, NOTHING_TO_MEND, Check
from validation.facts.gpu import Gpu, GpuInventory
from validation.facts.store import Facts
from validation.verdict import Finding, Verdict

# Boards for desks, by the words of their names, and virtual GPUs (GRID T4-4C, NVIDIA L40S-8Q), whose ECC is the host's.
# NVIDIA's RTX PRO Server Edition is a board for servers, with ECC on. GB10 and the GPUs of Tegra share the CPU's memory
# and print N/A (nvidia-smi of drivers 540 and 580 on DGX Spark and Jetson, 2026-08).
_DESK = re.compile(
    r"\b(?:GeForce|TITAN|Quadro|RTX)\b(?!.*Server)|\bGRID\b|-\d+(?:-\d+)?[ABCQ]\b|\b(?:GB10|Orin|Thor|Xavier)\b",
    re.IGNORECASE,
)


def sold_without_ecc(gpu: Gpu) -> str:
    """The name of a board that has no ECC, or comes with it off; empty for any other. Only where no profile tells."""
    said = [word for word in (gpu.name, gpu.brand) if isinstance(word, str)]
    return said[0] if said and _DESK.search(" ".join(said)) else ""


def _told_of_the_host(findings: list[Finding], gpus: int) -> list[Finding]:
    """What the profile does not know and every GPU shows alike is one finding about the host, not one a GPU."""
    alike = {finding.message for finding in findings if finding.remedy in (NOTHING_TO_MEND, ADD_THE_VALUE)}
    whole = len(findings) == gpus > 1 and len(alike) == 1 and all(finding.message in alike for finding in findings)
    return [replace(findings[0], subject="host")] if whole else findings


class PerGpuCheck(Check):
    """``look`` judges one GPU; ``good`` is the text of the single PASS where every GPU is good."""

    requires = (GpuInventory,)

    def not_applicable(self, expected: Expectation) -> str:  # noqa: ARG002 - overridden where it depends on it
        """Why this machine has no such thing by design; empty where it has."""
        return ""

    @abc.abstractmethod
    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        """None where the GPU is good; a NOT_APPLICABLE finding where this GPU has no such thing."""

    @abc.abstractmethod
    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:
        """What was seen on all GPUs, for the PASS."""

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        reason = self.not_applicable(expected)
        if reason:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", reason)
            return
        inventory = facts.need(GpuInventory)
        if not inventory.gpus:
            yield self.finding(Verdict.UNKNOWN, "host", "no GPU answered, so none was looked at")
            return
        yield from self._judged(inventory.gpus, expected)

    def _judged(self, gpus: tuple[Gpu, ...], expected: Expectation) -> Iterator[Finding]:
        looks = [(gpu, self.look(gpu, expected)) for gpu in gpus]
        good = [gpu for gpu, look in looks if look is None]
        found = [self._odd(gpu, look, good) for gpu, look in looks if look is not None]
        trouble = [finding for finding in found if finding.verdict is not Verdict.NOT_APPLICABLE]
        yield from _told_of_the_host(trouble, len(gpus))
        if not trouble and len(found) == len(gpus):
            yield self.finding(Verdict.NOT_APPLICABLE, "host", found[0].message)
        elif not trouble:
            yield self.finding(Verdict.PASS, "host", self.good(gpus, expected))

    def _odd(self, gpu: Gpu, look: Finding, good: list[Gpu]) -> Finding:
        """What does not apply to one board, but was good on another of the same name, was not looked at: UNKNOWN."""
        if look.verdict is not Verdict.NOT_APPLICABLE or all(other.name != gpu.name for other in good):
            return look
        return self.finding(Verdict.UNKNOWN, gpu.label, f"{look.message}, but others of its kind do tell")
