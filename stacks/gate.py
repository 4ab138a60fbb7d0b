"""The gate for any Pulumi program: declare the hosts, and the stack is healthy only if each has proved itself.

::

    import pulumi
    from stacks.gate import GateHost, HealthGate, SshKey, begin, conclude

    begin()
    key = SshKey("host-key")                # its private half goes into the host's user data
    server = ...                            # any resource that makes a host
    gate = HealthGate("gate", hosts=[GateHost(name="node-0", address=server.private_ip, ...)])
    conclude(gate, {"address": server.private_ip})

Pulumi.yaml names the provider: ``plugins: {providers: [{name: kiln, path: <checkout>/plugins/kiln}]}``.

Why ``begin`` and ``conclude``: outputs of a stack survive a failed run, so what the last good run said would still say
healthy. ``begin`` records false before anything is changed; ``conclude`` records what was found, and then fails the
program if the gate is closed.
"""

from __future__ import annotations

import os
import signal
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import get_root_resource, is_dry_run

from validation.report.model import SCHEMA

MODE_VARIABLE = "KILN_GATE_MODE"
RECORD = "record"
NO_BEGIN = "the program must call stacks.gate.begin() first: without it, a run that fails leaves the last one's healthy"
TOO_LATE = "a HealthGate after conclude() would not count: conclude() is the program's last act"
NOT_JUDGED = "the hosts were not judged in this run (up --target and --exclude leave the gate out); run pulumi up"
OTHER_HOSTS = "the hosts that were judged are not the hosts of this stack; run pulumi up"


class SshKey(pulumi.CustomResource):
    """An ed25519 key pair; ``private_key`` is secret. A new ``rotation`` makes a new pair."""

    fingerprint: pulumi.Output[str]

    def __init__(self, name: str, *, rotation: str | None = None, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(
            "kiln:index:SshKey",
            name,
            {"rotation": rotation, "publicKey": None, "privateKey": None, "fingerprint": None},
            pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(additional_secret_outputs=["privateKey"]), opts or pulumi.ResourceOptions()
            ),
        )

    @property
    def public_key(self) -> pulumi.Output[str]:
        """``ssh-ed25519 AAAA...``"""
        return pulumi.get(self, "publicKey")  # type: ignore[no-any-return]

    @property
    def private_key(self) -> pulumi.Output[str]:
        """In OpenSSH's format, without passphrase."""
        return pulumi.get(self, "privateKey")  # type: ignore[no-any-return]


@dataclass(frozen=True)
class GateHost:
    """A host to judge.

    ``instance_type`` names the profile. ``host_key`` is the host's public SSH key; without it, ``accept_new`` must say
    that whatever key answers first is taken. ``instance_id`` is what a verdict is bound to; leave it empty for a host
    that has none. ``persistence``, ``ecc`` and ``power_limit_w`` are what was asked for: by default persistence mode,
    ECC where the board has it, and the board's own limit.
    """

    name: str
    address: pulumi.Input[str]
    instance_type: str
    user: str
    private_key: pulumi.Input[str]
    host_key: pulumi.Input[str] | None = None
    port: int = 22
    accept_new: bool = False
    instance_id: pulumi.Input[str] = ""
    efa_count: int = 0
    mig: bool = False
    persistence: bool = True
    ecc: bool | None = None
    power_limit_w: float | None = None

    def inputs(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "address": self.address,
            "instanceType": self.instance_type,
            "user": self.user,
            "privateKey": pulumi.Output.secret(self.private_key),
            "hostKey": self.host_key,
            "port": self.port,
            "acceptNew": self.accept_new,
            "instanceId": self.instance_id,
            "efaCount": self.efa_count,
            "mig": self.mig,
            "persistence": self.persistence,
            "ecc": self.ecc,
            "powerLimitW": self.power_limit_w,
        }

    def identifier(self) -> pulumi.Output[str]:
        """What a verdict on this host is bound to; the provider works out the same."""
        return pulumi.Output.all(self.instance_id, self.address).apply(
            lambda known: known[0] or f"{self.name}@{known[1]}:{self.port}"
        )


@dataclass
class _Program:
    """What the running program has declared so far."""

    begun: bool = False
    concluded: bool = False
    gates: list[HealthGate] = field(default_factory=list)


