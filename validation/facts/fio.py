"""``fio --output-format=json``: what each job read and wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import clean

TOOL = "fio"


@dataclass(frozen=True)
class FioJob:
    """One job: bytes per second and operations per second in each direction, 0 where it did none; fio's error code."""

    name: str
    read_bytes_s: float
    write_bytes_s: float
    read_iops: float
    write_iops: float
    error: int


@dataclass(frozen=True)
class FioResult:
    version: str
    jobs: tuple[FioJob, ...]


def parse(text: str) -> FioResult:
    """Every job. fio prints warnings before the document; they are passed over."""
    content = clean(text)
    start = content.find("{")
    try:
        data = json.loads(content[start:]) if start >= 0 else None
        if not isinstance(data, dict) or not data.get("fio version") or not data["jobs"]:
            raise ParseError(TOOL, 1, "no document with 'fio version' and 'jobs'")
        return FioResult(str(data["fio version"]), tuple(_job(job) for job in data["jobs"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParseError(TOOL, getattr(error, "lineno", 0), f"not a whole result: {error!r}") from error


def _job(job: dict[str, Any]) -> FioJob:
    read, write = job["read"], job["write"]
    return FioJob(
        name=str(job["jobname"]),
        read_bytes_s=_rate(read),
        write_bytes_s=_rate(write),
        read_iops=float(read["iops"]),
        write_iops=float(write["iops"]),
        error=int(job.get("error", 0)),
    )


def _rate(direction: dict[str, Any]) -> float:
    """fio 3 prints ``bw_bytes``; older ones only ``bw``, in KiB per second."""
    return float(direction["bw_bytes"]) if "bw_bytes" in direction else float(direction["bw"]) * 1024
