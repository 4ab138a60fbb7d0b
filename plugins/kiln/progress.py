"""Progress of the gate as status lines of ``pulumi up``, through the engine's log service.

A status line that cannot be delivered is lost: showing progress must never change a verdict.
"""

from __future__ import annotations

import threading
import time

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from plugins.kiln.wire import scrub

_MIN_INTERVAL_S = 0.1
_TIMEOUT_S = 2.0


class EngineLog:
    """The engine's log service at ``address``; silent where there is none (an engine that gives no address)."""

    def __init__(self, address: str) -> None:
        self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address)) if address else None

    def write(self, urn: str, message: str, *, ephemeral: bool, warning: bool = False) -> None:
        if self._stub is None:
            return
        severity = engine_pb2.WARNING if warning else engine_pb2.INFO
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        try:
            self._stub.Log(request, timeout=_TIMEOUT_S)
        except grpc.RpcError:
            self._stub = None  # the engine is gone or does not listen: stop trying


class StatusLine:
    """Progress of one gate. Many hosts report at once: a host's first line of a stage is always shown."""

    def __init__(self, log: EngineLog, urn: str, secrets: frozenset[str]) -> None:
        self._log = log
        self._urn = urn
        self._secrets = secrets
        self._lock = threading.Lock()
        self._next = 0.0
        self._shown: set[tuple[str, str]] = set()

    def __call__(self, host: str, stage: str, text: str) -> None:
        now = time.monotonic()
        with self._lock:
            if now < self._next and (host, stage) in self._shown:
                return
            self._shown.add((host, stage))
            self._next = now + _MIN_INTERVAL_S
        line = scrub(f"{host}: {stage}: {text}" if text else f"{host}: {stage}", self._secrets)
        self._log.write(self._urn, line, ephemeral=True)
