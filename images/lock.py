"""The image lock, ``images/lock.yaml``: which id each name means in each region. Nothing is looked up at ``up``."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from profiles.errors import ConfigError

PATH = Path(__file__).with_name("lock.yaml")


class LockedImage(BaseModel):
    """One image. ``root_device`` is the name that the image itself gives its root volume."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    note: str
    architecture: Literal["x86_64", "arm64"]
    root_device: str
    parameter: str = ""
    ids: Mapping[str, str]


class ImageLock(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["kiln/images/v1"] = Field(alias="schema")
    images: Mapping[Literal["aws", "alicloud"], Mapping[str, LockedImage]]

    def names(self, provider: str) -> tuple[str, ...]:
        """The images there are."""
        return tuple(sorted(self._of(provider)))

    def parameter(self, provider: str, name: str) -> str:
        """Where the id of an image can be resolved; empty where the lock names no such place."""
        return self._of(provider)[name].parameter

    def find(self, provider: str, name: str, region: str) -> Image | None:
        """The image of that name in that region; None where the lock has no id for it."""
        locked = self._of(provider).get(name)
        if locked is None or region not in locked.ids:
            return None
        return Image(name, locked.ids[region], locked.architecture, locked.root_device)

    def _of(self, provider: str) -> Mapping[str, LockedImage]:
        return next((images for key, images in self.images.items() if key == provider), {})


@dataclass(frozen=True)
class Image:
    """An image in one region."""

    name: str
    id: str
    architecture: str
    root_device: str


@functools.cache
def load(path: Path = PATH) -> ImageLock:
    """The lock file. Raises ConfigError naming the file and the key that is wrong."""
    try:
        return ImageLock.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path.name} cannot be read: {error}", remedy="Restore images/lock.yaml.") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path.name}: {where}: {first['msg']}", remedy="See the entries beside it.") from error
