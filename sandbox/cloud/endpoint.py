"""Where a running sandbox answers, and the client of its control API.

The daemon writes ``endpoint.json`` in its home when it is ready and removes it when it stops. The token in it is what
keeps other users of the machine out: a control call can start a host that runs commands as the sandbox's owner.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from profiles.errors import ConfigError
from sandbox.cloud.errors import AwsError, SandboxDownError

HOME_VARIABLE = "KILN_SANDBOX_HOME"
FILE_NAME = "endpoint.json"
TOKEN_HEADER = "X-Kiln-Token"  # noqa: S105 - the header's name


class Endpoint(BaseModel):
    """``control`` and ``moto`` are base URLs on 127.0.0.1; ``ssh_port`` is the port of every simulated host."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    control: str
    moto: str
    ssh_port: int
    token: str = Field(repr=False)
    started: float


def default_home() -> Path:
    """``$KILN_SANDBOX_HOME``, else ``kiln/sandbox`` in the user's cache."""
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "kiln" / "sandbox"


def write(home: Path, endpoint: Endpoint) -> None:
    """Put the file there in one step, readable by its owner only."""
    target = home / FILE_NAME
    temporary = target.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(endpoint.model_dump_json())
    temporary.replace(target)


def read(home: Path) -> Endpoint | None:
    """What the file says; None where there is none, or where it is not ours to read or understand."""
    try:
        return Endpoint.model_validate_json((home / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None


class ControlClient:
    """Calls of the control API, one JSON document each way.

    Raises:
        SandboxDownError: nothing answers.
        AwsError: the emulated cloud refused, in AWS's words.
        ConfigError: the request names something that does not exist.
    """

    def __init__(self, home: Path, endpoint: Endpoint, *, timeout_s: float = 30.0) -> None:
        self._home = home
        self._endpoint = endpoint
        self._timeout_s = timeout_s

    def get(self, path: str) -> Any:
        return self._call("GET", path, None)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._call("POST", path, body or {})

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self._call("DELETE", path, None)

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the URL is the sandbox's own, on 127.0.0.1
            self._endpoint.control + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={TOKEN_HEADER: self._endpoint.token, "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=self._timeout_s) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise SandboxDownError(str(self._home), f"{self._endpoint.control} does not answer: {reason}") from error


def _refusal(error: urllib.error.HTTPError) -> AwsError | ConfigError:
    try:
        answer = json.load(error)
    except ValueError:
        return AwsError("InternalError", f"the sandbox answered {error.code} {error.reason}")
    if answer.get("kind") == "config":
        return ConfigError(answer["message"], remedy=answer.get("remedy", ""))
    code, text = answer.get("code", "InternalError"), answer.get("message", "")
    return AwsError(code, text, action=answer.get("action", ""))


def connect(home: Path) -> tuple[Endpoint, ControlClient]:
    """The running sandbox of ``home``.

    Raises:
        SandboxDownError: there is none.
    """
    endpoint = read(home)
    if endpoint is None:
        raise SandboxDownError(str(home), f"no {FILE_NAME} there")
    return endpoint, ControlClient(home, endpoint)
