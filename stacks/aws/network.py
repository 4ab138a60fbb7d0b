"""A network of its own for the stack: one subnet in one zone, since EFA does not cross zones."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from stacks.plan import SUBNET_CIDR, VPC_CIDR, Plan


@dataclass(frozen=True)
class Network:
    """Where the hosts live, and what they wait for before they have a way out."""

    subnet: aws.ec2.Subnet
    group: aws.ec2.SecurityGroup
    route: pulumi.Resource | None


def declare(plan: Plan, stack: str, opts: pulumi.ResourceOptions) -> Network:
    """VPC, subnet and security group; a way to the internet only where the hosts have public addresses."""
    vpc = aws.ec2.Vpc(
        "network",
        cidr_block=VPC_CIDR,
        enable_dns_hostnames=True,
        enable_dns_support=True,
        tags=plan.tags(stack, "network"),
        opts=opts,
    )
    subnet = aws.ec2.Subnet(
        f"subnet-{plan.settings.zone}",
        vpc_id=vpc.id,
        cidr_block=SUBNET_CIDR,
        availability_zone=plan.settings.zone,
        tags=plan.tags(stack, "subnet"),
        opts=opts,
    )
    route = _way_out(plan, stack, vpc, subnet, opts) if plan.settings.ssh_address == "public" else None
    return Network(subnet, _group(plan, stack, vpc, opts), route)


def _way_out(
    plan: Plan, stack: str, vpc: aws.ec2.Vpc, subnet: aws.ec2.Subnet, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id, tags=plan.tags(stack, "gateway"), opts=opts)
    table = aws.ec2.RouteTable(
        "routes",
        vpc_id=vpc.id,
        routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", gateway_id=gateway.id)],
        tags=plan.tags(stack, "routes"),
        opts=opts,
    )
    return aws.ec2.RouteTableAssociation(
        f"routes-{plan.settings.zone}", route_table_id=table.id, subnet_id=subnet.id, opts=opts
    )


def _group(plan: Plan, stack: str, vpc: aws.ec2.Vpc, opts: pulumi.ResourceOptions) -> aws.ec2.SecurityGroup:
    """SSH from where the stack says, and everything between the hosts.

    EFA needs all traffic to and from the group itself, both ways: egress to 0.0.0.0/0 alone is not enough for it
    (aws-ofi-nccl issue 663, gardener-extension-provider-aws issue 1832).
    """
    port = plan.settings.ssh_port
    return aws.ec2.SecurityGroup(
        "hosts",
        vpc_id=vpc.id,
        description="GPU hosts: SSH in, everything among themselves",
        ingress=[
            aws.ec2.SecurityGroupIngressArgs(
                protocol="tcp", from_port=port, to_port=port, cidr_blocks=[plan.ssh_from], description="SSH"
            ),
            aws.ec2.SecurityGroupIngressArgs(
                protocol="-1", from_port=0, to_port=0, self=True, description="EFA and everything between hosts"
            ),
        ],
        egress=[
            aws.ec2.SecurityGroupEgressArgs(
                protocol="-1", from_port=0, to_port=0, self=True, description="EFA and everything between hosts"
            ),
            aws.ec2.SecurityGroupEgressArgs(
                protocol="-1", from_port=0, to_port=0, cidr_blocks=["0.0.0.0/0"], description="Out"
            ),
        ],
        tags=plan.tags(stack, "hosts"),
        opts=opts,
    )
