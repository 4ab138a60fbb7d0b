"""What the results of tools that test the host around the GPUs mean, taken alone."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.container_gpus import ContainerGpus
from validation.facts.fio import FioResult
from validation.facts.store import Facts
from validation.facts.stress_ng import StressNg
from validation.verdict import FaultClass, Finding, Verdict


class FioRun(Check):
    """Every job of fio ended without an error and moved data."""

    id = "tool.fio"
    title = "fio result"
    why = "A job that stopped with an error has moved nothing, and its average of zero looks like a slow disk."
    source = "fio JSON output, fields error, bw_bytes and iops"
    remedy = "Look at the kernel log for the disk, and run again; if it repeats, replace the host or the volume."
    fault_class = FaultClass.REPLACE_NOW
    requires = (FioResult,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        jobs = facts.need(FioResult).jobs
        for job in jobs:
            if job.error:
                yield self.finding(Verdict.FAIL, job.name, f"ended with error {job.error}", expected="error 0")
            elif not job.read_bytes_s and not job.write_bytes_s:
                yield self.finding(Verdict.UNKNOWN, job.name, "measured nothing: no byte was read or written")
            else:
                rates = f"read {job.read_bytes_s / 1e6:.0f} MB/s, write {job.write_bytes_s / 1e6:.0f} MB/s"
                message = f"{rates}; without a floor no figure is good or bad"
                yield self.finding(Verdict.NOT_APPLICABLE, job.name, message)


class StressRun(Check):
    """stress-ng came to its end, and no stressor failed or was skipped."""

    id = "tool.stress_ng"
    title = "stress-ng result"
    why = "A stressor that was skipped has stressed nothing, and the run still calls itself successful."
    source = "stress-ng summary lines passed, failed and skipped"
    remedy = "Run again; if it repeats, replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (StressNg,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        run = facts.need(StressNg)
        if run.failed or run.failures or not run.succeeded:
            said = f": {listed(run.failures, limit=3)}" if run.failures else ""
            yield self.finding(Verdict.FAIL, "host", f"the run was not successful, {run.failed} failed{said}")
        elif run.skipped:
            message = f"{counted(run.skipped, 'stressor')} skipped, so nothing was looked at there"
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy="Name the stressors that this host can run.")
        else:
            done = f"{counted(run.passed, 'stressor')} passed" if run.passed else "the run was successful"
            yield self.finding(Verdict.PASS, "host", done)


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
