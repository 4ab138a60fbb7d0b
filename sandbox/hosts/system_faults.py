"""Faults of the host around the GPUs. They are listed with the others in faults.py."""

from __future__ import annotations

from collections.abc import Callable

from profiles.errors import ConfigError
from sandbox.hosts.state import Host
from validation.verdict import FaultClass, Verdict

UNCORRECTED = 2


def _dead_switch(host: Host) -> None:
    """One NVSwitch reads all ones on the bus, and nothing else says so."""
    if not host.machine.switches:
        raise ConfigError(
            f"fault 'dead-switch' does not fit host {host.identity.name} ({host.identity.instance_type}): "
            "it has no NVSwitch",
            remedy="choose another fault: kiln sandbox fault --list",
        )
    host.dead_switch = True


def _memory_missing(host: Host) -> None:
    """Half of the host's memory did not come up."""
    host.memory_share = 0.5


def _dimm_errors(host: Host) -> None:
    """A memory controller, which a guest does not show, has counted errors that it could not correct."""
    host.dimm_errors = (0, UNCORRECTED)


def _disk_full(host: Host) -> None:
    """Nothing is free on the root file system."""
    host.disk_full = True


def _clock_free(host: Host) -> None:
    """No time source holds the clock."""
    host.clock_held = False


# Name, what it does, the check that speaks, and its verdict and fault class.
ROWS: tuple[tuple[str, Callable[[Host], None], str, Verdict, FaultClass | None], ...] = (
    ("dead-switch", _dead_switch, "pcie.dead", Verdict.FAIL, FaultClass.REPLACE_NOW),
    ("memory-missing", _memory_missing, "host.memory", Verdict.FAIL, FaultClass.REBOOT_ONCE),
    ("dimm-errors", _dimm_errors, "memory.dimm", Verdict.FAIL, FaultClass.REPLACE_NOW),
    ("disk-full", _disk_full, "disk.space", Verdict.FAIL, FaultClass.CONFIGURATION),
    ("clock-free", _clock_free, "host.clock", Verdict.WARN, None),
)
