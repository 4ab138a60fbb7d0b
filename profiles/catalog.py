"""The catalogue: one YAML file an instance type, below ``profiles/aws`` and ``profiles/alicloud``.

What belongs to the board and not to the machine (product names, memory, power, clocks) stands once, in
``profiles/boards/BOARD.yaml``; a type that names that board takes it over, and may override any key. A type may also
bring everything itself, so that adding one costs one file.

Profiles of one's own machines are files ``TYPE.yaml`` (``provider: local``) in any one folder, which ``KILN_PROFILES``
names. They may name the shipped boards; they may not take the name of a shipped type.
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from profiles import yamlfile
from profiles.errors import ConfigError, Problem, ProfileError
from profiles.models import InstanceProfile, SoftwareProfile
from profiles.yamlfile import YamlFile

M = TypeVar("M", bound=BaseModel)
PROVIDERS = ("aws", "alicloud")
UNPINNED = SoftwareProfile(name="unpinned")
LOCAL = "local"
VARIABLE = "KILN_PROFILES"
_HERE = Path(__file__).resolve().parent


class Catalog:
    """A folder with the layout of ``profiles/``, and one with the user's own. Files are read when asked for, once."""

    def __init__(self, folder: Path = _HERE, own: Path | None = None) -> None:
        self._folder = folder
        self._own = own
        self._profiles: dict[str, InstanceProfile] = {}
        self._boards: dict[Path, YamlFile] = {}  # many types have one

    def types(self) -> tuple[str, ...]:
        """The instance types there are, sorted; no file is read."""
        return tuple(sorted({*self._shipped, *self._own_types()}))

    def load(self, instance_type: str) -> InstanceProfile | None:
        """The profile of a type; None where the catalogue has none. Raises ProfileError where its file is wrong."""
        if instance_type not in self._profiles:
            path = self._path(instance_type)
            if path is None:
                return None
            self._profiles[instance_type] = self._read(path)
        return self._profiles[instance_type]

    def software_names(self) -> tuple[str, ...]:
        """The software profiles there are, ``unpinned`` first."""
        return (UNPINNED.name, *sorted(path.stem for path in self._folder.glob("software/*.yaml")))

    def software(self, name: str) -> SoftwareProfile:
        """A software profile by name. Raises ConfigError, with the names there are, for an unknown one."""
        if name == UNPINNED.name:
            return UNPINNED
        if name not in self.software_names():
            known = ", ".join(self.software_names())
            problem = Problem(
                "softwareProfile", repr(name), f"one of {known}", _did_you_mean(name, self.software_names())
            )
            raise ConfigError("unknown software profile", [problem])
        source = yamlfile.read(self._folder / "software" / f"{name}.yaml")
        profile = _validate(SoftwareProfile, source.data, source)
        _require_name(source, "name", profile.name, name)
        if not profile.pins:
            raise ProfileError(
                f"software profile {source.path.name} pins nothing", remedy=f"Use {UNPINNED.name} for that."
            )
        return profile

    def nearest(self, instance_type: str) -> tuple[str, ...]:
        """The catalogue's names most like an unknown one, best first, at most three."""
        return tuple(difflib.get_close_matches(instance_type, self.types(), n=3, cutoff=0.5))

    def foreign(self, instance_type: str) -> str:
        """The accelerator of a family that has another one than NVIDIA GPUs; empty where none is known of."""
        family = instance_type.rpartition(".")[0]
        return str(yamlfile.read(self._folder / "foreign.yaml").data["families"].get(family, ""))

    def hint(self, instance_type: str) -> str:
        """What to tell somebody whose type the catalogue does not have, as a sentence."""
        accelerator, near = self.foreign(instance_type), self.nearest(instance_type)
        if accelerator:
            return f"It has {accelerator}, and Kiln judges NVIDIA GPUs only."
        return f"Nearest: {', '.join(near)}." if near else "docs/instance-types.md lists the types."

    def boards(self) -> dict[str, tuple[str, ...]]:
        """The product names of every board of the catalogue."""
        read = {path.stem: yamlfile.read(path).data for path in sorted(self._folder.glob("boards/*.yaml"))}
        return {name: tuple(data["gpu"]["names"]["value"]) for name, data in read.items()}

    @functools.cached_property
    def _shipped(self) -> tuple[str, ...]:
        return tuple(path.stem for provider in PROVIDERS for path in self._folder.glob(f"{provider}/*.yaml"))

    def _own_types(self) -> tuple[str, ...]:
        if self._own is None:
            return ()
        if not self._own.is_dir():
            raise ConfigError(f"{VARIABLE}: {self._own} is no folder", remedy="name a folder with files TYPE.yaml")
        return tuple(path.stem for path in self._own.glob("*.yaml"))

    def _path(self, instance_type: str) -> Path | None:
        own = instance_type in self._own_types()
        if own and instance_type in self._shipped:
            where = f"{self._own}/{instance_type}.yaml"
            raise ProfileError(f"{where}: the catalogue has a type of this name", remedy="Give yours another name.")
        if own and self._own is not None:
            return self._own / f"{instance_type}.yaml"
        if instance_type not in self._shipped:  # also keeps "../x" away from the file system
            return None
        return next(
            path for provider in PROVIDERS if (path := self._folder / provider / f"{instance_type}.yaml").is_file()
        )

    def _read(self, path: Path) -> InstanceProfile:
        source = yamlfile.read(path)
        board = self._board(source)
        if board is None:
            profile = _validate(InstanceProfile, source.data, source)
        else:
            profile = _validate(InstanceProfile, _merge(source, board), source, board)
        _require_name(source, "instance_type", profile.instance_type, path.stem)
        _require_name(source, "provider", profile.provider, LOCAL if path.parent == self._own else path.parent.name)
        return profile

    def _board(self, source: YamlFile) -> YamlFile | None:
        """The shared file of the board that the type names; None where there is none: it then brings everything."""
        gpu = source.data.get("gpu")
        name = gpu.get("board") if isinstance(gpu, dict) else None
        if not isinstance(name, str) or "/" in name:
            return None
        path = self._folder / "boards" / f"{name}.yaml"
        if path not in self._boards and path.is_file():
            self._boards[path] = yamlfile.read(path)
        return self._boards.get(path)


