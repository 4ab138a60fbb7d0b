"""``systemctl show UNIT -p Id,LoadState,ActiveState,SubState,UnitFileState``."""

from __future__ import annotations

from profiles.errors import ParseError
from validation.facts.host import Unit
from validation.facts.text import lines

TOOL = "systemctl show"


def parse(text: str) -> Unit:
    """The first unit shown. A unit that is not installed is a fact: ``load`` is ``not-found``."""
    return parse_all(text)[0]


def parse_all(text: str) -> tuple[Unit, ...]:
    """Every unit; blocks are separated by an empty line. Raises ParseError where a state is missing."""
    blocks: list[dict[str, str]] = [{}]
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        if not stripped:
            if blocks[-1]:
                blocks.append({})
            continue
        key, equals, value = stripped.partition("=")
        if not equals or not key.isidentifier():
            raise ParseError(TOOL, number, f"{stripped[:80]!r} is not KEY=VALUE")
        blocks[-1][key] = value
    units = [_unit(block) for block in blocks if block]
    if not units:
        raise ParseError(TOOL, 0, "no unit")
    return tuple(units)


def _unit(block: dict[str, str]) -> Unit:
    for needed in ("Id", "LoadState", "ActiveState", "SubState"):
        if needed not in block:
            raise ParseError(TOOL, 0, f"no {needed}: the text is cut short")
    return Unit(
        name=block["Id"],
        load=block["LoadState"],
        active=block["ActiveState"],
        sub=block["SubState"],
        enabled=block.get("UnitFileState", ""),
    )
