"""The AWS half of the program: network, image, storage and instances put together."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from profiles.errors import ConfigError
from stacks.aws import instances, network
from stacks.gate import GateHost
from stacks.plan import Plan


def hosts(plan: Plan) -> list[GateHost]:
    """Declare everything, and hand the hosts to the gate."""
    if plan.image is None:
        raise ConfigError("the plan has no image", remedy="The rule image.locked stops such a plan.")
    stack = pulumi.get_stack()
    provider = aws.Provider("aws", region=plan.settings.region)
    opts = pulumi.ResourceOptions(provider=provider)
    net = network.declare(plan, stack, opts)
    return list(instances.declare(plan, stack, plan.image, net, opts))