_programs: dict[object, _Program] = {}  # by root resource: one process may run several programs (automation API)


def _program() -> _Program:
    return _programs.setdefault(get_root_resource(), _Program())


class HealthGate(pulumi.CustomResource):
    """Judges every host on every real run and records the verdict; it never fails itself.

    Outputs: ``verdict`` (PASS, WARN, UNKNOWN, FAIL), ``healthy``, ``summary`` (text), ``report`` (kiln/report/v1 as
    JSON text), ``judged`` (instance ids) and ``recheck`` (the token of the run that judged). To wait for health, depend
    on :class:`Healthy`, not on this. ``bad_units``: the file that remembers GPUs rejected for their hardware, or
    ``none``; left out, it is kept beside a state of ``file://``, else in the user's own.
    """

    verdict: pulumi.Output[str]
    healthy: pulumi.Output[bool]
    summary: pulumi.Output[str]
    report: pulumi.Output[str]
    judged: pulumi.Output[list[str]]
    recheck: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        hosts: Sequence[GateHost],
        burn_in: str = "quick",
        deadline_s: float = 900.0,
        concurrency: int = 32,
        software: str = "unpinned",
        driver: str | None = None,
        cuda: str | None = None,
        evidence_root: str = "/",
        bad_units: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        if _program().concluded:
            raise pulumi.RunError(TOO_LATE)
        _end_quietly()
        self.declared = tuple(hosts)
        # Fresh in every real run, so that every one looks at every host; absent from a preview, which shows no change.
        self.token = "" if is_dry_run() else uuid.uuid4().hex
        super().__init__(
            "kiln:index:HealthGate",
            name,
            {
                "hosts": [host.inputs() for host in self.declared],
                "burnIn": burn_in,
                "deadlineSeconds": deadline_s,
                "concurrency": concurrency,
                "software": software,
                "driver": driver,
                "cuda": cuda,
                "evidenceRoot": evidence_root,
                "badUnits": bad_units,
                "recheck": self.token,
                "verdict": None,
                "healthy": None,
                "summary": None,
                "report": None,
                "judged": None,
            },
            opts,
        )
        _program().gates.append(self)


class Healthy(pulumi.CustomResource):
    """Is created or updated only while the gate is open, and fails otherwise: depend on it to wait for health."""

    healthy: pulumi.Output[bool]

    def __init__(self, name: str, gate: HealthGate, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(
            "kiln:index:Healthy",
            name,
            {
                "healthy": gate.healthy,
                "judgedIn": gate.recheck,
                "summary": gate.summary,
                "recheck": gate.token,
            },
            opts,
        )


@dataclass(frozen=True)
class Decision:
    """Whether the gate is open for the hosts of this stack in this run, and if not, why."""

    healthy: bool
    verdict: str
    summary: str


def begin() -> None:
    """The program's first act: record ``healthy: false``, which stays unless :func:`conclude` replaces it."""
    _program().begun = True
    pulumi.export("healthy", value=False)
    _end_quietly()
    root = get_root_resource()
    if isinstance(root, pulumi.ComponentResource) and not is_dry_run():
        root.register_outputs({"healthy": False})


def _end_quietly() -> None:
    """Let the engine end this program without a traceback.

    It ends the program with SIGINT once a resource has failed. By default Python answers with a KeyboardInterrupt from
    wherever the Pulumi SDK is at that moment, fifty lines that hide the one which says what failed.
    """
    if not is_dry_run() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(1))


def conclude(gate: HealthGate, exports: Mapping[str, pulumi.Input[Any]] | None = None) -> None:
    """The program's last act: export ``healthy``, ``verdict``, ``gate``, ``report``, ``exports``; fail if closed.

    The stack is healthy only if every gate of the program is open, not only this one, whose report is exported.
    ``KILN_GATE_MODE=record`` leaves the failing to whoever runs the program, so that the engine finishes what it has
    to delete.
    """
    program = _program()
    if not program.begun:
        raise pulumi.RunError(NO_BEGIN)
    program.concluded = True
    gates = [gate, *(other for other in program.gates if other is not gate)]
    made = _together(gates)
    outputs: dict[str, Any] = {
        **(exports or {}),
        "healthy": made.apply(lambda decided: decided.healthy),
        "verdict": made.apply(lambda decided: decided.verdict),
        "gate": made.apply(lambda decided: decided.summary),
        # Its first line names the schema: as bare JSON the CLI would spread it over a thousand lines at every up.
        "report": gate.report.apply(lambda text: f"{SCHEMA}\n{text}"),
    }
    for name, value in outputs.items():
        pulumi.export(name, value)
    if is_dry_run():
        return
    tell = _record_closed if os.environ.get(MODE_VARIABLE) == RECORD else _fail_if_closed
    # Over all exports: raising while one is pending would lose the final registration of the outputs.
    pulumi.Output.all(made, *outputs.values()).apply(lambda known: tell(known[0]), run_with_unknowns=True)


