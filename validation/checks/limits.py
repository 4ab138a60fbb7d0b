"""What bounds a GPU: its power limit, its highest clock, its temperature."""

from __future__ import annotations

from profiles.models import Expectation
from validation.checks.base import THE_STACK
from validation.checks.per_gpu import PerGpuCheck
from validation.checks.wording import counted, not_there
from validation.facts.gpu import Gpu
from validation.facts.missing import Missing
from validation.verdict import FaultClass, Finding, Verdict

_POWER_SHARE = 0.95  # of the board's default limit; below it somebody has capped the board
_WATT = 1.0  # drivers round the limit that was set


class PowerLimit(PerGpuCheck):
    """The power limit is the board's own."""

    id = "gpu.power_limit"
    title = "Power limit"
    why = "A limit that somebody lowered slows the GPU under load, and shows nowhere else."
    source = "captures and data sheets per board in profiles/boards"
    remedy = "Set the default limit again (nvidia-smi -pl), or find out who lowered it."
    fault_class = FaultClass.CONFIGURATION

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        board = expected.profile.gpu.power_limit_w if expected.profile else None
        default = board.value if board else gpu.power_limit_default_w
        limit = gpu.power_limit_w
        if isinstance(limit, Missing):
            return self.missing(gpu.label, "power limit", limit)
        if expected.power_limit_w is not None:
            return self._as_declared(gpu, limit, expected.power_limit_w)
        if isinstance(default, Missing):
            return self.unspecified(gpu.label, "power limit", expected)
        if limit >= _POWER_SHARE * default:
            return None
        # A warning: machines are sold with lower limits too, and what it costs the burn-in measures.
        return self.finding(
            Verdict.WARN,
            gpu.label,
            f"power limit is {limit:.0f} W",
            measured=f"{limit:.0f} W",
            expected=f"{default:.0f} W",
            source=expected.source_of(board.source) if board else "the driver's default",
        )

    def _as_declared(self, gpu: Gpu, limit: float, declared: float) -> Finding | None:
        if abs(limit - declared) <= _WATT:
            return None
        found, wanted = f"{limit:.0f} W", f"{declared:.0f} W"
        message = f"power limit is {found}, {wanted} was asked for"
        return self.finding(Verdict.FAIL, gpu.label, message, measured=found, expected=wanted, source=THE_STACK)

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"{gpus[0].power_limit_w:.0f} W on each of {counted(len(gpus), 'GPU')}"


class MaxClock(PerGpuCheck):
    """The highest clock of the multiprocessors is the board's."""

    id = "gpu.max_clock"
    title = "Highest clock"
    why = "A board whose firmware allows less is another variant, or in a lower mode: every program is slower on it."
    source = "captures per board in profiles/boards; locking the clocks (nvidia-smi -lgc) does not change it"
    remedy = "Compare the VBIOS with the others of its kind; if it differs, have the host replaced."
    fault_class = FaultClass.OPERATOR

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:
        wanted = expected.profile.gpu.sm_clock_max_mhz if expected.profile else None
        found = gpu.sm_clock_max_mhz
        if wanted is None:
            return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "no source tells this board's highest clock")
        if isinstance(found, Missing):
            if not_there(found):
                return self.finding(Verdict.NOT_APPLICABLE, gpu.label, "the driver does not tell the highest clock")
            return self.missing(gpu.label, "highest clock", found, expected=f"{wanted.value:.0f} MHz")
        if found >= wanted.value:
            return None
        # A warning: boards are sold in several modes, and what it costs the burn-in measures.
        return self.finding(
            Verdict.WARN,
            gpu.label,
            f"its highest clock is {found:.0f} MHz",
            measured=f"{found:.0f} MHz",
            expected=f"{wanted.value:.0f} MHz",
            source=expected.source_of(wanted.source),
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        return f"{gpus[0].sm_clock_max_mhz:.0f} MHz on each of {counted(len(gpus), 'GPU')}"


class Temperature(PerGpuCheck):
    """No GPU is at the temperature at which it slows down."""

    id = "gpu.temperature"
    title = "Temperature"
    why = "A GPU that is hot while idle has no cooling left for the job."
    source = "slowdown thresholds and T.Limit margins of captures; degrees are not printed from Hopper on"
    remedy = "Replace the host; on your own machine, look at its cooling."
    fault_class = FaultClass.REPLACE_NOW
    safety = True
    needs_profile = False

    def look(self, gpu: Gpu, expected: Expectation) -> Finding | None:  # noqa: ARG002 - part of the shape
        degrees, margin, limit = gpu.temperature_c, gpu.tlimit_margin_c, gpu.slowdown_c
        if isinstance(degrees, Missing):
            return self.missing(gpu.label, "temperature", degrees)
        if not isinstance(margin, Missing):
            if margin > 0:
                return None
            message = f"{degrees:.0f} degrees C, {margin:.0f} left to the slowdown"
            return self.finding(Verdict.FAIL, gpu.label, message, measured=f"margin {margin:.0f}", expected="above 0")
        if isinstance(limit, Missing):
            message = f"{degrees:.0f} degrees C; the driver prints neither a limit nor a margin"
            return self.finding(Verdict.WARN, gpu.label, message, measured=f"{degrees:.0f} degrees C")
        if degrees < limit:
            return None
        message = f"{degrees:.0f} degrees C, slowdown begins at {limit:.0f}"
        return self.finding(
            Verdict.FAIL, gpu.label, message, measured=f"{degrees:.0f} degrees C", expected=f"below {limit:.0f}"
        )

    def good(self, gpus: tuple[Gpu, ...], expected: Expectation) -> str:  # noqa: ARG002 - the others need it
        heat = [gpu.temperature_c for gpu in gpus if not isinstance(gpu.temperature_c, Missing)]
        return f"at most {max(heat):.0f} degrees C on {counted(len(gpus), 'GPU')}"
