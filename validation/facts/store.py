"""All facts of one host by type: each either read whole, or a gap that says why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Gap:
    """Why a fact is not there: tool missing, timed out, denied, not parsed. ``evidence`` names the item."""

    reason: str
    evidence: str = ""


class FactGapError(Exception):
    """Raised by :meth:`Facts.need`; the judge turns it into UNKNOWN."""

    def __init__(self, kind: type, gap: Gap) -> None:
        super().__init__(f"{kind.__name__}: {gap.reason}")
        self.kind = kind
        self.gap = gap


class Facts:
    """Facts by type. ``need`` returns the fact or raises FactGapError; it never returns a default."""

    def __init__(self, values: Mapping[type, object], gaps: Mapping[type, Gap] | None = None) -> None:
        self._values = dict(values)
        self._gaps = dict(gaps or {})

    def need(self, kind: type[T]) -> T:
        value = self._values.get(kind)
        if value is None:
            raise FactGapError(kind, self.gap(kind))
        assert isinstance(value, kind)
        return value

    def gap(self, kind: type) -> Gap:
        return self._gaps.get(kind, Gap("no evidence of this kind was gathered"))

    def __contains__(self, kind: type) -> bool:
        return kind in self._values

    def __iter__(self) -> Iterator[object]:
        return iter(self._values.values())

    def gaps(self) -> Mapping[type, Gap]:
        return dict(self._gaps)
