"""Settings and catalogue in, plan out: pure, and everything that a program declares is decided here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from images import lock as image_lock
from images.lock import Image
from profiles import catalog
from profiles.errors import ConfigError, Problem
from profiles.models import NetworkCards
from stacks import rules, settings
from stacks.rules import Asked, Finding
from stacks.settings import InventoryHost, Settings

VPC_CIDR = "10.77.0.0/16"
SUBNET_CIDR = "10.77.0.0/18"  # 16,379 addresses: 64 hosts of 33 interfaces need 64, for an efa-only one has none


@dataclass(frozen=True)
class Interface:
    """A network interface of a host: network card, device index on that card, ``interface`` (ENA) or ``efa-only``."""

    card: int
    device: int
    kind: str


@dataclass(frozen=True)
class PlannedHost:
    """A host to make."""

    name: str
    instance_type: str
    efa_count: int


@dataclass(frozen=True)
class Plan:
    """What the program declares. ``hosts`` is empty for a static stack, whose hosts are the settings' inventory."""

    settings: Settings
    hosts: tuple[PlannedHost, ...]
    inventory: tuple[InventoryHost, ...]
    interfaces: tuple[Interface, ...]
    image: Image | None
    cluster: bool
    ssh_from: str
    warnings: tuple[Finding, ...]

    def tags(self, stack: str, name: str) -> dict[str, str]:
        """The tags of one resource. ``ttl`` counts from its creation: a point in time would differ in every run."""
        return {
            "Name": f"{stack}-{name}",
            "project": self.settings.project,
            "owner": self.settings.owner,
            "stack": stack,
            "ttl": f"{self.settings.ttl_hours}h",
        }


def make(config: Mapping[str, str]) -> Plan:
    """The plan of a stack from its raw configuration. Raises ConfigError with everything that is wrong."""
    asked_for, type_problems = settings.read(config)
    found = judge(asked_for)
    wrong = {problem.path.split(".")[0].split("[")[0] for problem in type_problems}
    value_problems = [
        Problem(
            finding.problem.path,
            finding.problem.found,
            finding.problem.expected,
            f"{finding.problem.fix} [{finding.rule}]",
        )
        for finding in found
        if not finding.warning and finding.problem.path.split(".")[0].split("[")[0] not in wrong
    ]
    problems = [*type_problems, *value_problems]
    if problems:
        raise ConfigError("the stack's configuration is wrong; nothing was changed", problems)
    return of(asked_for, tuple(finding for finding in found if finding.warning))


def judge(asked_for: Settings) -> list[Finding]:
    """What the rules say about these settings."""
    lock = image_lock.load()
    profile = catalog.load(asked_for.instance_type)
    image = lock.find(asked_for.provider, asked_for.image, asked_for.region) if asked_for.provider == "aws" else None
    return rules.judge(Asked(asked_for, profile, image, lock))


def of(asked_for: Settings, warnings: tuple[Finding, ...] = ()) -> Plan:
    """The plan for settings that the rules found right."""
    if asked_for.provider == "static":
        return Plan(asked_for, (), asked_for.inventory, (), None, cluster=False, ssh_from="", warnings=warnings)
    profile = catalog.load(asked_for.instance_type)
    cards = profile.network if profile else None
    return Plan(
        settings=asked_for,
        hosts=tuple(
            PlannedHost(f"node-{index}", asked_for.instance_type, asked_for.efa_count)
            for index in range(asked_for.count)
        ),
        inventory=(),
        interfaces=interfaces(cards, asked_for.efa_count),
        image=image_lock.load().find(asked_for.provider, asked_for.image, asked_for.region),
        # Not with the number of hosts: a second host must not replace the first. Without EFA, nearness buys nothing.
        cluster=asked_for.efa_count > 0,
        ssh_from=asked_for.ssh_from or VPC_CIDR,
        warnings=warnings,
    )


def interfaces(cards: NetworkCards | None, efa_count: int) -> tuple[Interface, ...]:
    """AWS's current layout: ENA at card 0 device 0; ``efa-only`` at device 1 of card 0, device 0 of every other card.

    Cards that cannot carry an EFA (card 0 of p6-b300) get none. Source: AWS, EC2 user guide, "Maximize network
    bandwidth on EFA instance types" (efa-acc-inst-types), read 2026.
    """
    primary = Interface(0, 0, "interface")
    if cards is None or efa_count < 1:
        return (primary,)
    chosen = sorted(cards.efa_cards.value)[:efa_count]
    return (primary, *(Interface(card, 1 if card == 0 else 0, "efa-only") for card in chosen))