def _merge(source: YamlFile, board: YamlFile) -> dict[str, Any]:
    """The type's own keys over the board's. Two sources may not share a key: a value must not change its source."""
    own = source.data.get("sources")
    shared = set(own if isinstance(own, dict) else ()) & set(board.data.get("sources", {}))
    if shared:
        key = sorted(shared)[0]
        where = source.where(("sources", key))
        raise ProfileError(f"{where} is also a source of boards/{board.path.name}; rename one of them")
    return _overlay(board.data, source.data)


def _overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        # A value with its source is replaced whole: half of one and half of the other would be nobody's.
        whole = isinstance(value, dict) and "source" in value
        merged[key] = _overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) and not whole else value
    return merged


def _validate(model: type[M], data: Mapping[str, Any], *sources: YamlFile) -> M:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        message = f"profile {sources[0].path.name} is wrong"
        raise ProfileError(message, yamlfile.problems(error, *sources)) from error


def _require_name(source: YamlFile, key: str, found: str, expected: str) -> None:
    if found != expected:
        problem = Problem(source.where((key,)), repr(found), repr(expected), "The file's place and name say so.")
        raise ProfileError(f"profile {source.path.name} is wrong", [problem])


def _did_you_mean(name: str, names: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]}?" if close else ""


@functools.cache
def default() -> Catalog:
    """The catalogue that ships with Kiln, with the folder that ``KILN_PROFILES`` names."""
    own = os.environ.get(VARIABLE)
    return Catalog(own=Path(own).expanduser() if own else None)


def load(instance_type: str) -> InstanceProfile | None:
    """The profile of a type of the shipped catalogue; None where it has none."""
    return default().load(instance_type)


def types() -> tuple[str, ...]:
    """The instance types of the shipped catalogue, sorted."""
    return default().types()


def software(name: str) -> SoftwareProfile:
    """A software profile of the shipped catalogue. Raises ConfigError for an unknown name."""
    return default().software(name)


def software_names() -> tuple[str, ...]:
    """The names that :func:`software` knows."""
    return default().software_names()


def nearest(instance_type: str) -> tuple[str, ...]:
    """The shipped catalogue's names most like an unknown one, best first."""
    return default().nearest(instance_type)


def hint(instance_type: str) -> str:
    """What to tell somebody whose type the shipped catalogue does not have."""
    return default().hint(instance_type)


def foreign(instance_type: str) -> str:
    """The accelerator of a type that has another one than NVIDIA GPUs; empty where none is known of."""
    return default().foreign(instance_type)
