"""The inventory of ``kiln validate``: hosts that exist, how to reach them, and what each must be.

::

    defaults:                       # any key of a host except name and address
      user: ubuntu
      privateKeyFile: keys/id_ed25519   # relative to this file; ~ is understood
    hosts:
      - name: gpu-1
        address: 10.0.3.17
        instanceType: p5.48xlarge
        hostKey: ssh-ed25519 AAAA...    # what `ssh-keyscan -t ed25519 10.0.3.17` prints, compared by other means
        port: 22
        instanceId: i-0123456789abcdef0
        softwareProfile: unpinned
        driver: "580"
        cuda: "12.8"
        efaCount: 32
        mig: false
        evidenceRoot: /
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from profiles import yamlfile
from profiles.errors import ConfigError, Problem
from profiles.expectation import expect
from profiles.models import Expectation
from profiles.yamlfile import KeyPath, YamlFile
from stacks import private_key
from validation.runner import Target

UNNAMED = ("name", "address")  # what no default can give

_HOST_KEY = r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?$"
_VERSION = r"^[0-9]+(\.[0-9]+)*$"
_WORDS = {  # what a pattern means
    "name": "letters, digits, dots, dashes, up to 63 of them",
    "hostKey": "a public key: ssh-ed25519 AAAA... or another type",
    "driver": "numbers with dots, such as 580",
    "cuda": "numbers with dots, such as 12.8",
    "evidenceRoot": "an absolute path",
}
_TYPES = {
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "path_type": "a path",
}
_NAME = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Host(_Strict):
    """One host as it is written, the defaults merged in."""

    name: Annotated[str, Field(pattern=_NAME)]
    address: Annotated[str, Field(min_length=1)]
    instanceType: Annotated[str, Field(min_length=1)]  # noqa: N815 - the file's key
    user: str = "root"
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    privateKeyFile: Path  # noqa: N815
    hostKey: Annotated[str, Field(pattern=_HOST_KEY)] | None = None  # noqa: N815
    instanceId: str = ""  # noqa: N815
    softwareProfile: str = "unpinned"  # noqa: N815
    driver: Annotated[str, Field(pattern=_VERSION)] | None = None
    cuda: Annotated[str, Field(pattern=_VERSION)] | None = None
    efaCount: Annotated[int, Field(ge=0)] = 0  # noqa: N815
    mig: bool = False
    persistence: bool = True
    ecc: bool | None = None
    powerLimitW: Annotated[float, Field(gt=0)] | None = None  # noqa: N815
    evidenceRoot: Annotated[str, Field(pattern="^/")] = "/"  # noqa: N815


def load(path: Path, *, accept_new: bool = False) -> tuple[Target, ...]:
    """The hosts of an inventory file, ready to be judged.

    Raises:
        ConfigError: everything that is wrong with the file at once, each by file, line and key path.
    """
    if not path.exists() or path.is_dir():
        raise ConfigError(f"there is no inventory {path}", remedy="docs/inventory.md shows how to write one")
    source = yamlfile.read(path)
    problems: list[Problem] = []
    defaults = _defaults(source, problems)
    targets: list[Target] = []
    names: dict[str, int] = {}
    for index, entry in enumerate(_entries(source, problems)):
        place = _Place(source, index, entry, defaults)
        host = place.read(problems)
        if host is None:
            continue
        if host.name in names:
            problems.append(
                place.problem("name", repr(host.name), f"a name of its own: hosts[{names[host.name]}] has it")
            )
        names.setdefault(host.name, index)
        target = _target(host, place, problems, accept_new=accept_new)
        if target is not None:
            targets.append(target)
    if problems:
        raise ConfigError(f"inventory {path} is wrong", problems)
    return tuple(targets)


def _defaults(source: YamlFile, problems: list[Problem]) -> dict[str, Any]:
    problems.extend(
        Problem(source.where((key,)), "a key that does not exist", "defaults or hosts")
        for key in source.data
        if key not in ("defaults", "hosts")
    )
    defaults = source.data.get("defaults") or {}
    if not isinstance(defaults, dict):
        problems.append(Problem(source.where(("defaults",)), type(defaults).__name__, "a mapping of keys"))
        return {}
    problems.extend(
        Problem(source.where(("defaults", key)), "a key that cannot be a default", _keys(key))
        for key in defaults
        if key not in Host.model_fields or key in UNNAMED
    )
    return {key: value for key, value in defaults.items() if key in Host.model_fields and key not in UNNAMED}


def _entries(source: YamlFile, problems: list[Problem]) -> list[dict[str, Any]]:
    hosts = source.data.get("hosts")
    if not isinstance(hosts, list) or not hosts:
        problems.append(Problem(source.where(("hosts",)), "no host" if not hosts else "no list", "a list of hosts"))
        return []
    for index, host in enumerate(hosts):
        if not isinstance(host, dict):
            problems.append(Problem(source.where(("hosts", index)), repr(host)[:60], "a mapping of keys"))
    return [host for host in hosts if isinstance(host, dict)]


class _Place:
    """One entry of the file: its values, and where each was written."""

    def __init__(self, source: YamlFile, index: int, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self.source = source
        self._index = index
        self._entry = entry
        self._defaults = defaults

    def path(self, key: str) -> KeyPath:
        return ("defaults", key) if key not in self._entry and key in self._defaults else ("hosts", self._index, key)

    def problem(self, key: str, found: str, expected: str, fix: str = "") -> Problem:
        return Problem(self.source.where(self.path(key)), found, expected, fix)

    def read(self, problems: list[Problem]) -> Host | None:
        try:
            return Host.model_validate({**self._defaults, **self._entry})
        except ValidationError as error:
            problems.extend(self._wrong(dict(wrong)) for wrong in error.errors(include_url=False))
            return None

    def _wrong(self, wrong: Mapping[str, Any]) -> Problem:
        key = str(wrong["loc"][0])
        if wrong["type"] == "extra_forbidden":
            return self.problem(key, "a key that does not exist", _keys(key))
        if wrong["type"] == "missing":
            return self.problem(key, "nothing", "a value", f"Set {key} for this host or in defaults.")
        words = _WORDS if wrong["type"] == "string_pattern_mismatch" else {key: _TYPES.get(wrong["type"], "")}
        expected = words.get(key) or str(wrong["msg"]).removeprefix("Input should be ")
        return self.problem(key, repr(wrong["input"])[:60], expected)


def _keys(key: str) -> str:
    names = [name for name in Host.model_fields if name not in UNNAMED] + list(UNNAMED)
    near = difflib.get_close_matches(key, names, n=1)
    return f"{near[0]} perhaps; there are {', '.join(names)}" if near else f"one of {', '.join(names)}"


def _target(host: Host, place: _Place, problems: list[Problem], *, accept_new: bool) -> Target | None:
    found: list[Problem] = []
    key = _private_key(host, place, found)
    expectation = _expectation(host, place, found)
    if host.hostKey is None and not accept_new:
        fix = f"`ssh-keyscan -t ed25519 -p {host.port} {host.address}` prints it; or opt in with --accept-new."
        found.append(place.problem("hostKey", "nothing", "the host's public SSH key", fix))
    problems.extend(found)
    if found or expectation is None:
        return None
    return Target(
        name=host.name,
        address=host.address,
        user=host.user,
        private_key=key,
        host_key=host.hostKey,
        expectation=expectation,
        port=host.port,
        accept_new=accept_new and host.hostKey is None,
        instance_id=host.instanceId,
    )


def _expectation(host: Host, place: _Place, problems: list[Problem]) -> Expectation | None:
    try:
        return expect(
            host.instanceType,
            software=host.softwareProfile,
            driver=host.driver,
            cuda=host.cuda,
            efa_count=host.efaCount,
            mig=host.mig,
            persistence=host.persistence,
            ecc=host.ecc,
            power_limit_w=host.powerLimitW,
            root=host.evidenceRoot,
        )
    except ConfigError as error:
        problems.extend(_elsewhere(error, place))
        return None


def _elsewhere(error: ConfigError, place: _Place) -> Iterator[Problem]:
    """The problems of an expectation at their place in this file."""
    for problem in error.problems:
        yield place.problem(problem.path, problem.found, problem.expected, problem.fix)
    if not error.problems:
        yield place.problem("instanceType", error.message, "a profile that can be read")


def _private_key(host: Host, place: _Place, problems: list[Problem]) -> str:
    try:
        path = place.source.path.parent / host.privateKeyFile.expanduser()
        data = path.read_bytes()
    except OSError as error:
        problems.append(place.problem("privateKeyFile", f"{path}: {error.strerror}", "a file that can be read"))
        return ""
    except RuntimeError as error:  # ~ of a user who has no home
        problems.append(place.problem("privateKeyFile", f"{host.privateKeyFile}: {error}", "a file that can be read"))
        return ""
    wrong = private_key.problem(place.source.where(place.path("privateKeyFile")), data, file=str(path))
    if wrong:
        problems.append(wrong)
        return ""
    return data.decode("ascii")
