"""An instance: a record in moto, what moto drops kept by the sandbox, and a simulated host behind its address."""

from __future__ import annotations

import base64
from typing import Any

from sandbox.cloud import launch, limits
from sandbox.cloud.errors import AwsError, CancelledError, InitError
from sandbox.cloud.handlers import launching
from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.handlers.template import version_data
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties

GONE_STATES = ("terminated", "shutting-down")
RESTART_INPUTS = ("instanceType", "userData", "userDataBase64")


class Instance(Handler):
    """An instance whose ``privateIp`` is the loopback address at which its simulated host answers."""

    token = "aws:ec2/instance:Instance"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        region = inputs.get("region")
        reference, data = launching.template(cloud, inputs, region)
        request = launch.merged(inputs, data)
        limits.check_launch(request, launching.facts(cloud, request, region))
        host_name = (inputs.get("tags") or {}).get("Name", name)
        ticket = cloud.control.post("/launches", {"name": host_name, "instance_type": request["InstanceType"]})
        instance_id = launching.run(cloud, request, inputs, region)
        try:
            record = launching.record(cloud, request, host_name, reference, region)
            cloud.control.put(f"/instances/{instance_id}", record)
        except BaseException:
            cloud.call("terminate_instances", region, InstanceIds=[instance_id])
            raise
        outputs = self.read(cloud, instance_id, inputs) or {}
        try:
            cloud.sleep(ticket["delay_s"], f"waiting for {instance_id} to run")
        except CancelledError as error:
            raise InitError(instance_id, {**inputs, **outputs}, inputs, str(error)) from error
        return Created(instance_id, outputs)

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        region = state.get("region")
        described = describe(cloud, resource_id, region)
        if described is None:
            return None
        kept = _kept(cloud, resource_id)
        if kept is None:
            return None
        nics = described["NetworkInterfaces"]
        root = {**kept["root"], "volumeId": _root_volume_id(described)}
        public = kept["public_address"]
        observed = {
            **self.common(cloud, f"instance/{resource_id}", described, state),
            "ami": described["ImageId"],
            "instanceType": described["InstanceType"],
            "instanceState": described["State"]["Name"],
            "availabilityZone": described["Placement"]["AvailabilityZone"],
            "subnetId": described.get("SubnetId"),
            "vpcSecurityGroupIds": sorted(kept["nics"][0]["groups"]),
            "keyName": described.get("KeyName"),
            "placementGroup": kept["placement_group"] or None,
            "tenancy": "default",
            "primaryNetworkInterfaceId": nics[0]["NetworkInterfaceId"] if nics else None,
            "privateIp": kept["address"],
            "privateDns": described.get("PrivateDnsName"),
            "publicIp": public,
            "publicDns": f"ec2-{public.replace('.', '-')}.compute-1.amazonaws.com" if public else "",
            "associatePublicIpAddress": bool(public),
            "metadataOptions": _observed_over(state.get("metadataOptions"), kept["metadata"]),
            "rootBlockDevice": _observed_over(state.get("rootBlockDevice"), root),
            "ebsOptimized": bool(described.get("EbsOptimized")),
            "monitoring": described.get("Monitoring", {}).get("State") == "enabled",
            "sourceDestCheck": state.get("sourceDestCheck", True),
        }
        if kept["template"] and "ami" not in state:  # an import
            observed["launchTemplate"] = {
                "id": kept["template"]["id"],
                "version": str(kept["template"]["version"]),
            }
        return observed

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        region = inputs.get("region")
        changed = [name for name in RESTART_INPUTS if name in inputs and inputs.get(name) != state.get(name)]
        if changed:
            self._restart(cloud, resource_id, inputs, changed, region)
        self._update_kept(cloud, resource_id, state, inputs)
        self.retag(cloud, resource_id, state, inputs)
        return self.read(cloud, resource_id, inputs) or {}

    @staticmethod
    def _restart(cloud: Session, instance_id: str, inputs: Properties, changed: list[str], region: str | None) -> None:
        """Stop, change, start: the same instance with a new boot. Instance user data do not run cloud-init's
        once-per-instance parts again, so the SSH host key stays what it was."""
        kept = _kept(cloud, instance_id) or {}
        if "instanceType" in changed:
            request = {**kept.get("request", {}), "InstanceType": inputs["instanceType"]}
            limits.check_launch(request, launching.facts(cloud, request, region))
        cloud.call("stop_instances", region, InstanceIds=[instance_id])
        if "instanceType" in changed:
            value = {"Value": inputs["instanceType"]}
            cloud.call("modify_instance_attribute", region, InstanceId=instance_id, InstanceType=value)
        if "userData" in changed or "userDataBase64" in changed:
            encoded = base64.b64encode(launch.user_data(inputs, {}).encode())  # the API takes base64 inside its blob
            cloud.call("modify_instance_attribute", region, InstanceId=instance_id, UserData={"Value": encoded})
        cloud.call("start_instances", region, InstanceIds=[instance_id])
        cloud.control.post(
            f"/instances/{instance_id}/restart",
            {"instance_type": inputs["instanceType"]} if "instanceType" in changed else {},
        )

    @staticmethod
    def _update_kept(cloud: Session, instance_id: str, state: Properties, inputs: Properties) -> None:
        changes: Properties = {}
        for name, key in (("metadataOptions", "metadata"), ("rootBlockDevice", "root")):
            if inputs.get(name) and inputs[name] != state.get(name):
                changes[key] = {option: value for option, value in inputs[name].items() if option != "tags"}
        if "root" in changes:
            renamed = {launch.VOLUME[key]: value for key, value in changes["root"].items() if key in launch.VOLUME}
            kept = (_kept(cloud, instance_id) or {}).get("root", {})
            whole = {launch.VOLUME[key]: value for key, value in kept.items() if key in launch.VOLUME}
            refusal = next(limits.volume_errors({**whole, **renamed}), None)
            if refusal is not None:
                raise refusal
        if changes:
            cloud.control.post(f"/instances/{instance_id}/options", changes)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        region = state.get("region")
        if state.get("disableApiTermination") and not state.get("forceDestroy"):
            message = (
                f"The instance '{resource_id}' may not be terminated. Modify its 'disableApiTermination' attribute."
            )
            raise AwsError("OperationNotPermitted", message)
        if describe(cloud, resource_id, region) is not None:
            if state.get("disableApiTermination"):
                off = {"Value": False}
                cloud.call("modify_instance_attribute", region, InstanceId=resource_id, DisableApiTermination=off)
            cloud.call_unless_gone("terminate_instances", region, InstanceIds=[resource_id])
        cloud.control.delete(f"/instances/{resource_id}")

    def refine(self, cloud: Session, resource_id: str, name: str, new: Properties) -> bool:
        """Another spelling of the version that the instance already runs needs no replacement."""
        wanted = new.get("launchTemplate")
        if name != "launchTemplate" or not isinstance(wanted, dict):
            return True
        kept = _kept(cloud, resource_id)
        template = wanted.get("id") or wanted.get("name")
        if kept is None or not kept["template"] or not template:
            return True
        reference, _ = version_data(cloud, template, str(wanted.get("version", "$Default")), new.get("region"))
        return bool(reference != kept["template"])


