"""What the GPUs remember: memory errors, repairs, the driver's own verdict, and what holds the clocks down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from profiles.models import Expectation
from validation.checks.per_gpu import PerGpuCheck, sold_without_ecc
from validation.checks.wording import at_least, counted, is_version, listed, not_there
from validation.facts.gpu import Gpu, GpuInventory, RemappedRows, RetiredPages, known
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

RETIRED_PAGES_MAX = 62  # azurehpc-health-checks 0e0a1ac: a V100 with this many retired pages is returned
_REMAPPED_ROWS_MAX = 512  # azurehpc-health-checks 0e0a1ac
_RECOVERY_ACTION_SINCE = "565.57"  # nvidia-smi --help-query-gpu; driver 550 refuses the field as an invalid argument


class EccUncorrected(PerGpuCheck):
    """No GPU has had an uncorrectable memory error since the driver was loaded."""

    id = "ecc.uncorrected"
    title = "Uncorrectable ECC errors"
    why = "An uncorrectable error kills the process that meets it; on a fresh host it will come again."
    source = "NVIDIA GPU memory error management; azurehpc-health-checks 0e0a1ac; R570 SRAM threshold flag"
    remedy = "Reboot once, so that the row is remapped; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        ecc = gpu.ecc
        if ecc.sram_threshold_exceeded is True:
            return self.finding(
                Verdict.FAIL,
                gpu.label,
                "the driver says that the SRAM error threshold is exceeded",
                measured="threshold exceeded",
                expected="not exceeded",
                fault_class=FaultClass.REPLACE_NOW,
                remedy="Replace the host.",
            )
        alone = expected.profile is None and ecc.volatile_uncorrected == ABSENT  # one text, not a host's whole evidence
        if alone and not isinstance(ecc.aggregate_uncorrected, Missing):
            return self._lifetime_alone(gpu, ecc.aggregate_uncorrected)
        if isinstance(ecc.volatile_uncorrected, Missing):
            return self._uncounted(gpu, ecc.volatile_uncorrected, expected)
        if ecc.volatile_uncorrected > 0:
            count = ecc.volatile_uncorrected
            message = f"{counted(count, 'uncorrectable ECC error')} since the driver was loaded"
            return self.finding(Verdict.FAIL, gpu.label, message, measured=str(count), expected="0")
        lifetime = ecc.aggregate_uncorrected
        if not isinstance(lifetime, Missing) and lifetime > 0:
            message = f"{counted(lifetime, 'uncorrectable ECC error')} over the board's life, none since driver load"
            remedy = "Nothing now: repaired errors are kept for good. Watch this GPU."
            return self.finding(Verdict.WARN, gpu.label, message, measured=str(lifetime), expected="0", remedy=remedy)
        return None

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"no uncorrectable ECC error on {counted(len(gpus), 'GPU')}"

    def _lifetime_alone(self, gpu: Gpu, count: int) -> Finding | None:
        """Where only the board's whole life is told: none in it is none since the driver was loaded."""
        if not count:
            return None
        message = f"{counted(count, 'uncorrectable ECC error')} over the board's life; of how late is not told here"
        remedy = "Read the volatile counts too (nvidia-smi -q -d ECC)."
        return self.finding(Verdict.UNKNOWN, gpu.label, message, measured=str(count), expected="0", remedy=remedy)

    def _uncounted(self, gpu: Gpu, value: Missing, expected: Expectation) -> Finding:
        wanted = expected.profile.gpu.ecc if expected.profile else None
        if wanted is not None and wanted.value is False and not_there(value):
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "this board has no ECC")
        board = "" if expected.profile else sold_without_ecc(gpu)
        if board and not_there(value):
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, f"{board}: a board that counts no ECC errors")
        if gpu.ecc.enabled is False and expected.ecc is False:
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "ECC is off, as the stack asked: nothing is counted")
        if gpu.ecc.enabled is False:
            message = "ECC is off, so errors are not counted"
            remedy = "Turn ECC on (nvidia-smi -e 1), reboot, and validate again."
            return self.finding(
                Verdict.UNKNOWN, gpu.label, message, measured="ECC off", expected="ECC on", remedy=remedy
            )
        return self.missing(gpu.label, "uncorrectable ECC errors", value, expected="0")


