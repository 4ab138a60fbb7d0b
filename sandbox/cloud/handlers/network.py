# ruff: noqa: ARG002 - every handler has the same methods with the same arguments
"""VPC, subnet, internet gateway, route table, route and association: all of it lives in moto."""

from __future__ import annotations

from typing import Any

from profiles.errors import ConfigError
from sandbox.cloud.errors import AwsError
from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties


class Vpc(Handler):
    """A VPC and its two DNS attributes."""

    token = "aws:ec2/vpc:Vpc"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        region = inputs.get("region")
        vpc = cloud.call(
            "create_vpc",
            region,
            CidrBlock=inputs.get("cidrBlock"),
            InstanceTenancy=inputs.get("instanceTenancy"),
            TagSpecifications=cloud.tag_specification("vpc", inputs),
        )["Vpc"]
        vpc_id = vpc["VpcId"]
        self._set_dns(cloud, vpc_id, inputs)
        return Created(vpc_id, self.read(cloud, vpc_id, inputs) or {})

    @staticmethod
    def _set_dns(cloud: Session, vpc_id: str, inputs: Properties) -> None:
        for argument, name in (("EnableDnsSupport", "enableDnsSupport"), ("EnableDnsHostnames", "enableDnsHostnames")):
            if name in inputs:
                value = {"Value": inputs[name]}
                cloud.call("modify_vpc_attribute", inputs.get("region"), VpcId=vpc_id, **{argument: value})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        region = state.get("region")
        answer = cloud.call_unless_gone("describe_vpcs", region, VpcIds=[resource_id])
        if not answer or not answer["Vpcs"]:
            return None
        vpc = answer["Vpcs"][0]
        mine = [{"Name": "vpc-id", "Values": [resource_id]}]
        groups = cloud.call("describe_security_groups", region, Filters=mine)["SecurityGroups"]
        tables = cloud.call("describe_route_tables", region, Filters=mine)["RouteTables"]
        main = next((t["RouteTableId"] for t in tables if any(a.get("Main") for a in t["Associations"])), None)
        return {
            **self.common(cloud, f"vpc/{resource_id}", vpc, state),
            "cidrBlock": vpc["CidrBlock"],
            "instanceTenancy": vpc.get("InstanceTenancy", "default"),
            "enableDnsSupport": _attribute(cloud, region, resource_id, "enableDnsSupport"),
            "enableDnsHostnames": _attribute(cloud, region, resource_id, "enableDnsHostnames"),
            "defaultSecurityGroupId": next((g["GroupId"] for g in groups if g["GroupName"] == "default"), None),
            "mainRouteTableId": main,
            "defaultRouteTableId": main,
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        self._set_dns(cloud, resource_id, inputs)
        return super().update(cloud, resource_id, state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("delete_vpc", state.get("region"), VpcId=resource_id)


def _attribute(cloud: Session, region: str | None, vpc_id: str, name: str) -> bool:
    answer = cloud.call("describe_vpc_attribute", region, VpcId=vpc_id, Attribute=name)
    return bool(answer[name[0].upper() + name[1:]]["Value"])


class Subnet(Handler):
    """A subnet in one zone."""

    token = "aws:ec2/subnet:Subnet"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        subnet = cloud.call(
            "create_subnet",
            inputs.get("region"),
            VpcId=inputs["vpcId"],
            CidrBlock=inputs.get("cidrBlock"),
            AvailabilityZone=inputs.get("availabilityZone"),
            AvailabilityZoneId=inputs.get("availabilityZoneId"),
            TagSpecifications=cloud.tag_specification("subnet", inputs),
        )["Subnet"]
        self._set_public(cloud, subnet["SubnetId"], inputs)
        return Created(subnet["SubnetId"], self.read(cloud, subnet["SubnetId"], inputs) or {})

    @staticmethod
    def _set_public(cloud: Session, subnet_id: str, inputs: Properties) -> None:
        value = {"Value": bool(inputs.get("mapPublicIpOnLaunch"))}
        cloud.call("modify_subnet_attribute", inputs.get("region"), SubnetId=subnet_id, MapPublicIpOnLaunch=value)

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        answer = cloud.call_unless_gone("describe_subnets", state.get("region"), SubnetIds=[resource_id])
        if not answer or not answer["Subnets"]:
            return None
        subnet = answer["Subnets"][0]
        return {
            **self.common(cloud, f"subnet/{resource_id}", subnet, state),
            "vpcId": subnet["VpcId"],
            "cidrBlock": subnet["CidrBlock"],
            "availabilityZone": subnet["AvailabilityZone"],
            "availabilityZoneId": subnet.get("AvailabilityZoneId"),
            "mapPublicIpOnLaunch": bool(subnet.get("MapPublicIpOnLaunch")),
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        self._set_public(cloud, resource_id, inputs)
        return super().update(cloud, resource_id, state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("delete_subnet", state.get("region"), SubnetId=resource_id)


class InternetGateway(Handler):
    """An internet gateway, attached where a VPC is given."""

    token = "aws:ec2/internetGateway:InternetGateway"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        gateway = cloud.call(
            "create_internet_gateway",
            inputs.get("region"),
            TagSpecifications=cloud.tag_specification("internet-gateway", inputs),
        )["InternetGateway"]
        gateway_id = gateway["InternetGatewayId"]
        if inputs.get("vpcId"):
            cloud.call(
                "attach_internet_gateway",
                inputs.get("region"),
                InternetGatewayId=gateway_id,
                VpcId=inputs["vpcId"],
            )
        return Created(gateway_id, self.read(cloud, gateway_id, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        region = state.get("region")
        answer = cloud.call_unless_gone("describe_internet_gateways", region, InternetGatewayIds=[resource_id])
        if not answer or not answer["InternetGateways"]:
            return None
        gateway = answer["InternetGateways"][0]
        attached = gateway.get("Attachments") or []
        return {
            **self.common(cloud, f"internet-gateway/{resource_id}", gateway, state),
            "vpcId": attached[0]["VpcId"] if attached else None,
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        if state.get("vpcId") != inputs.get("vpcId"):
            self._detach(cloud, resource_id, state)
            if inputs.get("vpcId"):
                cloud.call(
                    "attach_internet_gateway",
                    inputs.get("region"),
                    InternetGatewayId=resource_id,
                    VpcId=inputs["vpcId"],
                )
        return super().update(cloud, resource_id, state, inputs)

    @staticmethod
    def _detach(cloud: Session, gateway_id: str, state: Properties) -> None:
        if not state.get("vpcId"):
            return
        try:
            cloud.call_unless_gone(
                "detach_internet_gateway",
                state.get("region"),
                InternetGatewayId=gateway_id,
                VpcId=state["vpcId"],
            )
        except AwsError as error:
            if error.code != "Gateway.NotAttached":
                raise

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        self._detach(cloud, resource_id, state)
        cloud.call_unless_gone("delete_internet_gateway", state.get("region"), InternetGatewayId=resource_id)


TARGETS = (("gatewayId", "GatewayId"), ("natGatewayId", "NatGatewayId"), ("networkInterfaceId", "NetworkInterfaceId"))


def route_arguments(route: Properties) -> dict[str, Any]:
    """Destination and target of a route as EC2's calls take them, from either spelling of the destination."""
    ipv4 = route.get("destinationCidrBlock") or route.get("cidrBlock")
    ipv6 = route.get("destinationIpv6CidrBlock") or route.get("ipv6CidrBlock")
    arguments = {argument: route[name] for name, argument in TARGETS if route.get(name)}
    return {**destination(ipv4, ipv6), **arguments}


def destination(ipv4: str | None, ipv6: str | None) -> dict[str, str]:
    """The destination of a route; exactly one of the two must be given."""
    if ipv4:
        return {"DestinationCidrBlock": ipv4}
    if ipv6:
        return {"DestinationIpv6CidrBlock": ipv6}
    raise ConfigError("a route needs destinationCidrBlock or destinationIpv6CidrBlock")
