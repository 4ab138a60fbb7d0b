"""What an RDMA driver counted: ``rdma statistic show`` (text and ``-j``) and the files of counters in /sys.

Counts since the driver was loaded. The names are the driver's own, so only their endings tell an error from traffic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.rdma import port_name
from validation.facts.text import clean, lines, prompt

TOOL = "rdma statistic"
# iproute2's rdma/stat.c: "link mlx5_2/1 rx_write_requests 8 rx_read_requests 4 ...", all on one line, which is folded
# wherever it is pasted.
_LINK = re.compile(r"^link (?P<name>[^/\s]+)/(?P<port>\d+)(?P<rest>(?: \w+)*)\s*$")
_WORDS = re.compile(r"^\w+(?: \w+)*$")
_FILE = re.compile(
    r"^/sys/class/infiniband/(?P<name>[^/\s]+)/(?:ports/(?P<port>\d+)/)?(?:hw_)?counters/(?P<counter>\w+):(?P<value>-?\d+)\s*$"
)
# Counters of errors in the drivers erdma (Linux 6.12 erdma_verbs.c, erdma_descs; the vendor's own has more, kubeskoop
# pkg/exporter/probe/rdma), efa (Linux efa_verbs.c) and mlx5 (NVIDIA, "Understanding mlx5 Linux counters").
_ERROR = re.compile(
    r"_failed_cnt$|_timeout_cnt$|_reset_cnt$|_drop_cnt$|_drops?$|_err$|_errs?or?s?$|_wr_err$|timeout_events$|"
    r"^out_of_sequence$|_seq_err$|retries_exceeded$|^impaired_remote_conn_events$|^unresponsive_remote_events$|"
    r"^rx_icrc_encapsulated$"
)
# A connection that ends flushes what was queued: no error of the network (NVIDIA, the same page).
_NO_ERROR = re.compile(r"flush")


@dataclass(frozen=True)
class PortCounters:
    """The counters of one port by the driver's names."""

    name: str
    counters: Mapping[str, int]

    def errors(self) -> dict[str, int]:
        """Those that count errors, zero or not."""
        return {name: n for name, n in self.counters.items() if _ERROR.search(name) and not _NO_ERROR.search(name)}


@dataclass(frozen=True)
class RdmaCounters:
    ports: tuple[PortCounters, ...]


def parse(text: str) -> RdmaCounters:
    """Every port with its counters; a port of which nothing was counted is none that could be looked at."""
    content = clean(text)
    found: dict[str, dict[str, int]] = {}
    pairs = _from_json(content) if content.lstrip().startswith("[") else _from_lines(content)
    for name, counter, value in pairs:
        found.setdefault(name, {})[counter] = value
    if not found:
        raise ParseError(TOOL, 0, "no counter")
    return RdmaCounters(tuple(PortCounters(name, counters) for name, counters in found.items()))


def _from_json(text: str) -> Iterator[tuple[str, str, int]]:
    try:
        for entry in json.loads(text):
            name = port_name(entry.pop("ifname"), entry.pop("port"))
            entry.pop("ifindex", None)
            yield from ((name, counter, int(value)) for counter, value in entry.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(TOOL, 0, f"not a whole list of ports with their counters ({error!r})") from error


def _from_lines(text: str) -> Iterator[tuple[str, str, int]]:
    port, words = "", list[str]()
    for number, line in enumerate(lines(text), start=1):
        stripped = " ".join(line.split())
        file, link = _FILE.match(stripped), _LINK.match(stripped)
        if file:
            yield port_name(file["name"], int(file["port"] or 1)), file["counter"], int(file["value"])
        elif link:
            yield from _pairs(port, words)
            port, words = port_name(link["name"], int(link["port"])), link["rest"].split()
        elif port and _WORDS.match(stripped):
            words += stripped.split()
        elif stripped and prompt(line) is None:
            raise ParseError(TOOL, number, f"{stripped[:80]!r} is neither a port nor a counter's file")
    yield from _pairs(port, words)


def _pairs(port: str, words: list[str]) -> Iterator[tuple[str, str, int]]:
    """The counters of one port. A name without its number is where the text was cut."""
    if len(words) % 2 or not all(value.isdigit() for value in words[1::2]):
        raise ParseError(TOOL, 0, f"{port}: not every counter has its number; the text is cut short")
    yield from ((port, counter, int(value)) for counter, value in zip(words[::2], words[1::2], strict=True))
