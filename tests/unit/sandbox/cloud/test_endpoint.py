"""The endpoint file and the control client's errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import ConfigError
from sandbox.cloud import endpoint
from sandbox.cloud.endpoint import ControlClient, Endpoint
from sandbox.cloud.errors import AwsError, SandboxDownError


def made(control: str = "http://127.0.0.1:1") -> Endpoint:
    return Endpoint(pid=1, control=control, moto="http://127.0.0.1:2", ssh_port=2222, token="secret", started=0.0)


@contextmanager
def answering(status: int, answer: Any) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_what_is_written_is_read_and_only_its_owner_may(tmp_path: Path) -> None:
    endpoint.write(tmp_path, made())
    assert endpoint.read(tmp_path) == made()
    assert (tmp_path / endpoint.FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [endpoint.FILE_NAME]


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1}'])
def test_a_file_that_is_not_whole_is_no_endpoint(tmp_path: Path, text: str) -> None:
    (tmp_path / endpoint.FILE_NAME).write_text(text)
    assert endpoint.read(tmp_path) is None


def test_the_token_does_not_show_in_a_log() -> None:
    assert "secret" not in repr(made())


def test_without_a_sandbox_the_message_says_where_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SandboxDownError) as caught:
        endpoint.connect(tmp_path)
    assert str(caught.value).count("\n") == 0
    assert str(tmp_path) in str(caught.value)
    assert "`kiln sandbox start`" in str(caught.value)


def test_a_sandbox_that_went_away_is_down() -> None:
    with pytest.raises(SandboxDownError, match="does not answer"):
        ControlClient(Path("/home"), made(), timeout_s=1).get("/status")


@pytest.mark.parametrize(
    ("status", "answer", "error", "words"),
    [
        (
            400,
            {"kind": "aws", "code": "X.Y", "message": "no", "action": "Run"},
            AwsError,
            "EC2: Run, api error X.Y: no",
        ),
        (400, {"kind": "config", "message": "unknown host"}, ConfigError, "unknown host"),
        (500, {"kind": "internal", "code": "InternalError", "message": "KeyError: 1"}, AwsError, "KeyError: 1"),
        (502, b"<html>", AwsError, "answered 502"),
    ],
)
def test_a_refusal_keeps_its_kind(tmp_path: Path, status: int, answer: Any, error: type[Exception], words: str) -> None:
    with answering(status, answer) as url, pytest.raises(error, match=words):
        ControlClient(tmp_path, made(url)).get("/x")


def test_the_home_is_the_variables_or_lies_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KILN_SANDBOX_HOME", str(tmp_path))
    assert endpoint.default_home() == tmp_path
    monkeypatch.delenv("KILN_SANDBOX_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert endpoint.default_home() == Path("/cache/kiln/sandbox")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert endpoint.default_home() == Path.home() / ".cache/kiln/sandbox"
