"""The report: what was judged, when, on which host as it was then. Schema ``kiln/report/v1``.

``to_dict`` is what ``--json`` prints and what the gate keeps as its output; ``from_dict`` reads it back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from profiles.models import Expectation
from validation.verdict import Finding, Verdict

SCHEMA = "kiln/report/v1"


@dataclass(frozen=True)
class Identity:
    """What a verdict is bound to. If any part differs from the host as it is now, the verdict is void."""

    instance_id: str
    boot_id: str
    gpu_uuids: tuple[str, ...]
    driver: str
    expectation: str  # digest of the expectation
    judge: str  # digest of the checks that judged

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Identity:
        return cls(**{**data, "gpu_uuids": tuple(data["gpu_uuids"])})


@dataclass(frozen=True)
class BurnInRecord:
    """A burn-in's raw result (the probe's JSON), what it is bound to, and when it ran (UTC ISO time)."""

    identity: Identity
    level: str
    ran_at: str
    result: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BurnInRecord:
        return cls(Identity.from_dict(data["identity"]), data["level"], data["ran_at"], data["result"])


@dataclass(frozen=True)
class GpuUnit:
    """One GPU as a thing that can be known again; empty texts where the driver told nothing."""

    index: int
    uuid: str = ""
    serial: str = ""
    board: str = ""
    pci_address: str = ""


@dataclass(frozen=True)
class HostReport:
    """One host: its verdict and findings. ``identity`` is None where the host was never reached."""

    host: str
    address: str
    instance_id: str
    instance_type: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    identity: Identity | None = None
    burn_in: BurnInRecord | None = None
    burn_in_reused: bool = False
    duration_s: float = 0.0
    units: tuple[GpuUnit, ...] = ()
    inventory: Mapping[str, str] = field(default_factory=dict)  # what is compared over the hosts of a stack

    def to_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "address": self.address,
            "instance_id": self.instance_id,
            "instance_type": self.instance_type,
            "verdict": self.verdict.value,
            "findings": [finding.to_dict() for finding in self.findings],
            "identity": asdict(self.identity) if self.identity else None,
            "burn_in": asdict(self.burn_in) if self.burn_in else None,
            "burn_in_reused": self.burn_in_reused,
            "duration_s": round(self.duration_s, 3),
            "units": [asdict(unit) for unit in self.units],
            "inventory": dict(self.inventory),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HostReport:
        return cls(
            host=data["host"],
            address=data["address"],
            instance_id=data["instance_id"],
            instance_type=data["instance_type"],
            verdict=Verdict(data["verdict"]),
            findings=tuple(Finding.from_dict(finding) for finding in data["findings"]),
            identity=Identity.from_dict(data["identity"]) if data.get("identity") else None,
            burn_in=BurnInRecord.from_dict(data["burn_in"]) if data.get("burn_in") else None,
            burn_in_reused=bool(data.get("burn_in_reused")),
            duration_s=float(data.get("duration_s", 0.0)),
            units=tuple(GpuUnit(**unit) for unit in data.get("units") or ()),
            inventory=dict(data.get("inventory") or {}),
        )


@dataclass(frozen=True)
class StackReport:
    """All hosts of one stack or inventory. ``healthy`` is true only where the gate may open.

    ``findings`` are about the hosts together, with the subject ``stack``.
    """

    verdict: Verdict
    hosts: tuple[HostReport, ...]
    started: str = ""
    duration_s: float = 0.0
    title: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def healthy(self) -> bool:
        return bool(self.hosts) and self.verdict.opens_gate

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "title": self.title,
            "verdict": self.verdict.value,
            "healthy": self.healthy,
            "started": self.started,
            "duration_s": round(self.duration_s, 3),
            "hosts": [host.to_dict() for host in self.hosts],
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StackReport:
        if data.get("schema") != SCHEMA:
            raise ValueError(f"schema is {data.get('schema')!r}, not {SCHEMA!r}")
        return cls(
            verdict=Verdict(data["verdict"]),
            hosts=tuple(HostReport.from_dict(host) for host in data["hosts"]),
            started=data.get("started", ""),
            duration_s=float(data.get("duration_s", 0.0)),
            title=data.get("title", ""),
            findings=tuple(Finding.from_dict(finding) for finding in data.get("findings") or ()),
        )


def digest(value: Expectation | Mapping[str, Any] | list[Any]) -> str:
    """A short digest of a JSON-shaped value or an expectation, stable across runs."""
    data = value.model_dump(mode="json") if isinstance(value, Expectation) else value
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
