# ruff: noqa: ARG002 - every handler has the same methods with the same arguments
"""Elastic address, its association, and a network interface on its own."""

from __future__ import annotations

from sandbox.cloud.errors import AwsError
from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties


class Eip(Handler):
    """An elastic address. Its public address is a loopback one, at which the associated instance's host answers."""

    token = "aws:ec2/eip:Eip"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        region = inputs.get("region")
        allocation = cloud.call(
            "allocate_address",
            region,
            Domain=inputs.get("domain", "vpc"),
            TagSpecifications=cloud.tag_specification("elastic-ip", inputs),
        )["AllocationId"]
        cloud.control.put(f"/addresses/{allocation}", {"region": region or cloud.region})
        if inputs.get("instance") or inputs.get("networkInterface"):
            _associate(cloud, allocation, inputs.get("instance"), inputs.get("networkInterface"), region)
        return Created(allocation, self.read(cloud, allocation, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        answer = cloud.call_unless_gone("describe_addresses", state.get("region"), AllocationIds=[resource_id])
        kept = cloud.control.get("/addresses").get(resource_id)
        if not answer or not answer["Addresses"] or kept is None:
            return None
        address = answer["Addresses"][0]
        return {
            **self.common(cloud, f"elastic-ip/{resource_id}", address, state),
            "allocationId": resource_id,
            "domain": address.get("Domain", "vpc"),
            "associationId": address.get("AssociationId") or None,
            "instance": address.get("InstanceId") or None,
            "networkInterface": address.get("NetworkInterfaceId") or None,
            "publicIp": kept["address"],
            "publicDns": f"ec2-{kept['address'].replace('.', '-')}.compute-1.amazonaws.com",
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        if any(state.get(key) != inputs.get(key) for key in ("instance", "networkInterface") if key in inputs):
            _disassociate(cloud, resource_id, state.get("associationId"), inputs.get("region"))
            _associate(cloud, resource_id, inputs.get("instance"), inputs.get("networkInterface"), inputs.get("region"))
        super().update(cloud, resource_id, state, inputs)
        return self.read(cloud, resource_id, inputs) or {}

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        _disassociate(cloud, resource_id, state.get("associationId"), state.get("region"))
        cloud.call_unless_gone("release_address", state.get("region"), AllocationId=resource_id)
        cloud.control.delete(f"/addresses/{resource_id}")


class EipAssociation(Handler):
    """The use of an elastic address by an instance."""

    token = "aws:ec2/eipAssociation:EipAssociation"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        if not inputs.get("allocationId"):
            raise AwsError("MissingParameter", "eipAssociation needs an allocationId")
        association = _associate(
            cloud,
            inputs["allocationId"],
            inputs.get("instanceId"),
            inputs.get("networkInterfaceId"),
            inputs.get("region"),
        )
        return Created(association, self.read(cloud, association, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        mine = [{"Name": "association-id", "Values": [resource_id]}]
        addresses = cloud.call("describe_addresses", state.get("region"), Filters=mine)["Addresses"]
        if not addresses:
            return None
        allocation = addresses[0]["AllocationId"]
        kept = cloud.control.get("/addresses").get(allocation, {})
        return {
            "allocationId": allocation,
            "instanceId": addresses[0].get("InstanceId"),
            "networkInterfaceId": addresses[0].get("NetworkInterfaceId"),
            "publicIp": kept.get("address"),
            "region": state.get("region") or cloud.region,
        }

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        _disassociate(cloud, state["allocationId"], resource_id, state.get("region"))


def _associate(cloud: Session, allocation: str, instance: str | None, nic: str | None, region: str | None) -> str:
    association = cloud.call(
        "associate_address",
        region,
        AllocationId=allocation,
        InstanceId=None if nic else instance,
        NetworkInterfaceId=nic,
    )["AssociationId"]
    cloud.control.post(f"/addresses/{allocation}/associate", {"instance_id": instance or _owner(cloud, nic, region)})
    return str(association)


def _owner(cloud: Session, nic: str | None, region: str | None) -> str:
    """The instance that an interface is attached to; "" where there is none."""
    if not nic:
        return ""
    found = cloud.call("describe_network_interfaces", region, NetworkInterfaceIds=[nic])["NetworkInterfaces"]
    return str(found[0].get("Attachment", {}).get("InstanceId", "")) if found else ""


def _disassociate(cloud: Session, allocation: str, association: str | None, region: str | None) -> None:
    if association:
        cloud.call_unless_gone("disassociate_address", region, AssociationId=association)
    cloud.control.post(f"/addresses/{allocation}/associate", {"instance_id": ""})


class NetworkInterface(Handler):
    """An interface on its own; moto keeps it but for its type, which the sandbox keeps."""

    token = "aws:ec2/networkInterface:NetworkInterface"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        kind = inputs.get("interfaceType", "interface")
        nic = cloud.call(
            "create_network_interface",
            inputs.get("region"),
            SubnetId=inputs["subnetId"],
            Description=inputs.get("description"),
            Groups=inputs.get("securityGroups"),
            TagSpecifications=cloud.tag_specification("network-interface", inputs),
        )["NetworkInterface"]
        nic_id = nic["NetworkInterfaceId"]
        cloud.control.put(f"/kept/network-interfaces/{nic_id}", {"interfaceType": kind})
        return Created(nic_id, self.read(cloud, nic_id, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        answer = cloud.call_unless_gone(
            "describe_network_interfaces", state.get("region"), NetworkInterfaceIds=[resource_id]
        )
        if not answer or not answer["NetworkInterfaces"]:
            return None
        nic = answer["NetworkInterfaces"][0]
        kept = cloud.control.get("/kept/network-interfaces").get(resource_id, {})
        return {
            **self.common(cloud, f"network-interface/{resource_id}", {"Tags": nic.get("TagSet")}, state),
            "subnetId": nic["SubnetId"],
            "description": nic.get("Description") or None,
            "interfaceType": kept.get("interfaceType", "interface"),
            "securityGroups": sorted(group["GroupId"] for group in nic.get("Groups", [])),
            "macAddress": nic.get("MacAddress"),
            "privateIp": nic.get("PrivateIpAddress"),
            "privateIps": [nic["PrivateIpAddress"]] if nic.get("PrivateIpAddress") else [],
            "privateDnsName": nic.get("PrivateDnsName"),
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        if inputs.get("securityGroups") and inputs["securityGroups"] != state.get("securityGroups"):
            cloud.call(
                "modify_network_interface_attribute",
                inputs.get("region"),
                NetworkInterfaceId=resource_id,
                Groups=inputs["securityGroups"],
            )
        return super().update(cloud, resource_id, state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("delete_network_interface", state.get("region"), NetworkInterfaceId=resource_id)
        cloud.control.delete(f"/kept/network-interfaces/{resource_id}")