class RowRemap(PerGpuCheck):
    """No memory repair is pending or has failed: remapped rows from Ampere on, retired pages before."""

    id = "memory.row_remap"
    title = "Memory repair"
    why = "A pending repair needs a reset before the memory is good again; a failed one means that the board is to go."
    source = "NVIDIA GPU memory error management; captures of an A100 with a pending remap and of V100 pages"
    remedy = "Reboot once, so that the repair is made, and validate again."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        repair = expected.profile.gpu.memory_repair.value if expected.profile else _repair_of(gpu)
        if gpu.remapped_rows.failure is True or gpu.remapped_rows.pending is True:
            return self._rows(gpu, gpu.remapped_rows)  # seen, whatever the board is said to do
        if gpu.retired_pages.pending is True:
            return self._pages(gpu, gpu.retired_pages)
        if repair == "none":
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "this board repairs no memory by itself")
        if repair == "retired-pages":
            return self._pages(gpu, gpu.retired_pages)
        return self._rows(gpu, gpu.remapped_rows)

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"no repair pending or failed on {counted(len(gpus), 'GPU')}"

    def _rows(self, gpu: Gpu, rows: RemappedRows) -> Finding | None:
        if rows.failure is True:
            return self._failed(gpu, "a row remap failed", "remap failure")
        if rows.pending is True:
            return self._pending(gpu, "a row remap is pending", rows.correctable, rows.uncorrectable)
        for what, value in (("failed row remap", rows.failure), ("pending row remap", rows.pending)):
            if isinstance(value, Missing):
                if gpu.mig_enabled is True and value.reason is Reason.NOT_APPLICABLE:
                    return self._hidden_by_mig(gpu)
                return self.missing(gpu.label, what, value, expected="No")
        total = (known(rows.correctable) or 0) + (known(rows.uncorrectable) or 0)
        if total > _REMAPPED_ROWS_MAX:
            return self._failed(gpu, f"{total} rows are remapped, more than {_REMAPPED_ROWS_MAX}", f"{total} rows")
        return None

    def _pages(self, gpu: Gpu, pages: RetiredPages) -> Finding | None:
        counts = [value for value in (pages.single_bit, pages.double_bit) if not isinstance(value, Missing)]
        if sum(counts) >= RETIRED_PAGES_MAX:
            message = f"{sum(counts)} pages are retired, {RETIRED_PAGES_MAX} or more"
            return self._failed(gpu, message, f"{sum(counts)} pages")
        if pages.pending is True:
            return self._pending(gpu, "a page retirement is pending", pages.single_bit, pages.double_bit)
        for what, value in (
            ("pending page retirement", pages.pending),
            ("retired pages (single bit)", pages.single_bit),
            ("retired pages (double bit)", pages.double_bit),
        ):
            if isinstance(value, Missing):
                return self.missing(gpu.label, what, value)
        return None

    def _failed(self, gpu: Gpu, message: str, measured: str) -> Finding:
        return self.finding(
            Verdict.FAIL,
            gpu.label,
            message,
            measured=measured,
            expected="no failed repair",
            fault_class=FaultClass.REPLACE_NOW,
            remedy="Replace the host: the board cannot repair its memory any more.",
        )

    def _pending(self, gpu: Gpu, message: str, one: int | Missing, two: int | Missing) -> Finding:
        counts = f"{known(one)} correctable, {known(two)} uncorrectable"
        return self.finding(
            Verdict.FAIL, gpu.label, f"{message} ({counts})", measured="pending", expected="no pending repair"
        )

    def _hidden_by_mig(self, gpu: Gpu) -> Finding:
        message = "row remapping cannot be read while MIG is on"
        remedy = "Turn MIG off to read it, before the GPU is sliced."
        return self.finding(Verdict.WARN, gpu.label, message, measured="N/A (MIG)", expected="No", remedy=remedy)


def _repair_of(gpu: Gpu) -> str:
    """Without a profile: the way whose fields the driver fills. Volta and Turing print N/A for remapped rows."""
    rows = gpu.remapped_rows
    if sold_without_ecc(gpu) and all(map(not_there, (rows.pending, rows.failure, gpu.retired_pages.pending))):
        return "none"
    return "retired-pages" if not_there(rows.pending) and not not_there(gpu.retired_pages.pending) else "remapped-rows"


