"""The sub-codes of Xid 144 to 150, the errors of NVLink 5: which unit, and how grave, by the words in the line.

A line ends with register words: ``intrinfo``, ``errorstatus`` and more. Most units tell their error by the bits of
``errorstatus``; NETIR (149) by a number in bits 20 to 25 of ``intrinfo``. The table is ``nvlink5.csv``.

Source: NVIDIA Xid catalog (2025-10 copy in leptonai/gpud 4a8de33a); oracle-quickstart/oci-hpc b5285a68
xid_catalog_data.json; that sub-code 4 is the cartridge and 10 the PHY: leptonai/gpud 4a8de33a xid.go.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from validation.facts.host import KernelEvent
from validation.verdict import FaultClass

CODES = range(144, 151)
_TABLE = Path(__file__).resolve().parent / "nvlink5.csv"
_ANY = "*"
_BITS = 32
_REMEDIES = {
    "reset": "",
    "follow-154": "Do what Xid 154 asks for; without one, nothing.",
    "ignore": "",
    "support": "Nothing to do on the host; tell NVIDIA's support if it repeats.",
    "cable": "Look at the cable and the signal of this link; replace the host if it repeats.",
    "inspect": "Reboot once; if it repeats, replace the host: the link's hardware is to be looked at.",
    "software": "Find out what took the link down by command; reboot once.",
    "host": "Reboot once; if it repeats, replace the host.",
}


@dataclass(frozen=True)
class SubCode:
    """What one error is. ``fatal`` is None where the table does not know it; ``remedy`` is empty for the usual one."""

    text: str
    fatal: bool | None
    remedy: str = ""
    fault_class: FaultClass | None = None


@dataclass(frozen=True)
class _Row:
    code: int
    unit: str
    by: str
    values: frozenset[int] | None  # None: every value
    fatal: bool
    action: str
    meaning: str


@functools.cache
def _rows() -> tuple[_Row, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            _Row(
                int(row["code"]),
                row["unit"],
                row["by"],
                None if row["values"] == _ANY else frozenset(int(value, 0) for value in row["values"].split()),
                row["fatal"] == "yes",
                row["action"],
                row["meaning"],
            )
            for row in csv.DictReader(file)
        )


def decode(event: KernelEvent) -> tuple[SubCode, ...]:
    """The errors that the line's registers tell of, the fatal ones first; none where the line has no registers.

    An error that the table does not have is told by its number, with ``fatal`` None: the line's own word decides.
    """
    if event.code not in CODES or len(event.registers) < 2:
        return ()
    unit = (event.detail or "").split(" ", 1)[0].upper()
    rows = [row for row in _rows() if row.code == event.code and unit.startswith(row.unit)]
    return tuple(sorted(_read(rows, event.registers), key=lambda found: found.fatal is not True))


def _read(rows: Sequence[_Row], registers: Sequence[int]) -> Iterator[SubCode]:
    information, status = registers[0], registers[1]
    by = next((row.by for row in rows), "status")
    if by == "status":
        bits = [1 << bit for bit in range(_BITS) if status >> bit & 1]
        yield from (_found(rows, "errorstatus", bit, f"0x{bit:02x}") for bit in bits)
    else:
        number = status if by == "value" else information >> 20 & 0x3F
        yield _found(rows, "errorstatus" if by == "value" else "sub-code", number, str(number))


def _found(rows: Sequence[_Row], word: str, number: int, shown: str) -> SubCode:
    row = next((row for row in rows if row.values is None or number in row.values), None)
    if row is None:
        return SubCode(f"{word} {shown}, not in the table", None)
    fault_class = FaultClass.SOFTWARE if row.action == "software" else FaultClass.REBOOT_ONCE
    text = f"{word} {shown}{f', {row.meaning}' if row.meaning else ''}"
    return SubCode(text, row.fatal, _REMEDIES[row.action], fault_class if row.fatal else None)
