"""One configured provider: the clients it calls with, its default tags, and whether it was asked to stop."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.cloud import endpoint as endpoints
from sandbox.cloud.errors import AwsError, CancelledError, SandboxDownError
from sandbox.cloud.values import Properties

ACCOUNT = "123456789012"  # moto's account
GONE = re.compile(r"NotFound|InvalidAssociationID|NoSuchEntity")


class Session:
    """What every resource handler works with. Safe to use from many threads at once."""

    def __init__(self, home: Path, region: str, default_tags: dict[str, str]) -> None:
        self.home = home
        self.region = region
        self.default_tags = default_tags
        self.cancelled = threading.Event()
        self.endpoint, self.control = endpoints.connect(home)
        self._clients: dict[str, Any] = {}
        self._types: dict[str, Any] = {}
        self._lock = threading.Lock()

    def ec2(self, region: str | None = None) -> Any:
        """The EC2 client of ``region``, else of the provider's region."""
        return self._client("ec2", region or self.region)

    def _client(self, service: str, region: str) -> Any:
        with self._lock:
            if region not in self._clients:
                self._clients[region] = boto3.client(
                    service,
                    region_name=region,
                    endpoint_url=self.endpoint.moto,
                    aws_access_key_id="sandbox",
                    aws_secret_access_key="sandbox",  # noqa: S106 - moto takes any
                    config=Config(retries={"max_attempts": 1}, connect_timeout=5, read_timeout=60, proxies={}),
                )
            return self._clients[region]

    def call(self, action: str, region: str | None = None, **arguments: Any) -> Any:
        """The answer of one EC2 call; arguments that are None are left out.

        Raises:
            AwsError: the cloud refused.
            SandboxDownError: nothing answers.
        """
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            return getattr(self.ec2(region), action)(**given)
        except ClientError as error:
            detail = error.response.get("Error", {})
            text = detail.get("Message", str(error))
            raise AwsError(detail.get("Code", "Unknown"), text, action=error.operation_name) from error
        except BotoCoreError as error:
            raise SandboxDownError(str(self.home), str(error)) from error

    def call_unless_gone(self, action: str, region: str | None = None, **arguments: Any) -> Any:
        """The answer of one EC2 call; None where what it names does not exist any more."""
        try:
            return self.call(action, region, **arguments)
        except AwsError as error:
            if GONE.search(error.code):
                return None
            raise

    def instance_type(self, name: str, region: str | None = None) -> Any:
        """What the cloud says about an instance type; None where it has no such type."""
        key = f"{region or self.region}/{name}"
        if key not in self._types:
            answer = self.call("describe_instance_types", region, Filters=[{"Name": "instance-type", "Values": [name]}])
            self._types[key] = next(iter(answer["InstanceTypes"]), None)
        return self._types[key]

    def sleep(self, seconds: float, what: str) -> None:
        """Wait, unless the engine asks to stop.

        Raises:
            CancelledError: it did.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.cancelled.wait(min(left, 0.2)):
                raise CancelledError(what)

    def all_tags(self, inputs: Properties) -> dict[str, str]:
        """The provider's default tags under the resource's own."""
        return {**self.default_tags, **(inputs.get("tags") or {})}

    def tag_specification(self, kind: str, inputs: Properties) -> list[dict[str, Any]] | None:
        """The tags in the form that creating calls take; None where there are none."""
        tags = self.all_tags(inputs)
        return [{"ResourceType": kind, "Tags": _pairs(tags)}] if tags else None

    def retag(self, resource_id: str, old: dict[str, str], new: dict[str, str], region: str | None = None) -> None:
        """Bring the tags of a resource from ``old`` to ``new``."""
        removed = [{"Key": key} for key in old if key not in new]
        if removed:
            self.call("delete_tags", region, Resources=[resource_id], Tags=removed)
        changed = {key: value for key, value in new.items() if old.get(key) != value}
        if changed:
            self.call("create_tags", region, Resources=[resource_id], Tags=_pairs(changed))

    def own_tags(self, described: list[dict[str, str]] | None) -> dict[str, str]:
        """The tags that the resource itself has, without AWS's and the provider's default ones."""
        tags = {tag["Key"]: tag["Value"] for tag in described or [] if not tag["Key"].startswith("aws:")}
        return {key: value for key, value in tags.items() if self.default_tags.get(key) != value}

    def arn(self, path: str, region: str | None = None) -> str:
        """The ARN of an EC2 resource, such as ``instance/i-1``."""
        return f"arn:aws:ec2:{region or self.region}:{ACCOUNT}:{path}"


def _pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