def describe(cloud: Session, instance_id: str, region: str | None) -> dict[str, Any] | None:
    """What moto says about an instance that has not been terminated; None otherwise."""
    answer = cloud.call_unless_gone("describe_instances", region, InstanceIds=[instance_id])
    for reservation in (answer or {}).get("Reservations", []):
        for instance in reservation["Instances"]:
            if instance["State"]["Name"] not in GONE_STATES:
                found: dict[str, Any] = instance
                return found
    return None


def _kept(cloud: Session, instance_id: str) -> Properties | None:
    """What the sandbox keeps of an instance; None where it is gone."""
    record: Properties | None = cloud.control.get(f"/instances/{instance_id}")
    return record


def _root_volume_id(described: dict[str, Any]) -> str | None:
    """The volume at the root device, as moto attached it."""
    devices = described.get("BlockDeviceMappings") or []
    root = described.get("RootDeviceName")
    found = next((item for item in devices if item["DeviceName"] == root), devices[0] if devices else None)
    return str(found["Ebs"]["VolumeId"]) if found else None


def _observed_over(wanted: Properties | None, found: Properties) -> Properties:
    """The kept options; where the program names some, only those decide whether something changed."""
    if not wanted:
        return found
    return {**found, **{name: found.get(name, value) for name, value in wanted.items()}}