def _fail_if_closed(decision: Decision) -> None:
    if not decision.healthy:
        raise pulumi.RunError(f"the gate is closed: {decision.summary}")


def _record_closed(decision: Decision) -> None:
    """Said at least: the variable may be there by mistake, and then nothing else would tell."""
    if not decision.healthy:
        first = decision.summary.splitlines()[0]
        pulumi.log.warn(f"the gate is closed: {first} ({MODE_VARIABLE}={RECORD}: recorded, this run does not fail)")


def _together(gates: Sequence[HealthGate]) -> pulumi.Output[Decision]:
    names = [gate.pulumi_resource_name for gate in gates]
    decisions = pulumi.Output.all(*(decide(gate) for gate in gates))
    return decisions.apply(lambda known: together(dict(zip(names, known, strict=True))))


def together(decisions: Mapping[str, Decision]) -> Decision:
    """The decision for a program: open only if each of its gates is; as bad as the worst, which is named first.

    >>> good, bad = Decision(True, "PASS", "PASS: 1 of 1"), Decision(False, "FAIL", "FAIL: 0 of 1")
    >>> together({"a": good, "b": bad}).summary.splitlines()
    ['b: FAIL: 0 of 1', 'a: PASS: 1 of 1']
    """
    if len(decisions) == 1:
        return next(iter(decisions.values()))
    rank = {"FAIL": 0, "UNKNOWN": 1, "WARN": 2, "PASS": 3}
    worst_first = sorted(decisions.items(), key=lambda item: (item[1].healthy, rank.get(item[1].verdict, 1)))
    return Decision(
        healthy=all(decision.healthy for decision in decisions.values()),
        verdict=worst_first[0][1].verdict,
        summary="\n".join(f"{name}: {decision.summary}" for name, decision in worst_first),
    )


def decide(gate: HealthGate) -> pulumi.Output[Decision]:
    """The decision; known in every real run, whatever was left out of it. In a preview: as last recorded."""
    facts = pulumi.Output.all(
        healthy=gate.healthy,
        verdict=gate.verdict,
        summary=gate.summary,
        recheck=gate.recheck,
        judged=gate.judged,
        hosts=pulumi.Output.all(*(host.identifier() for host in gate.declared)),
    )
    if is_dry_run():
        return facts.apply(lambda known: decision(known, token=known["recheck"]))
    return facts.apply(lambda known: decision(known, token=gate.token), run_with_unknowns=True)


def decision(facts: Any, *, token: str) -> Decision:
    """The one rule: open only if judged good, in the run with this token, for exactly these hosts.

    >>> judged = {"healthy": True, "verdict": "PASS", "summary": "PASS", "recheck": "t", "judged": ["i-1"]}
    >>> decision({**judged, "hosts": ["i-1"]}, token="t").healthy
    True
    >>> decision({**judged, "hosts": ["i-2"]}, token="t").verdict
    'UNKNOWN'
    """
    if not isinstance(facts, Mapping) or pulumi.output.contains_unknowns(facts) or facts["recheck"] != token:
        return Decision(healthy=False, verdict="UNKNOWN", summary=f"UNKNOWN: {NOT_JUDGED}")
    if sorted(facts["judged"] or ()) != sorted(facts["hosts"]) or not facts["hosts"]:
        return Decision(healthy=False, verdict="UNKNOWN", summary=f"UNKNOWN: {OTHER_HOSTS}")
    return Decision(healthy=facts["healthy"] is True, verdict=str(facts["verdict"]), summary=str(facts["summary"]))
