# ruff: noqa: ARG002 - every handler has the same methods with the same arguments
"""What every resource handler does, in the order of a resource's life."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from sandbox.cloud.session import ACCOUNT, Session
from sandbox.cloud.values import Properties


@dataclass(frozen=True)
class Created:
    """A new resource: its id and what the cloud says about it, beyond the inputs."""

    id: str
    outputs: Properties


class Handler(ABC):
    """One resource type. Methods block; the provider calls them in threads.

    ``state`` is what the engine holds: inputs and outputs together. ``read`` gives what the cloud says now, by property
    name, and None where the resource is gone. ``update`` gives the outputs that changed.
    """

    token: str

    @abstractmethod
    def create(self, cloud: Session, name: str, inputs: Properties) -> Created: ...

    @abstractmethod
    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None: ...

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        """Most resources can only change their tags in place."""
        self.retag(cloud, resource_id, state, inputs)
        return {}

    @abstractmethod
    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        """Gone afterwards; that it was gone before is no error."""

    def refine(self, cloud: Session, resource_id: str, name: str, new: Properties) -> bool:
        """False where the cloud says that a changed property, marked `replace`, already has its new value."""
        return True

    @staticmethod
    def retag(cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> None:
        old = state.get("tagsAll") or cloud.all_tags(state)
        cloud.retag(resource_id, old, cloud.all_tags(inputs), inputs.get("region"))

    @staticmethod
    def common(cloud: Session, path: str, described: dict[str, object], state: Properties) -> Properties:
        """ARN, owner, region and tags, which almost every resource has."""
        region = state.get("region") or cloud.region
        tags = described.get("Tags")
        own = cloud.own_tags(tags)  # type: ignore[arg-type]  # boto3 has no types
        return {
            "arn": cloud.arn(path, region),
            "ownerId": ACCOUNT,
            "region": region,
            "tags": own,
            "tagsAll": {**cloud.default_tags, **own},
        }
