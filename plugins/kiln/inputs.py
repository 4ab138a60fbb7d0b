"""The inputs of a HealthGate: wrong ones by property path, right ones as what the runner takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plugins.kiln.wire import UNKNOWN
from profiles.expectation import expect
from profiles.models import BURN_IN_LEVELS
from validation.target import Options, Target
from validation.unit_file import OFF, UnitFile, of_setting

# property -> (types, required)
_HOST: Mapping[str, tuple[tuple[type, ...], bool]] = {
    "name": ((str,), True),
    "address": ((str,), True),
    "instanceType": ((str,), True),
    "privateKey": ((str,), True),
    "user": ((str,), True),
    "port": ((int,), False),
    "hostKey": ((str,), False),
    "acceptNew": ((bool,), False),
    "instanceId": ((str,), False),
    "efaCount": ((int,), False),
    "mig": ((bool,), False),
    "persistence": ((bool,), False),
    "ecc": ((bool,), False),
    "powerLimitW": ((float, int), False),
}
_GATE: Mapping[str, tuple[tuple[type, ...], bool]] = {
    "hosts": ((list,), True),
    "software": ((str,), False),
    "driver": ((str,), False),
    "cuda": ((str,), False),
    "evidenceRoot": ((str,), False),
    "burnIn": ((str,), False),
    "deadlineSeconds": ((int, float), False),
    "concurrency": ((int,), False),
    "badUnits": ((str,), False),
    "recheck": ((str,), False),
}
_WORDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", float: "a number"}


def check(inputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every wrong input as (property path, reason). Values that are not known yet are taken as right."""
    wrong = _check_object(inputs, _GATE, "")
    hosts = inputs.get("hosts")
    if isinstance(hosts, list):
        wrong += _check_hosts(hosts)
    if inputs.get("burnIn") is not UNKNOWN and inputs.get("burnIn", "none") not in BURN_IN_LEVELS:
        wrong.append(("burnIn", f"found {inputs['burnIn']!r}; expected one of {', '.join(BURN_IN_LEVELS)}"))
    memory = inputs.get("badUnits")
    if isinstance(memory, str) and memory and memory != OFF and not memory.startswith(("/", "~/")):
        wrong.append(("badUnits", f"found {memory!r}; expected a path from / or ~/, or {OFF}"))
    for name in ("deadlineSeconds", "concurrency"):
        value = inputs.get(name, 1)
        if isinstance(value, (int, float)) and value <= 0:
            wrong.append((name, f"found {value}; expected more than 0"))
    return wrong


def _check_hosts(hosts: list[Any]) -> list[tuple[str, str]]:
    if not hosts:
        return [("hosts", "found none; a gate without hosts could never open. Name at least one host")]
    wrong: list[tuple[str, str]] = []
    names: set[str] = set()
    for index, host in enumerate(hosts):
        path = f"hosts[{index}]"
        if host is UNKNOWN:
            continue
        if not isinstance(host, dict):
            wrong.append((path, "expected an object"))
            continue
        wrong += _check_object(host, _HOST, f"{path}.")
        name = host.get("name")
        if isinstance(name, str) and name in names:
            wrong.append((f"{path}.name", f"{name!r} is already another host's name; each host needs its own"))
        elif isinstance(name, str):
            names.add(name)
        if host.get("acceptNew") is not UNKNOWN and not host.get("acceptNew") and host.get("hostKey") is None:
            wrong.append((f"{path}.hostKey", "missing; give the host's public key, or opt in with acceptNew"))
    return wrong


def _check_object(
    found: Mapping[str, Any], fields: Mapping[str, tuple[tuple[type, ...], bool]], prefix: str
) -> list[tuple[str, str]]:
    wrong = [(f"{prefix}{name}", "no such property") for name in found if name not in fields]
    for name, (types, required) in fields.items():
        value = found.get(name)
        if value is UNKNOWN:
            continue
        if value is None:
            if required:
                wrong.append((f"{prefix}{name}", "missing"))
        elif not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            wrong.append((f"{prefix}{name}", f"expected {_WORDS[types[0]]}"))
    return wrong


@dataclass(frozen=True)
class GateInputs:
    """What one run of the gate needs."""

    targets: tuple[Target, ...]
    options: Options
    memory: UnitFile | None = None

    @classmethod
    def read(cls, inputs: Mapping[str, Any]) -> GateInputs:
        """From inputs that :func:`check` found right."""
        return cls(
            targets=tuple(_target(host, inputs) for host in inputs["hosts"]),
            options=Options(
                burn_in=inputs.get("burnIn") or "none",
                deadline_s=float(inputs.get("deadlineSeconds") or 900.0),
                concurrency=int(inputs.get("concurrency") or 32),
            ),
            memory=of_setting(inputs.get("badUnits") or "", os.environ),
        )


def identifier(host: Mapping[str, Any]) -> str:
    """What a verdict on this host is bound to: its instance id, or where it has none, its name and address."""
    return str(host.get("instanceId") or f"{host.get('name')}@{host.get('address')}:{host.get('port') or 22}")


def _target(host: Mapping[str, Any], inputs: Mapping[str, Any]) -> Target:
    expectation = expect(
        host["instanceType"],
        software=inputs.get("software") or "unpinned",
        driver=inputs.get("driver"),
        cuda=inputs.get("cuda"),
        efa_count=host.get("efaCount") or 0,
        mig=host.get("mig") or False,
        persistence=host.get("persistence") is not False,
        ecc=host.get("ecc"),
        power_limit_w=host.get("powerLimitW"),
        root=inputs.get("evidenceRoot") or "/",
    )
    return Target(
        name=host["name"],
        address=host["address"],
        user=host["user"],
        private_key=host["privateKey"],
        host_key=host.get("hostKey"),
        expectation=expectation,
        port=host.get("port") or 22,
        accept_new=host.get("acceptNew") or False,
        instance_id=host.get("instanceId") or "",
    )
