"""The hosts: one launch template for what they share, one instance each, named by host."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from images.lock import Image
from stacks.aws import image as images
from stacks.aws.network import Network
from stacks.aws.storage import root_volume
from stacks.gate import GateHost, SshKey
from stacks.plan import Interface, Plan, PlannedHost


@dataclass(frozen=True)
class Fleet:
    """What all hosts share."""

    template: aws.ec2.LaunchTemplate
    login: SshKey
    network: Network


def declare(
    plan: Plan, stack: str, image: Image, network: Network, opts: pulumi.ResourceOptions
) -> tuple[GateHost, ...]:
    """The hosts as the gate takes them."""
    login = SshKey("login-key")
    pair = aws.ec2.KeyPair("login", public_key=login.public_key, tags=plan.tags(stack, "login"), opts=opts)
    fleet = Fleet(_template(plan, stack, image, network, pair, opts), login, network)
    return tuple(_host(plan, stack, planned, fleet, opts) for planned in plan.hosts)


def _template(
    plan: Plan, stack: str, image: Image, network: Network, pair: aws.ec2.KeyPair, opts: pulumi.ResourceOptions
) -> aws.ec2.LaunchTemplate:
    """Only a launch template can say ``efa-only`` and the network card; it carries no tags of the instances, since a
    new version replaces them all."""
    group = _cluster(plan, stack, opts)
    return aws.ec2.LaunchTemplate(
        "host",
        image_id=image.id,
        instance_type=plan.settings.instance_type,
        key_name=pair.key_name,
        network_interfaces=[_interface(interface, network) for interface in plan.interfaces],
        block_device_mappings=[root_volume(plan.settings.root_volume, image)],
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",  # IMDSv2 only
            http_put_response_hop_limit=2,  # one more than the host itself: containers are a hop away
        ),
        placement=aws.ec2.LaunchTemplatePlacementArgs(group_name=group.name) if group is not None else None,
        update_default_version=True,
        tags=plan.tags(stack, "host"),
        opts=opts,
    )


def _cluster(plan: Plan, stack: str, opts: pulumi.ResourceOptions) -> aws.ec2.PlacementGroup | None:
    if not plan.cluster:
        return None
    return aws.ec2.PlacementGroup("cluster", strategy="cluster", tags=plan.tags(stack, "cluster"), opts=opts)


def _interface(interface: Interface, network: Network) -> aws.ec2.LaunchTemplateNetworkInterfaceArgs:
    return aws.ec2.LaunchTemplateNetworkInterfaceArgs(
        network_card_index=interface.card,
        device_index=interface.device,
        interface_type=interface.kind,
        subnet_id=network.subnet.id,
        security_groups=[network.group.id],
        delete_on_termination="true",
    )


def _host(plan: Plan, stack: str, planned: PlannedHost, fleet: Fleet, opts: pulumi.ResourceOptions) -> GateHost:
    host_key = SshKey(f"{planned.name}-host-key")
    tags = {
        **plan.tags(stack, planned.name),
        "Name": planned.name,
    }  # as in every finding; the stack is a tag of its own
    instance = aws.ec2.Instance(
        planned.name,
        launch_template=aws.ec2.InstanceLaunchTemplateArgs(
            id=fleet.template.id, version=fleet.template.latest_version.apply(str)
        ),
        user_data=images.user_data(host_key),
        user_data_replace_on_change=True,
        tags=tags,
        volume_tags=tags,
        opts=opts,
    )
    return GateHost(
        name=planned.name,
        address=_address(plan, stack, planned, instance, fleet.network, opts),
        instance_type=planned.instance_type,
        user=plan.settings.ssh_user,
        port=plan.settings.ssh_port,
        private_key=fleet.login.private_key,
        host_key=host_key.public_key,
        instance_id=instance.id,
        efa_count=planned.efa_count,
    )


def _address(
    plan: Plan,
    stack: str,
    planned: PlannedHost,
    instance: aws.ec2.Instance,
    network: Network,
    opts: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """The address to reach a host at. An instance with several interfaces gets no public one at launch, so it is given
    an Elastic IP afterwards."""
    if plan.settings.ssh_address == "private":
        return instance.private_ip
    waits = pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(depends_on=[network.route] if network.route else [])
    )
    address = aws.ec2.Eip(
        f"{planned.name}-address",
        domain="vpc",
        network_interface=instance.primary_network_interface_id,
        tags=plan.tags(stack, f"{planned.name}-address"),
        opts=waits,
    )
    return address.public_ip
