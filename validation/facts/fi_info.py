"""``fi_info -p efa -t FI_EP_RDM``: the EFA NICs that libfabric can use."""

from __future__ import annotations

import re

from profiles.errors import ParseError
from validation.facts.host import EfaNics
from validation.facts.text import lines

TOOL = "fi_info -p efa"
# fi_getinfo: -61 is FI_ENODATA: asked, and there is none. Other numbers are failures of the tool.
_NONE = re.compile(r"fi_getinfo:\s*-61\b")
_FAILED = re.compile(r"fi_getinfo:\s*(-\d+)")
_FIELD = re.compile(r"^\s*(provider|fabric|domain|version|type|protocol):\s*(\S.*)$")
# libfabric gives each NIC one domain per endpoint kind: efa_0-rdm, efa_0-dgrm, rdmap16s27-rdm.
_KIND = re.compile(r"-(?:rdm|dgrm|dgram|msg|direct)$")


def parse(text: str) -> EfaNics:
    """One entry a NIC, however many records it has. No NIC is a fact; a record cut short is a ParseError."""
    records: list[dict[str, str]] = []
    none = False
    for number, line in enumerate(lines(text), start=1):
        stripped = line.strip()
        match = _FIELD.match(line)
        if match is None:
            none = _said_none(stripped, number, begun=bool(records)) or none
            continue
        if match[1] == "provider":
            records.append({})
        elif not records:
            raise ParseError(TOOL, number, f"{match[1]} before any provider: the text's beginning is missing")
        records[-1][match[1]] = match[2].strip()
    if not records and not none:
        raise ParseError(TOOL, 0, "no record, and no word that there is none")
    return EfaNics(tuple(_nics(records)), source="fi-info")


def _said_none(line: str, number: int, *, begun: bool) -> bool:
    """Whether a line that is no field says that there is no NIC. Raises ParseError where the tool itself failed."""
    failed = _FAILED.search(line)
    if failed and not _NONE.search(line):
        raise ParseError(TOOL, number, f"fi_getinfo failed with {failed[1]}")
    if line and not failed and not begun and not line.startswith("$"):
        raise ParseError(TOOL, number, f"{line[:80]!r} is not a record of fi_info")
    return failed is not None


def _nics(records: list[dict[str, str]]) -> list[str]:
    """The distinct NICs of provider efa, in order of appearance."""
    nics: dict[str, None] = {}
    for record in records:
        if not {"provider", "domain", "type", "protocol"} <= set(record):
            raise ParseError(TOOL, 0, f"a record holds only {', '.join(record)}: cut short")
        if record["provider"].startswith("efa"):
            nics[_KIND.sub("", record["domain"])] = None
    return list(nics)
