"""Rules before resources. Adding one: a function in the module of its subject, a line here, a row in its test."""

from __future__ import annotations

from stacks.rules.base import Asked, Finding, Rule
from stacks.rules.hosts import (
    bad_units_absolute,
    count_maximum,
    count_positive,
    deadline_positive,
    evidence_root_absolute,
    instance_type_known,
    instance_type_provider,
    inventory_hosts,
    inventory_key,
    inventory_present,
    software_known,
    tags_named,
    ttl_positive,
    versions_numbered,
    zone_in_region,
)
from stacks.rules.image import image_architecture, image_locked
from stacks.rules.network import efa_maximum, efa_supported, ssh_from, ssh_port, ssh_user
from stacks.rules.storage import (
    volume_instance_cap,
    volume_iops,
    volume_iops_ratio,
    volume_size,
    volume_throughput,
    volume_throughput_ratio,
)

RULES: tuple[Rule, ...] = (
    instance_type_known,
    instance_type_provider,
    count_positive,
    count_maximum,
    zone_in_region,
    software_known,
    versions_numbered,
    ttl_positive,
    deadline_positive,
    evidence_root_absolute,
    bad_units_absolute,
    tags_named,
    image_locked,
    image_architecture,
    efa_supported,
    efa_maximum,
    ssh_port,
    ssh_user,
    ssh_from,
    volume_size,
    volume_iops,
    volume_iops_ratio,
    volume_throughput,
    volume_throughput_ratio,
    volume_instance_cap,
    inventory_present,
    inventory_key,
    inventory_hosts,
)

__all__ = ["RULES", "Asked", "Finding", "Rule", "judge"]


def judge(asked: Asked) -> list[Finding]:
    """What every rule found, in the order of the list."""
    return [finding for rule in RULES for finding in rule(asked)]
