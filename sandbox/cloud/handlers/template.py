# ruff: noqa: ARG002 - every handler has the same methods with the same arguments
"""Launch template, key pair and placement group."""

from __future__ import annotations

import secrets

from sandbox.cloud import codec, semantics
from sandbox.cloud.errors import AwsError
from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties


class LaunchTemplate(Handler):
    """A launch template; moto keeps its data whole. A change of the data makes a new version."""

    token = codec.TEMPLATE

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        template = cloud.call(
            "create_launch_template",
            inputs.get("region"),
            LaunchTemplateName=inputs["name"],
            VersionDescription=inputs.get("description"),
            LaunchTemplateData=codec.template_data(semantics.load(), inputs),
            TagSpecifications=cloud.tag_specification("launch-template", inputs),
        )["LaunchTemplate"]
        template_id = template["LaunchTemplateId"]
        return Created(template_id, self._observed(cloud, template_id, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        observed = self._observed(cloud, resource_id, state)
        if observed is not None and "name" not in state:  # an import: the data are wanted as well
            observed |= codec.template_inputs(semantics.load(), version_data(cloud, resource_id, "$Latest", None)[1])
        return observed

    def _observed(self, cloud: Session, template_id: str, state: Properties) -> Properties | None:
        region = state.get("region")
        answer = cloud.call_unless_gone("describe_launch_templates", region, LaunchTemplateIds=[template_id])
        if not answer or not answer["LaunchTemplates"]:
            return None
        template = answer["LaunchTemplates"][0]
        return {
            **self.common(cloud, f"launch-template/{template_id}", template, state),
            "name": template["LaunchTemplateName"],
            "latestVersion": template["LatestVersionNumber"],
            "defaultVersion": template["DefaultVersionNumber"],
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        region = inputs.get("region")
        table = semantics.load()
        old, new = codec.template_data(table, state), codec.template_data(table, inputs)
        latest = state.get("latestVersion")
        if old != new or state.get("description") != inputs.get("description"):
            version = cloud.call(
                "create_launch_template_version",
                region,
                LaunchTemplateId=resource_id,
                VersionDescription=inputs.get("description"),
                LaunchTemplateData=new,
            )["LaunchTemplateVersion"]
            latest = version["VersionNumber"]
        wanted = latest if inputs.get("updateDefaultVersion") else inputs.get("defaultVersion")
        if wanted is not None and wanted != state.get("defaultVersion"):
            cloud.call(
                "modify_launch_template",
                region,
                LaunchTemplateId=resource_id,
                DefaultVersion=str(wanted),
            )
        self.retag(cloud, resource_id, state, inputs)
        return self._observed(cloud, resource_id, inputs) or {}

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("delete_launch_template", state.get("region"), LaunchTemplateId=resource_id)


def version_data(cloud: Session, template: str, version: str, region: str | None) -> tuple[Properties, Properties]:
    """A launch template version: ``{id, name, version}`` and its data.

    Args:
        template: id, or name, of the template.
        version: a number, ``$Latest`` or ``$Default``.

    Raises:
        AwsError: there is no such template or version.
    """
    key = "LaunchTemplateId" if template.startswith("lt-") else "LaunchTemplateName"
    versions = cloud.call("describe_launch_template_versions", region, **{key: template})["LaunchTemplateVersions"]
    if version == "$Latest":
        found = max(versions, key=lambda item: item["VersionNumber"], default=None)
    elif version == "$Default":
        found = next((item for item in versions if item.get("DefaultVersion")), None)
    else:
        found = next((item for item in versions if str(item["VersionNumber"]) == version), None)
    if found is None:
        raise AwsError(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find the specified version '{version}' of the launch template '{template}'.",
        )
    reference = {
        "id": found["LaunchTemplateId"],
        "name": found["LaunchTemplateName"],
        "version": found["VersionNumber"],
    }
    return reference, found["LaunchTemplateData"]


class KeyPair(Handler):
    """An imported public key. The id is the key's name, as in the real provider."""

    token = "aws:ec2/keyPair:KeyPair"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        key_name = inputs["keyName"]
        cloud.call(
            "import_key_pair",
            inputs.get("region"),
            KeyName=key_name,
            PublicKeyMaterial=inputs["publicKey"].encode(),
            TagSpecifications=cloud.tag_specification("key-pair", inputs),
        )
        return Created(key_name, self.read(cloud, key_name, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        answer = cloud.call_unless_gone(
            "describe_key_pairs", state.get("region"), KeyNames=[resource_id], IncludePublicKey=True
        )
        if not answer or not answer["KeyPairs"]:
            return None
        pair = answer["KeyPairs"][0]
        return {
            **self.common(cloud, f"key-pair/{resource_id}", pair, state),
            "keyName": resource_id,
            "publicKey": state.get("publicKey") or pair.get("PublicKey"),
            "fingerprint": pair["KeyFingerprint"],
            "keyPairId": pair["KeyPairId"],
            "keyType": pair.get("KeyType", "ed25519"),
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        return super().update(cloud, state["keyPairId"], state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("delete_key_pair", state.get("region"), KeyName=resource_id)


class PlacementGroup(Handler):
    """A placement group. moto has none (5.2.5), so the sandbox keeps it."""

    token = "aws:ec2/placementGroup:PlacementGroup"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        group = inputs["name"]
        if inputs["strategy"] not in ("cluster", "partition", "spread"):
            raise AwsError("InvalidParameterValue", f"Invalid value '{inputs['strategy']}' for strategy.")
        if find_group(cloud, group) is not None:
            raise AwsError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{group}' already exists.")
        record = {
            "id": f"pg-{secrets.token_hex(8)}0",
            "strategy": inputs["strategy"],
            "partitionCount": inputs.get("partitionCount", 2 if inputs["strategy"] == "partition" else 0),
            "spreadLevel": inputs.get("spreadLevel", "rack" if inputs["strategy"] == "spread" else ""),
            "tags": cloud.all_tags(inputs),
        }
        cloud.control.put(f"/kept/placement-groups/{group}", record)
        return Created(group, self.read(cloud, group, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        record = find_group(cloud, resource_id)
        if record is None:
            return None
        tags = [{"Key": key, "Value": value} for key, value in record["tags"].items()]
        return {
            **self.common(cloud, f"placement-group/{resource_id}", {"Tags": tags}, state),
            "name": resource_id,
            "placementGroupId": record["id"],
            "strategy": record["strategy"],
            "partitionCount": record["partitionCount"],
            "spreadLevel": record["spreadLevel"],
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        record = find_group(cloud, resource_id)
        if record is None:
            raise AwsError("InvalidPlacementGroup.Unknown", f"The Placement Group '{resource_id}' is unknown.")
        cloud.control.put(f"/kept/placement-groups/{resource_id}", {**record, "tags": cloud.all_tags(inputs)})
        return {}

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        users = [item["id"] for item in cloud.control.get("/instances") if item["placement_group"] == resource_id]
        if users:
            message = f"The placement group '{resource_id}' is in use and may not be deleted: {', '.join(users)}"
            raise AwsError("InvalidPlacementGroup.InUse", message)
        cloud.control.delete(f"/kept/placement-groups/{resource_id}")


def find_group(cloud: Session, name: str) -> Properties | None:
    """The kept record of a placement group; None where there is none of that name."""
    kept: dict[str, Properties] = cloud.control.get("/kept/placement-groups")
    return kept.get(name)
