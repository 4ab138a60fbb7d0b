"""``fi_info``: the EFA NICs that libfabric can use, from the short records, ``-v`` and the word that there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profiles.errors import ParseError
from validation.facts.host import EfaNics
from validation.facts.text import lines, prompt

TOOL = "fi_info -p efa"
# fi_getinfo: -61 is FI_ENODATA: asked, and there is none. Other numbers are failures of the tool.
_NONE = re.compile(r"fi_getinfo:\s*-61\b")
_FAILED = re.compile(r"fi_getinfo:\s*(-\d+)")
_FIELD = re.compile(r"^\s*(provider|fabric|domain|version|type|protocol):\s*(\S.*)$")
_SHORT = {"provider", "domain", "type", "protocol"}
# libfabric gives each NIC one domain per endpoint kind: efa_0-rdm, efa_0-dgrm, rdmap16s27-rdm.
_KIND = re.compile(r"-(?:rdm|dgrm|dgram|msg|direct)$")
# With -v a record begins with "fi_info:" and its parts with "    fi_domain_attr:"; names stand inside the parts.
_LONG = re.compile(r"^\s*fi_info:\s*$")
_PART = re.compile(r"^\s*(fi_\w+_attr|fi_nic|nic):\s*$")
_LONG_FIELDS = {
    ("fi_domain_attr", "name"): "domain",
    ("fi_fabric_attr", "prov_name"): "provider",
    ("fi_ep_attr", "type"): "type",
    ("fi_ep_attr", "protocol"): "protocol",
}
# What libfabric logs between the records: "libfabric:1234:1700000000::efa:core:...".
_NOISE = re.compile(r"^(?:libfabric:\d+:|---$)")


def parse(text: str) -> EfaNics:
    """One entry a NIC, however many records it has. No NIC is a fact; a record cut short is a ParseError."""
    numbered = list(enumerate(lines(text), start=1))
    none = False
    for number, line in numbered:
        failed = _FAILED.search(line)
        if failed and not _NONE.search(line):
            raise ParseError(TOOL, number, f"fi_getinfo failed with {failed[1]}")
        none = none or failed is not None
    kept = [(number, line) for number, line in numbered if not _FAILED.search(line) and prompt(line) is None]
    long = any(_LONG.match(line) for _, line in kept)
    records = list(_long_records(kept) if long else _short_records(kept))
    if not records and not none:
        raise ParseError(TOOL, 0, "no record, and no word that there is none")
    return _nics(records)


def _short_records(numbered: list[tuple[int, str]]) -> Iterator[dict[str, str]]:
    record: dict[str, str] = {}
    for number, line in numbered:
        match = _FIELD.match(line)
        if match is None:
            if line.strip() and not _NOISE.match(line.strip()):
                raise ParseError(TOOL, number, f"{line.strip()[:80]!r} is not a record of fi_info")
            continue
        if match[1] == "provider":
            if record:
                yield record
            record = {}
        elif not record:
            raise ParseError(TOOL, number, f"{match[1]} before any provider: the text's beginning is missing")
        record[match[1]] = match[2].strip()
    if record:
        yield record


def _long_records(numbered: list[tuple[int, str]]) -> Iterator[dict[str, str]]:
    record: dict[str, str] | None = None
    part = ""
    for _, line in numbered:
        if _LONG.match(line):
            if record is not None:
                yield record
            record, part = {}, ""
            continue
        heading = _PART.match(line)
        if heading:
            part = heading[1]
            continue
        key, _, value = line.strip().partition(":")
        field = _LONG_FIELDS.get((part, key))
        if field and record is not None:
            record.setdefault(field, value.strip())
    if record is not None:
        yield record


def _nics(records: list[dict[str, str]]) -> EfaNics:
    """The distinct NICs of provider efa, in order of appearance, and the names of the other providers."""
    nics: dict[str, None] = {}
    others: dict[str, None] = {}
    for record in records:
        if not set(record) >= _SHORT:
            raise ParseError(TOOL, 0, f"a record holds only {', '.join(record) or 'nothing'}: cut short")
        if record["provider"].startswith("efa"):
            nics[_KIND.sub("", record["domain"])] = None
        else:
            others[record["provider"]] = None
    return EfaNics(tuple(nics), source="fi-info", others=tuple(others))
