"""The program: plan, resources, gate. Nothing is declared before the plan stands."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env, is_config_secret

from profiles.errors import ConfigError, Problem
from stacks import plan as plans
from stacks import private_key, static
from stacks.gate import GateHost, HealthGate, begin, conclude
from stacks.plan import Plan
from stacks.settings import NAMESPACE


def run() -> None:
    """Declare the stack. A wrong configuration ends it with every problem, before any resource."""
    begin()
    try:
        plan = plans.make(configuration())
        _require_key(plan)
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in plan.warnings:
        pulumi.log.warn(str(warning))
    if plan.settings.provider == "static":
        hosts = static.hosts(plan, pulumi.Output.secret(plan.settings.ssh_private_key))
    else:
        from stacks.aws import stack  # the AWS SDK costs half a second that a static stack does not need

        hosts = stack.hosts(plan)
    conclude(_gate(plan, hosts), {"hosts": [_export(host) for host in hosts]})


def configuration() -> dict[str, str]:
    """This project's configuration as the engine passes it: key without namespace -> text."""
    raw: dict[str, Any] = {**get_config_env(), **CONFIG.get()}
    return {key.removeprefix(f"{NAMESPACE}:"): value for key, value in raw.items() if key.startswith(f"{NAMESPACE}:")}


def _require_key(plan: Plan) -> None:
    """A private key in the clear would be in the stack's file, and in every output that repeats the configuration."""
    key = plan.settings.ssh_private_key
    if not key:
        return
    wrong = private_key.problem("sshPrivateKey", key.encode())
    if not is_config_secret(f"{NAMESPACE}:sshPrivateKey"):
        fix = "pulumi config set --secret, then a new key."
        wrong = Problem("sshPrivateKey", "a key in the clear", "a secret", fix)
    if wrong:
        raise ConfigError("the stack's configuration is wrong; nothing was changed", [wrong])


def _gate(plan: Plan, hosts: list[GateHost]) -> HealthGate:
    asked = plan.settings
    return HealthGate(
        "gate",
        hosts=hosts,
        burn_in=asked.burn_in,
        deadline_s=asked.deadline_seconds,
        software=asked.software_profile,
        driver=asked.driver or None,
        cuda=asked.cuda or None,
        evidence_root=asked.evidence_root,
        bad_units=asked.bad_units or None,
    )


def _export(host: GateHost) -> dict[str, Any]:
    return {
        "name": host.name,
        "address": host.address,
        "instanceId": host.instance_id,
        "instanceType": host.instance_type,
    }
