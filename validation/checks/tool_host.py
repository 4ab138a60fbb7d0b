"""What the results of tools that test the host around the GPUs mean, taken alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.container_gpus import ContainerGpus
from validation.facts.fio import FioJob, FioResult
from validation.facts.store import Facts
from validation.facts.stress_ng import StressNg
from validation.verdict import FaultClass, Finding, Verdict

# Linux error codes that a disk, its controller or a verified block makes; every other one is of the machine's state or
# of the order given (no space, no such file, not permitted): EIO ENXIO EBADE ENODATA ETIME EILSEQ ESHUTDOWN ETIMEDOUT
# EUCLEAN EREMOTEIO EBADMSG.
_OF_THE_DISK = frozenset((5, 6, 52, 61, 62, 74, 84, 108, 110, 117, 121))
# What a stressor says where memory or arithmetic gave another value than it must.
_WRONG_DATA = re.compile(
    r"bit error|memory error|corrupt|checksum|verif|mismatch|incorrect|wrong|differ|not match|unexpected (?:data|val)",
    re.I,
)
_EARLY = 0.9  # of the time asked for: stress-ng itself stops within a second


class FioRun(Check):
    """Every job of fio ended without an error and moved data."""

    id = "tool.fio"
    title = "fio result"
    why = "A job that stopped with an error has moved nothing, and its average of zero looks like a slow disk."
    source = "fio JSON output, fields error, bw_bytes and iops; runs of fio 3.25 to 3.41 on failing and full disks"
    remedy = "Look at the kernel log for the disk, and run again; if it repeats, replace the host or the volume."
    fault_class = FaultClass.REPLACE_NOW
    requires = (FioResult,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        result = facts.need(FioResult)
        if result.kernel:  # a write that is lost after fio handed it over is no error of fio's
            message = f"the kernel's log among its lines says: {listed(result.kernel, limit=3)}"
            yield self.finding(Verdict.FAIL, "host", message, expected="no error of the disk")
        for job in result.jobs:
            moved = job.read_bytes_s or job.write_bytes_s or job.trim_bytes_s
            if job.error:
                yield self._error(job)
            elif result.interrupted:
                remedy = "Let it run to its end."
                yield self.finding(Verdict.UNKNOWN, job.name, "a signal ended the run before its end", remedy=remedy)
            elif not moved:
                yield self.finding(Verdict.UNKNOWN, job.name, "measured nothing: no byte was read or written")
            else:
                rates = f"read {job.read_bytes_s / 1e6:.0f} MB/s, write {job.write_bytes_s / 1e6:.0f} MB/s"
                rates += f", trim {job.trim_bytes_s / 1e6:.0f} MB/s" if job.trim_bytes_s else ""
                message = f"{rates}; without a floor no figure is good or bad"
                yield self.finding(Verdict.NOT_APPLICABLE, job.name, message)

    def _error(self, job: FioJob) -> Finding:
        message = f"ended with error {job.error}{f': {job.why}' if job.why else ''}"
        if job.error in _OF_THE_DISK:
            return self.finding(Verdict.FAIL, job.name, message, expected="error 0")
        remedy = "Mend what the error names (space, path, permission, option), and run again."
        return self.finding(Verdict.UNKNOWN, job.name, message, expected="error 0", remedy=remedy)


class StressRun(Check):
    """stress-ng came to its end, and no stressor failed, was skipped or did nothing."""

    id = "tool.stress_ng"
    title = "stress-ng result"
    why = "A stressor that was skipped has stressed nothing, and the run still calls itself successful."
    source = "stress-ng summary lines passed, failed and skipped; runs of stress-ng 0.12 to 0.22"
    remedy = "Run again; if it repeats, replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (StressNg,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        run = facts.need(StressNg)
        nothing, remedy = _not_stressed(run)
        said = listed(run.failures or run.errors, limit=3)
        if run.failed or not run.succeeded:
            message = f"the run was not successful, {run.failed} failed{f': {said}' if said else ''}"
            yield self.finding(Verdict.FAIL, "host", message)
        elif run.failures:
            # A stressor of the kernel's interfaces calls another kernel's ways a failure, and the run goes on.
            grave = any(_WRONG_DATA.search(failure) for failure in run.failures)
            message = f"the run calls itself successful, and found: {said}"
            yield self.finding(Verdict.FAIL if grave else Verdict.UNKNOWN, "host", message)
        elif nothing:
            yield self.finding(Verdict.UNKNOWN, "host", nothing, remedy=remedy)
        elif run.errors:
            message = f"the run was successful, and said: {listed(run.errors, limit=2)}"
            yield self.finding(Verdict.WARN, "host", message, remedy="Mend what it names, and run again.")
        elif run.untrusted:
            message = f"the run was successful, and {counted(run.untrusted, 'metric')} of it cannot be trusted"
            yield self.finding(Verdict.WARN, "host", message, remedy="Run again, longer.")
        else:
            done = f"{counted(run.passed, 'stressor')} passed" if run.passed else "the run was successful"
            yield self.finding(Verdict.PASS, "host", f"{done} in {run.took_s:g} s")


def _not_stressed(run: StressNg) -> tuple[str, str]:
    """Why a run that calls itself successful has not shown anything, and what to do; empty where it has."""
    skipped = f"{counted(run.skipped, 'stressor')} skipped" if run.skipped else listed(run.skips, limit=2)
    if skipped:
        return f"{skipped}, so nothing was looked at there", "Name the stressors that this host can run."
    if run.took_s < run.asked_s * _EARLY:
        return f"ended after {run.took_s:g} s of {run.asked_s:g} s that were asked for", "Let it run to its end."
    if (run.counted and not run.passed) or not run.took_s:
        what = "took no time" if not run.took_s else "no stressor passed"
        return f"{what}: nothing was stressed", "Name the stressors, and run without --dry-run."
    if not run.dispatched and not run.counted:
        return "neither what was to run nor what passed is shown", "Show the run's lines from its first on."
    return "", ""


class ContainersSeeGpus(Check):
    """The container toolkit has devices to give."""

    id = "tool.container_gpus"
    title = "GPUs for containers"
    why = "Without a CDI specification a container starts and sees no GPU."
    source = "NVIDIA container toolkit, nvidia-ctk cdi list"
    remedy = "Generate the specification: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml."
    fault_class = FaultClass.SOFTWARE
    requires = (ContainerGpus,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        found = facts.need(ContainerGpus)
        wanted = expected.profile.gpu.count.value if expected.profile else 0
        for broken in found.broken:
            yield self.finding(Verdict.FAIL, "host", f"a CDI specification cannot be read: {broken}")
        if not found.gpus:
            message = "no CDI device of NVIDIA's: who asks by CDI gets no GPU; NVIDIA's own runtime does without"
            yield self.finding(Verdict.WARN, "host", message)
        elif wanted and found.indices and len(found.indices) != wanted:
            message = f"{counted(len(found.indices), 'GPU')} of {wanted} are there for containers"
            yield self.finding(Verdict.FAIL, "host", message, expected=counted(wanted, "GPU"))
        else:
            driver = f", with the libraries of driver {found.driver}" if found.driver else ""
            yield self.finding(Verdict.PASS, "host", f"containers can be given {listed(found.gpus, limit=3)}{driver}")
