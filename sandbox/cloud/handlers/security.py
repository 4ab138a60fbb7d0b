# ruff: noqa: ARG002 - every handler has the same methods with the same arguments
"""Security group with inline rules, and the standalone ingress and egress rules."""

from __future__ import annotations

import time
from typing import Any

from sandbox.cloud.errors import AwsError
from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties

DIRECTIONS = ("ingress", "egress")
IN_USE_S = 10.0


class SecurityGroup(Handler):
    """A security group. As in the real provider, AWS's default allow-all egress rule is removed at creation."""

    token = "aws:ec2/securityGroup:SecurityGroup"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        region = inputs.get("region")
        group_id = cloud.call(
            "create_security_group",
            region,
            GroupName=inputs["name"],
            Description=inputs.get("description", "Managed by Pulumi"),
            VpcId=inputs.get("vpcId"),
            TagSpecifications=cloud.tag_specification("security-group", inputs),
        )["GroupId"]
        group = _describe(cloud, group_id, inputs)
        if group and group.get("IpPermissionsEgress"):
            cloud.call(
                "revoke_security_group_egress",
                region,
                GroupId=group_id,
                IpPermissions=group["IpPermissionsEgress"],
            )
        for direction in DIRECTIONS:
            self._authorize(cloud, group_id, direction, inputs.get(direction) or [], region)
        return Created(group_id, self.read(cloud, group_id, inputs) or {})

    @staticmethod
    def _authorize(cloud: Session, group_id: str, direction: str, rules: list[Properties], region: str | None) -> None:
        if rules:
            permissions = [_inline_permission(rule, group_id) for rule in rules]
            action = f"authorize_security_group_{direction}"
            cloud.call(action, region, GroupId=group_id, IpPermissions=permissions)

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        group = _describe(cloud, resource_id, state)
        if group is None:
            return None
        return {
            **self.common(cloud, f"security-group/{resource_id}", group, state),
            "name": group["GroupName"],
            "description": group["Description"],
            "vpcId": group.get("VpcId"),
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        region = inputs.get("region")
        for direction in DIRECTIONS:
            old, new = state.get(direction) or [], inputs.get(direction) or []
            gone = [_inline_permission(rule, resource_id) for rule in old if rule not in new]
            if gone:
                action = f"revoke_security_group_{direction}"
                cloud.call_unless_gone(action, region, GroupId=resource_id, IpPermissions=gone)
            self._authorize(cloud, resource_id, direction, [rule for rule in new if rule not in old], region)
        return super().update(cloud, resource_id, state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        _wait_until_unused(cloud, resource_id, state)
        cloud.call_unless_gone("delete_security_group", state.get("region"), GroupId=resource_id)


def _describe(cloud: Session, group_id: str, state: Properties) -> dict[str, Any] | None:
    answer = cloud.call_unless_gone("describe_security_groups", state.get("region"), GroupIds=[group_id])
    return next(iter(answer["SecurityGroups"]), None) if answer else None


def _wait_until_unused(cloud: Session, group_id: str, state: Properties) -> None:
    """AWS refuses to delete a group that an interface uses; moto does not (5.2.5). The real provider tries for
    minutes, since an instance may be on its way out; this one for seconds."""
    deadline = time.monotonic() + IN_USE_S
    while _users(cloud, group_id, state):
        if time.monotonic() > deadline:
            text = f"resource {group_id} has a dependent object"
            raise AwsError("DependencyViolation", text, action="DeleteSecurityGroup")
        cloud.sleep(0.2, f"waiting for what uses {group_id} to go")


def _users(cloud: Session, group_id: str, state: Properties) -> list[Any]:
    mine = [{"Name": "group-id", "Values": [group_id]}]
    found: list[Any] = cloud.call("describe_network_interfaces", state.get("region"), Filters=mine)["NetworkInterfaces"]
    return found


def _inline_permission(rule: Properties, group_id: str) -> dict[str, Any]:
    groups = [*(rule.get("securityGroups") or []), *([group_id] if rule.get("self") else [])]
    text = {"Description": rule["description"]} if rule.get("description") else {}
    permission: dict[str, Any] = {
        "IpProtocol": _protocol(rule["protocol"]),
        "IpRanges": [{"CidrIp": cidr, **text} for cidr in rule.get("cidrBlocks") or []],
        "Ipv6Ranges": [{"CidrIpv6": cidr, **text} for cidr in rule.get("ipv6CidrBlocks") or []],
        "UserIdGroupPairs": [{"GroupId": group, **text} for group in groups],
    }
    if permission["IpProtocol"] != "-1":
        permission |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    return {key: value for key, value in permission.items() if value != []}


def _protocol(text: str) -> str:
    return "-1" if text.lower() == "all" else text.lower()


class _Rule(Handler):
    """One rule of a group; ``direction`` is which side."""

    direction: str

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        region = inputs.get("region")
        answer = cloud.call(
            f"authorize_security_group_{self.direction}",
            region,
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_rule_permission(inputs)],
        )
        rule_id = answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        if cloud.all_tags(inputs):
            cloud.retag(rule_id, {}, cloud.all_tags(inputs), region)
        return Created(rule_id, self.read(cloud, rule_id, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        answer = cloud.call_unless_gone(
            "describe_security_group_rules",
            state.get("region"),
            SecurityGroupRuleIds=[resource_id],
        )
        if not answer or not answer["SecurityGroupRules"]:
            return None
        rule = answer["SecurityGroupRules"][0]
        common = self.common(cloud, f"security-group-rule/{resource_id}", {}, state)
        return {
            "arn": common["arn"],
            "region": common["region"],
            "tagsAll": cloud.all_tags(state),
            "securityGroupRuleId": resource_id,
            "securityGroupId": rule["GroupId"],
            "ipProtocol": rule["IpProtocol"],
            "fromPort": _port(rule.get("FromPort"), state.get("fromPort")),
            "toPort": _port(rule.get("ToPort"), state.get("toPort")),
            "cidrIpv4": rule.get("CidrIpv4"),
            "cidrIpv6": rule.get("CidrIpv6"),
            "prefixListId": rule.get("PrefixListId"),
            "referencedSecurityGroupId": (rule.get("ReferencedGroupInfo") or {}).get("GroupId"),
            "description": rule.get("Description") or None,
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        request = {
            "IpProtocol": _protocol(inputs["ipProtocol"]),
            "FromPort": inputs.get("fromPort"),
            "ToPort": inputs.get("toPort"),
            "CidrIpv4": inputs.get("cidrIpv4"),
            "CidrIpv6": inputs.get("cidrIpv6"),
            "PrefixListId": inputs.get("prefixListId"),
            "ReferencedGroupId": inputs.get("referencedSecurityGroupId"),
            "Description": inputs.get("description"),
        }
        rule = {key: value for key, value in request.items() if value is not None}
        cloud.call(
            "modify_security_group_rules",
            inputs.get("region"),
            GroupId=inputs["securityGroupId"],
            SecurityGroupRules=[{"SecurityGroupRuleId": resource_id, "SecurityGroupRule": rule}],
        )
        return super().update(cloud, resource_id, state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        if self.read(cloud, resource_id, state) is None:
            return
        cloud.call_unless_gone(
            f"revoke_security_group_{self.direction}",
            state.get("region"),
            GroupId=state["securityGroupId"],
            SecurityGroupRuleIds=[resource_id],
        )


class IngressRule(_Rule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"  # noqa: S105 - a type token
    direction = "ingress"


class EgressRule(_Rule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"  # noqa: S105 - a type token
    direction = "egress"


def _port(found: int | None, wanted: int | None) -> int | None:
    """-1 is how EC2 says "no port"; a program that names no port has not changed."""
    return wanted if found in (None, -1) else found


def _rule_permission(inputs: Properties) -> dict[str, Any]:
    text = {"Description": inputs["description"]} if inputs.get("description") else {}
    permission: dict[str, Any] = {"IpProtocol": _protocol(inputs["ipProtocol"])}
    if inputs.get("fromPort") is not None:
        permission["FromPort"] = inputs["fromPort"]
    if inputs.get("toPort") is not None:
        permission["ToPort"] = inputs["toPort"]
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **text}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **text}]
    if inputs.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": inputs["prefixListId"], **text}]
    if inputs.get("referencedSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"], **text}]
    return permission
