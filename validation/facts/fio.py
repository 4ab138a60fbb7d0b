"""fio: what each job read, wrote and trimmed, and how it ended; as text, as JSON and as terse lines.

Formats: runs of fio 3.25, 3.33, 3.36 and 3.41 (2026-11-30), with failing disks, full disks, signals, several documents
and a server; fio 2's text from its HOWTO and from users.
"""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import clean, lines

TOOL = "fio"
_SIGN = re.compile(
    r"^fio-\d\S*$|\(groupid=\d+, jobs=\d+\): err=|^fio: (?:io_u error|pid=\d+, err=)|^[345];fio-\d|"
    r'"fio version"(?s:.*)"(?:jobs|client_stats)"',
    re.M,
)
_JOB = re.compile(
    r"^(?:<[^>]*> )?(?P<name>.+?): \(groupid=(?P<group>\d+), jobs=\d+\): "
    r"err=\s*(?P<error>\d+)(?: \((?P<why>.*)\))?: pid=(?P<pid>\d+)"
)
_RATE = re.compile(r"^\s+(?P<way>read|write|trim)\s*: (?P<rest>.*)$")
_BANDWIDTH = re.compile(r"BW=\S+ \((?P<si>[\d.]+)(?P<unit>[kMGTP]?)(?:B/s)?\)|bw=(?P<old>[\d.]+)(?P<kb>[KMGT]?B)/s")
_IOPS = re.compile(r"iops=\s*(?P<number>[\d.]+)(?P<unit>[kMG]?)", re.I)
_TOTAL = re.compile(r"^\s+errors\s*: total=(?P<total>\d+), first_error=(?P<error>\d+)/<(?P<why>.*?)>")
_STOPPED = re.compile(r"^fio: pid=\d+, err=(?P<error>\d+)/file:.*?, error=(?P<why>.*)$")
_FAILED = re.compile(r"^fio: io_u error on file .*|verify failed at file .*")
_IO_ERROR = re.compile(r"^fio: io_u error on file .+?: (?P<why>[^:]+): \w+ offset=")
_KERNEL = re.compile(r"(?:Buffer )?I/O error,? (?:on )?dev [\w/-]+|critical \w+ error, dev [\w/-]+", re.I)
_CODES = {os.strerror(code): code for code in errno.errorcode}
_SIGNAL = re.compile(r"^fio: terminating on signal \d+", re.M)
_DOCUMENT = re.compile(r"^\{", re.M)
_TERSE = re.compile(r"^(?P<version>[345]);fio-(?P<fio>[^;]+);")
_END = re.compile(r"^(?:<[^>]*> )?Run status group (?P<group>\d+)")
_SI = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_THOUSANDS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
_TERSE_WRITE = {"3": 46, "4": 46, "5": 52}  # the field where what was written begins; read begins at 5
_ALL = "All clients"


@dataclass(frozen=True)
class FioJob:
    """One job: bytes per second and operations per second in each direction, 0 where it did none; fio's error code.

    ``why`` is fio's word on the error. An error that fio was told to go on after counts as one.
    """

    name: str
    read_bytes_s: float
    write_bytes_s: float
    read_iops: float
    write_iops: float
    error: int
    why: str = ""
    trim_bytes_s: float = 0.0


@dataclass(frozen=True)
class FioResult:
    """``interrupted``: a signal ended the run, and the figures are of a part of it.

    ``kernel``: the kernel's own words on the disk, where its log stands between the lines of fio.
    """

    version: str
    jobs: tuple[FioJob, ...]
    interrupted: bool = False
    kernel: tuple[str, ...] = ()


def is_it(text: str) -> bool:
    """Told by its version, by a job's first line or error, or by the keys of its document."""
    return _SIGN.search(text) is not None


def parse(text: str) -> FioResult:
    """Every job. Of several reports of one run (``--status-interval``) the last, which holds all before."""
    content = clean(text)
    kernel = tuple(dict.fromkeys(_KERNEL.findall(content)))
    if '"fio version"' in content:
        version, jobs = _document(content)
    elif any(_TERSE.match(line) for line in lines(text)):
        version, jobs = _terse(lines(text))
    else:
        reader = _Text()
        for row in lines(text):
            reader.read(row)
        version, jobs = reader.version, reader.jobs(none_is_right=bool(kernel))
    return FioResult(version, jobs, _SIGNAL.search(content) is not None, kernel)


def _document(content: str) -> tuple[str, tuple[FioJob, ...]]:
    """fio prints warnings before a document and, if asked, its text around it; they are passed over."""
    decoder = json.JSONDecoder()
    data: Any = None
    at, start = 0, _DOCUMENT.search(content)
    try:
        while start is not None:
            data, at = decoder.raw_decode(content, start.start())
            start = _DOCUMENT.search(content, at)
        if not isinstance(data, dict) or not data.get("fio version"):
            raise ParseError(TOOL, 1, "no document with 'fio version' and 'jobs'")
        listed = data["jobs"] if "jobs" in data else data["client_stats"]
        jobs = [job for job in listed if job["jobname"] != _ALL]
        if not jobs:
            raise ParseError(TOOL, 1, "no job in the document")
        stops = {int(stop["error"]): stop["why"] for row in content.split("\n") if (stop := _STOPPED.match(row))}
        return str(data["fio version"]), tuple(_job(job, stops) for job in jobs)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole result: {error!r}") from error


