"""The stack's configuration, typed: everything wrong with it at once, each by its property path.

Types live here, values and what must fit together in ``stacks/rules``. Unknown keys are refused: a misspelt setting
must not be a missing one.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from profiles.errors import Problem
from profiles.models import BurnInLevel

NAMESPACE = "kiln"


class _Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=False,
        hide_input_in_errors=True,
    )


class RootVolume(_Model):
    """The gp3 root volume of each host."""

    size_gib: int = 200
    iops: int = 3000
    throughput_mibps: int = 125


class InventoryHost(_Model):
    """A host that exists. Either its public ``host_key`` is known, or ``accept_new`` takes whichever answers first."""

    name: str
    address: str
    instance_type: str
    host_key: str | None = None
    accept_new: bool = False
    user: str | None = None
    port: int | None = None
    efa_count: int = 0


class Settings(_Model):
    """One stack. The same keys, defaults and descriptions as Pulumi.yaml; a test compares them."""

    provider: Literal["aws", "static"] = "aws"
    instance_type: str = "p5.48xlarge"
    count: int = 1
    region: str = "us-east-1"
    zone: str = "us-east-1a"
    image: str = "dlami-base-ubuntu-22.04"
    software_profile: str = "unpinned"
    driver: str = ""
    cuda: str = ""
    efa_count: int = 0
    root_volume: RootVolume = RootVolume()
    ssh_port: int = 22
    ssh_user: str = "ubuntu"
    ssh_address: Literal["private", "public"] = "private"
    ssh_from: str = ""
    ssh_private_key: str = Field(default="", repr=False)
    ttl_hours: int = 24
    owner: str = "unassigned"
    project: str = "kiln"
    burn_in: BurnInLevel = "quick"
    deadline_seconds: int = 900
    evidence_root: str = "/"
    bad_units: str = ""
    inventory: tuple[InventoryHost, ...] = ()


_TEXTS = frozenset(
    name
    for name, field in Settings.model_fields.items()
    if field.annotation is str or "Literal" in str(field.annotation)
)
_WORDS = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "a text",
    "bool_type": "true or false",
    "missing": "a value",
    "tuple_type": "a list",
    "model_type": "an object",
}


def read(config: Mapping[str, str]) -> tuple[Settings, list[Problem]]:
    """Settings from raw configuration (key without namespace -> text, objects as JSON), and every problem of type.

    Where a value is wrong the returned settings carry the default, so that the rules can judge the rest.
    """
    values = {key: _decode(key, text) for key, text in config.items()}
    try:
        return Settings.model_validate(values), []
    except ValidationError as error:
        problems = [_problem(dict(entry)) for entry in error.errors(include_url=False)]
        wrong = {str(entry["loc"][0]) for entry in error.errors(include_url=False)}
    good = {key: value for key, value in values.items() if key not in wrong}
    return Settings.model_validate(good), problems


def _decode(key: str, text: str) -> Any:
    """The value of one key: texts as they are, everything else as JSON; text that is not JSON stays text."""
    names = {to_camel(name): name for name in Settings.model_fields}
    if names.get(key) in _TEXTS or not isinstance(text, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return _tuples(value)


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _problem(entry: Mapping[str, Any]) -> Problem:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in entry["loc"]).lstrip(".")
    kind = entry["type"]
    if kind == "extra_forbidden":
        return Problem(path, "a key that does not exist", _known_keys(path))
    if kind == "missing":
        return Problem(path, "nothing", "a value", f"Set {NAMESPACE}:{path}.")
    found = "a value that is not shown" if path == "sshPrivateKey" else repr(entry["input"])[:80]
    if kind == "literal_error":
        expected = str(entry["ctx"]["expected"]).replace("'", "")
        return Problem(path, found, f"one of {expected.replace(' or ', ', ')}")
    return Problem(path, found, _WORDS.get(kind, str(entry["msg"])))


def _known_keys(path: str) -> str:
    if path.startswith("rootVolume."):
        model: type[BaseModel] = RootVolume
    elif path.startswith("inventory["):
        model = InventoryHost
    else:
        model = Settings
    names = [to_camel(name) for name in model.model_fields]
    near = difflib.get_close_matches(path.split(".")[-1], names, n=1)
    listed = ", ".join(sorted(names))
    return f"{near[0]} perhaps; there are {listed}" if near else f"one of {listed}"