class RecoveryAction(PerGpuCheck):
    """The driver asks for no recovery action."""

    id = "gpu.recovery_action"
    title = "The driver's own verdict"
    why = "The driver knows when a GPU must be reset; the field is in every query and hardly anyone reads it."
    source = "gpu_recovery_action since driver 565.57; Xid 154 does not report the state found at driver load"
    remedy = "Do what the driver asks for: reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    safety = True
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        inventory = facts.need(GpuInventory)
        driver, actions = inventory.driver_version, [gpu.recovery_action for gpu in inventory.gpus]
        untold = all(isinstance(action, Missing) and action.reason is not Reason.FAULT for action in actions)
        if actions and untold and isinstance(driver, str) and _before(driver, _RECOVERY_ACTION_SINCE):
            message = f"driver {driver} does not report it (new in {_RECOVERY_ACTION_SINCE})"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
            return
        yield from super().evaluate(facts, expected)

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        action = gpu.recovery_action
        if not isinstance(action, Missing):
            if action.lower() == "none":
                return None
            message = f"the driver asks for: {action}"
            return self.finding(Verdict.FAIL, gpu.label, message, measured=action, expected="None")
        if action.reason is Reason.NOT_APPLICABLE:
            message = f"the driver reports no recovery action ({action.text or 'N/A'}): not asked for is not known"
            remedy = "Update the driver, or validate with the burn-in, which shows what this field would."
            return self.finding(
                Verdict.WARN, gpu.label, message, measured=action.text or "N/A", expected="None", remedy=remedy
            )
        return self.missing(gpu.label, "recovery action", action, expected="None")

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"the driver asks for no recovery of {counted(len(gpus), 'GPU')}"


def _before(driver: str, since: str) -> bool:
    return is_version(driver) and not at_least(driver, since)


# What each reason says. Idle, a set clock, a power cap under load and boost groups are no faults.
_HARMLESS_REASONS = {
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "sync_boost",
    "display_clocks_setting",
    "display_clock_setting",
    "none",
}
_FAULTY_REASONS = {
    "hw_slowdown": "the hardware halved the clocks (heat or power)",
    "hw_thermal_slowdown": "the hardware slowed it for heat",
    "hw_power_brake": "an external power brake slows the GPU",
    "hw_power_brake_slowdown": "an external power brake slows the GPU",
    "sw_thermal_slowdown": "the driver slowed it for heat",
}


class Throttle(PerGpuCheck):
    """Nothing but idling, a set clock or a power cap holds the clocks down."""

    id = "gpu.throttle"
    title = "Throttle reasons"
    why = "A GPU slowed by heat or a power brake passes every test that has no clock, and slows the whole job."
    source = "NVML clocks event reasons; aws-k8s-tester accepts idle and power cap only"
    remedy = "Replace the host: cooling and power are the provider's. On your own machine, look at both first."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        reasons = gpu.throttle_reasons
        if isinstance(reasons, Missing):
            return self.missing(gpu.label, "throttle reasons", reasons)
        faults = sorted(reasons & set(_FAULTY_REASONS))
        if faults:
            temperature = _degrees(gpu)
            message = f"{listed(_FAULTY_REASONS[name] for name in faults)}{temperature}"
            return self.finding(Verdict.FAIL, gpu.label, message, measured=listed(faults), expected="no slowdown")
        strange = sorted(reasons - _HARMLESS_REASONS)
        if strange:
            message = f"throttle reason not known here: {listed(strange)}"
            remedy = "Look the reason up in the driver's documentation, and report it."
            return self.finding(Verdict.WARN, gpu.label, message, measured=listed(strange), remedy=remedy)
        return None

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        seen = sorted(set().union(*_reasons(gpus)))
        return f"no slowdown on {counted(len(gpus), 'GPU')} ({listed(seen) or 'no reason active'})"


def _reasons(gpus: tuple[Gpu, ...]) -> Iterator[frozenset[str]]:
    return (gpu.throttle_reasons for gpu in gpus if not isinstance(gpu.throttle_reasons, Missing))


def _degrees(gpu: Gpu) -> str:
    return "" if isinstance(gpu.temperature_c, Missing) else f", at {gpu.temperature_c:.0f} degrees C"