def _job(job: dict[str, Any], stops: dict[int, str]) -> FioJob:
    read, write = job["read"], job["write"]
    went_on = int(job.get("first_error", 0)) if int(job.get("total_err", 0)) else 0
    error = int(job["error"]) or went_on
    return FioJob(
        name=str(job["jobname"]),
        read_bytes_s=_bytes(read),
        write_bytes_s=_bytes(write),
        read_iops=float(read["iops"]),
        write_iops=float(write["iops"]),
        error=error,
        why=stops.get(error, ""),
        trim_bytes_s=_bytes(job["trim"]) if "trim" in job else 0.0,
    )


def _bytes(direction: dict[str, Any]) -> float:
    """fio 3 prints ``bw_bytes``; older ones only ``bw``, in KiB per second."""
    return float(direction["bw_bytes"]) if "bw_bytes" in direction else float(direction["bw"]) * 1024


def _terse(rows: list[str]) -> tuple[str, tuple[FioJob, ...]]:
    jobs, version = [], ""
    stops = {int(stop["error"]): stop["why"] for row in rows if (stop := _STOPPED.match(row))}
    for number, row in enumerate(rows, start=1):
        head = _TERSE.match(row)
        if head is None:
            continue
        cells, write = row.split(";"), _TERSE_WRITE[head["version"]]
        version = f"fio-{head['fio']}"
        try:
            read_kib, read_iops, write_kib, write_iops = (float(cells[at]) for at in (6, 7, write + 1, write + 2))
            error = int(cells[4])
        except (ValueError, IndexError) as broken:
            raise ParseError(TOOL, number, f"not a whole terse line: {broken!r}") from broken
        why = stops.get(error, "")
        jobs.append(FioJob(cells[2], read_kib * 1024, write_kib * 1024, read_iops, write_iops, error, why))
    return version, tuple(jobs)


class _Text:
    """Reads the text line by line. A job's first line opens its group, "Run status group" closes it."""

    def __init__(self) -> None:
        self.version = ""
        self._jobs: dict[tuple[str, str], dict[str, Any]] = {}
        self._stops: dict[int, str] = {}
        self._failed: list[str] = []
        self._io_errors: dict[int, str] = {}  # told before the job's own line, which a paste may lack
        self._current: dict[str, Any] = {}
        self._open: set[str] = set()

    def read(self, row: str) -> None:
        if job := _JOB.match(row):
            self._job(job)
        elif (rate := _RATE.match(row)) and self._jobs:
            self._current[rate["way"]] = _rate(rate["rest"])
        elif (total := _TOTAL.match(row)) and self._jobs:
            self._current.update(error=int(total["error"]), why=f"{total['total']} errors, the first: {total['why']}")
        elif stop := _STOPPED.match(row):
            self._stops[int(stop["error"])] = stop["why"]
        elif found := _FAILED.search(row):
            self._failed.append(found[0].removeprefix("fio: "))
            if (told := _IO_ERROR.match(row)) and told["why"] in _CODES:
                self._io_errors[_CODES[told["why"]]] = told["why"]
        elif row.startswith("fio-"):
            self.version = row.strip()
        elif end := _END.match(row):
            self._open.discard(end["group"])

    def _job(self, job: re.Match[str]) -> None:
        self._current = {"error": int(job["error"]), "why": job["why"] or ""}
        if job["name"] != _ALL:
            self._jobs[job["name"], job["pid"]] = self._current
            self._open.add(job["group"])

    def jobs(self, *, none_is_right: bool) -> tuple[FioJob, ...]:
        """Raises ParseError where a group has no closing line: the text is cut short."""
        jobs = [_text_job(name, values, self._stops, self._failed) for (name, _), values in self._jobs.items()]
        stops = self._io_errors | self._stops
        lost = [error for error in stops if error not in {job.error for job in jobs}]
        jobs += [FioJob("job", 0, 0, 0, 0, error, _why(stops[error], self._failed)) for error in lost]
        if not jobs and not none_is_right:
            raise ParseError(TOOL, 0, "no job's result: fio did not run, was killed, or the text is cut short")
        if self._open:
            raise ParseError(TOOL, 0, "no line 'Run status group': the run did not end, or the text is cut short")
        return tuple(jobs)


def _text_job(name: str, values: dict[str, Any], stops: dict[int, str], failed: list[str]) -> FioJob:
    read, write, trim = (values.get(way, (0.0, 0.0)) for way in ("read", "write", "trim"))
    error, why = values["error"], values["why"]
    why = _why(stops.get(error, why.rpartition("error=")[2] or why), failed) if error else ""
    return FioJob(name, read[0], write[0], read[1], write[1], error, why, trim[0])


def _why(word: str, failed: list[str]) -> str:
    return f"{word} ({failed[0]})" if failed else word


def _rate(rest: str) -> tuple[float, float]:
    """Bytes per second and operations per second of one direction. fio 2 counts in units of 1024 and calls them KB."""
    bandwidth, iops = _BANDWIDTH.search(rest), _IOPS.search(rest)
    if bandwidth is None or iops is None:
        raise ParseError(TOOL, 0, f"{rest[:80]!r} has no bandwidth and operations")
    operations = float(iops["number"]) * _THOUSANDS[iops["unit"]]
    if bandwidth["si"]:
        return float(bandwidth["si"]) * _SI[bandwidth["unit"]], operations
    return float(bandwidth["old"]) * _BINARY[bandwidth["kb"]], operations
