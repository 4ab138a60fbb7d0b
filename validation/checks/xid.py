"""NVIDIA's error numbers: what each Xid and SXid means for a host that nobody has used yet.

The tables ``xid.csv`` and ``sxid.csv`` carry number, name, effect on the gate, kind of action and source. A number that
is not in them warns: it is never passed silently.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from validation.verdict import FaultClass, Verdict

_FOLDER = Path(__file__).resolve().parent
_EFFECTS = {"fail": Verdict.FAIL, "warn": Verdict.WARN, "info": Verdict.PASS}
_RETRIES = {
    "reboot-once": FaultClass.REBOOT_ONCE,
    "replace-now": FaultClass.REPLACE_NOW,
    "software": FaultClass.SOFTWARE,
    "ignore": None,
}


@dataclass(frozen=True)
class ErrorCode:
    """One row. ``effect`` is FAIL, WARN, or PASS for a number that is only information."""

    code: int
    name: str
    effect: Verdict
    fault_class: FaultClass | None
    severity: str  # SXid only: nonfatal, fatal (to the port), always-fatal (to the fabric), other
    meaning: str
    source: str


@functools.cache
def xids() -> Mapping[int, ErrorCode]:
    """The Xids by number."""
    return _read("xid.csv")


@functools.cache
def sxids() -> Mapping[int, ErrorCode]:
    """The SXids, errors of the NVSwitch, by number."""
    return _read("sxid.csv")


def _read(name: str) -> dict[int, ErrorCode]:
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        rows = [
            ErrorCode(
                code=int(row["code"]),
                name=row["name"],
                effect=_EFFECTS[row["effect"]],
                fault_class=_RETRIES[row["retry"]],
                severity=row["severity"],
                meaning=row["meaning"],
                source=row["source"],
            )
            for row in csv.DictReader(file)
        ]
    codes = {row.code: row for row in rows}
    if len(codes) != len(rows):
        raise ValueError(f"{name}: a number is there twice")
    return codes
