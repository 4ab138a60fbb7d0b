"""What the emulated provider knows about each resource, read from ``semantics.yaml``.

:func:`load` gives the typed table. :meth:`Semantics.check` judges a program's inputs and fills in defaults;
:func:`sandbox.cloud.diff.compare` says what a change of them does.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from profiles.errors import ProfileError
from profiles.yamlfile import LOADER
from sandbox.cloud.values import UNKNOWN, Properties, Value

FILE = Path(__file__).with_name("semantics.yaml")
SCALARS = ("string", "integer", "number", "boolean")
CONTAINER = re.compile(r"^(list|set|map)<(\w+)>$")

OnChange = Literal["update", "restart", "replace"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Source(_Model):
    """Where a rule was read, and when."""

    text: str
    date: dt.date


class Property(_Model):
    """One input: its type, what changing it does, and who says so."""

    type: str
    on_change: OnChange = "update"
    required: bool = False
    default: bool | int | str | None = None
    computed: bool = False
    source: str = ""


class ObjectType(_Model):
    """A nested input object; ``class_`` names the pulumi_aws class whose properties these are."""

    class_: str = Field(alias="class")
    inputs: dict[str, Property]


class ResourceType(_Model):
    """One resource type. ``autoname`` is the input that gets ``<resource name>-<7 hex>`` where it is left out."""

    class_: str = Field(alias="class")
    source: str
    autoname: str = ""
    inputs: dict[str, Property]
    outputs: tuple[str, ...]

    def source_of(self, name: str) -> str:
        """The source key of one input's rule: its own, else the resource's."""
        return self.inputs[name].source or self.source


class Failure(_Model):
    """A wrong input: the path as the program wrote it, and why it is refused."""

    path: str
    reason: str


class Semantics(_Model):
    """The whole table."""

    schema_: Literal["kiln/cloud-semantics/v1"] = Field(alias="schema")
    package: str
    version: str
    sources: dict[str, Source]
    objects: dict[str, ObjectType]
    resources: dict[str, ResourceType]

    @model_validator(mode="after")
    def _consistent(self) -> Semantics:
        problems = []
        for where, prop in self._properties():
            if prop.source and prop.source not in self.sources:
                problems.append(f"{where} names the source '{prop.source}', which is not listed")
            inner = element_type(prop.type)
            if inner not in SCALARS and inner not in self.objects:
                problems.append(f"{where} has the unknown type '{prop.type}'")
        for token, resource in self.resources.items():
            if resource.source not in self.sources:
                problems.append(f"{token} names the source '{resource.source}', which is not listed")
            if resource.autoname and resource.autoname not in resource.inputs:
                problems.append(f"{token}: autoname '{resource.autoname}' is not an input")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _properties(self) -> Iterator[tuple[str, Property]]:
        for token, resource in self.resources.items():
            for name, prop in resource.inputs.items():
                yield f"{token}.{name}", prop
        for object_name, kind in self.objects.items():
            for name, prop in kind.inputs.items():
                yield f"{object_name}.{name}", prop

    def check(self, token: str, inputs: Properties) -> tuple[Properties, list[Failure]]:
        """The inputs with their defaults, and every wrong one by its path."""
        return self._check_object(self.resources[token].inputs, inputs, prefix="", what=token)

    def only_inputs(self, token: str, values: Properties) -> Properties:
        """What of ``values`` a program could have written: no outputs, at any depth."""
        return self._pruned(self.resources[token].inputs, values)

    def _pruned(self, known: dict[str, Property], values: Properties) -> Properties:
        kept: Properties = {}
        for name, value in values.items():
            if name in known:
                kind = known[name].type
                nested = kind in self.objects and isinstance(value, dict)
                kept[name] = self._pruned(self.objects[kind].inputs, value) if nested else value
        return kept

    def _check_object(
        self, known: dict[str, Property], given: Properties, *, prefix: str, what: str
    ) -> tuple[Properties, list[Failure]]:
        filled: Properties = {}
        failures = [
            Failure(path=prefix + name, reason=f"'{name}' is not a property of {what} that the sandbox knows")
            for name in given
            if name not in known and not name.startswith("__")
        ]
        for name, prop in known.items():
            value = given.get(name)
            if value is None:
                if prop.required:
                    failures.append(Failure(path=prefix + name, reason=f"'{name}' is required by {what}"))
                elif prop.default is not None:
                    filled[name] = prop.default
                continue
            filled[name], wrong = self._check_value(prop.type, value, path=prefix + name)
            failures.extend(wrong)
        return filled, failures

    def _check_value(self, kind: str, value: Value, *, path: str) -> tuple[Value, list[Failure]]:
        if value == UNKNOWN:
            return value, []
        container = CONTAINER.match(kind)
        if container:
            return self._check_container(container[1], container[2], value, path=path)
        if kind in self.objects:
            if not isinstance(value, dict):
                return value, [_mistyped(path, value, "an object")]
            return self._check_object(self.objects[kind].inputs, value, prefix=f"{path}.", what=path)
        return _check_scalar(kind, value, path=path)

    def _check_container(self, kind: str, inner: str, value: Value, *, path: str) -> tuple[Value, list[Failure]]:
        failures: list[Failure] = []
        if kind == "map":
            if not isinstance(value, dict):
                return value, [_mistyped(path, value, "a map")]
            filled: Properties = {}
            for key, item in value.items():
                filled[key], wrong = self._check_value(inner, item, path=f"{path}.{key}")
                failures.extend(wrong)
            return filled, failures
        if not isinstance(value, list):
            return value, [_mistyped(path, value, "a list")]
        items = []
        for index, item in enumerate(value):
            checked, wrong = self._check_value(inner, item, path=f"{path}[{index}]")
            items.append(checked)
            failures.extend(wrong)
        return items, failures


def element_type(kind: str) -> str:
    """``string`` of ``list<string>``; a type that is no container is its own element."""
    container = CONTAINER.match(kind)
    return container[2] if container else kind


def _mistyped(path: str, value: Value, expected: str) -> Failure:
    return Failure(path=path, reason=f"expected {expected}, found {type(value).__name__} {value!r}")


def _check_scalar(kind: str, value: Value, *, path: str) -> tuple[Value, list[Failure]]:
    """The value in its declared type; booleans and numbers are also read from their text, as the provider does."""
    if kind == "string":
        if isinstance(value, str):
            return value, []
        if isinstance(value, (bool, int)):
            return str(value).lower(), []
    if kind == "boolean":
        if isinstance(value, bool):
            return value, []
        if value in ("true", "false"):
            return value == "true", []
    if kind in ("integer", "number") and not isinstance(value, bool):
        if isinstance(value, int) or (kind == "number" and isinstance(value, float)):
            return value, []
        if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
            return int(value), []
    return value, [_mistyped(path, value, f"{'an' if kind == 'integer' else 'a'} {kind}")]


@functools.cache
def load(file: Path = FILE) -> Semantics:
    """The table in ``file``.

    Raises:
        ProfileError: the file is not valid, with the path of each wrong key.
    """
    data: Any = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 - a safe loader
    try:
        return Semantics.model_validate(data)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise ProfileError(f"{file.name}: {wrong}") from error
