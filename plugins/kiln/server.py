"""The provider's gRPC service: what the Pulumi engine calls, on threads, so that Cancel gets through at any time.

Written against the engine's protocol itself and not on ``pulumi.provider.experimental``: that base has no old inputs in
Diff, shows exceptions as tracebacks, and runs everything on one event loop.
"""

# ruff: noqa: N802, ARG002 - the names and arguments are those of the engine's protocol

from __future__ import annotations

import functools
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from types import FrameType
from typing import Any, TypeVar

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from plugins.kiln import healthy, inputs, ssh_key, wire
from plugins.kiln.gate import CANCEL_PATIENCE_S, Gate, Validate
from plugins.kiln.progress import EngineLog, StatusLine
from validation.report.model import StackReport

VERSION = "0.1.0"
GATE = "kiln:index:HealthGate"
HEALTHY = "kiln:index:Healthy"
SSH_KEY = "kiln:index:SshKey"
_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], list[tuple[str, str]]]] = {
    GATE: inputs.check,
    HEALTHY: healthy.check,
    SSH_KEY: ssh_key.check,
}
_MAX_MESSAGE = 400 * 1024 * 1024  # the engine's own limit
_PARENT_POLL_S = 0.5
_ENGINE_S = 5.0
_ANSWER_S = 0.2  # for an answer that is ready to leave this process

Method = TypeVar("Method", bound=Callable[..., Any])


class RefusedError(Exception):
    """A call that is refused with one line for the user."""


def answering(method: Method) -> Method:
    """Whatever goes wrong in a call reaches the user as one line without secrets, never as a traceback."""

    @functools.wraps(method)
    def call(self: Provider, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except RefusedError as error:
            message, secrets = str(error), _secrets(request)
        except Exception as error:  # noqa: BLE001 - the engine would print a traceback; one line tells the user more
            message, secrets = f"{method.__name__}: {wire.one_line(error)}", _secrets(request)
        return context.abort(grpc.StatusCode.UNKNOWN, wire.scrub(message, secrets))

    return call  # type: ignore[return-value]


def _secrets(request: Any) -> frozenset[str]:
    found: set[str] = set()
    for field in ("properties", "news", "olds", "inputs", "old_inputs"):
        struct = getattr(request, field, None)
        if isinstance(struct, struct_pb2.Struct):
            found.update(wire.secrets_in(struct))
            for host in wire.properties(struct).get("hosts") or ():
                if isinstance(host, dict) and isinstance(host.get("privateKey"), str):
                    found.add(host["privateKey"])
    return frozenset(found)


def _type_of(urn: str) -> str:
    return urn.split("::")[2].split("$")[-1]


def _name_of(urn: str) -> str:
    return urn.split("::")[-1]


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Resources of package ``kiln``. All three live in state only: deleting one has nothing to undo."""

    def __init__(self, validate: Validate, log: EngineLog) -> None:
        self._cancelled = threading.Event()
        self._gate = Gate(validate, self._cancelled)
        self._log = log
        self._judging = 0
        self._idle = threading.Condition()

    # what the plugin is

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, request: Any, context: Any) -> Any:
        return provider_pb2.GetSchemaResponse(schema='{"name":"kiln","version":"' + VERSION + '"}')

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=False, acceptResources=False, acceptOutputs=False
        )

    def Cancel(self, request: Any, context: Any) -> Any:
        self._cancelled.set()
        return empty_pb2.Empty()

    # what happens to a resource

    @answering
    def Check(self, request: Any, context: Any) -> Any:
        kind = _type_of(request.urn)
        if kind not in _CHECKS:
            raise RefusedError(f"package kiln has no resource {kind}")
        wrong = _CHECKS[kind](wire.properties(request.news))
        failures = [provider_pb2.CheckFailure(property=path, reason=reason) for path, reason in wrong]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @answering
    def Diff(self, request: Any, context: Any) -> Any:
        kind = _type_of(request.urn)
        old, new = wire.properties(request.old_inputs), wire.properties(request.news)
        if kind == SSH_KEY:
            replaces = ssh_key.replaces(old, new)
            return _difference(replaces, replaces)
        # A preview passes no token: what differs only by it is no change. A real run always passes a fresh one.
        ignored = {"recheck"} if not new.get("recheck") else set()
        return _difference([name for name in sorted({*old, *new} - ignored) if old.get(name) != new.get(name)], [])

    @answering
    def Create(self, request: Any, context: Any) -> Any:
        kind, name = _type_of(request.urn), _name_of(request.urn)
        properties = wire.properties(request.properties)
        if kind == SSH_KEY:
            identity, state = ssh_key.create(properties)
        else:
            identity, state = name, self._state(kind, request, properties, {})
        return provider_pb2.CreateResponse(id=identity, properties=wire.to_struct(state))

    @answering
    def Update(self, request: Any, context: Any) -> Any:
        state = self._state(
            _type_of(request.urn), request, wire.properties(request.news), wire.properties(request.olds)
        )
        return provider_pb2.UpdateResponse(properties=wire.to_struct(state))

    def _state(self, kind: str, request: Any, new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
        if kind == HEALTHY:
            reason = healthy.closed(new)
            if reason:
                raise RefusedError(reason)
            return healthy.outputs(new)
        secrets = _secrets(request)
        progress = StatusLine(self._log, request.urn, secrets)
        with self._idle:
            self._judging += 1
        try:
            return self._gate.judge(new, old, secrets, progress)
        finally:
            with self._idle:
                self._judging -= 1
                self._idle.notify_all()

    def stop(self) -> None:
        """Cancel what is being judged, and come back once its verdict has been handed over."""
        self._cancelled.set()
        with self._idle:
            if self._judging:
                self._idle.wait_for(lambda: not self._judging, timeout=2 * CANCEL_PATIENCE_S)
                time.sleep(_ANSWER_S)

    def Read(self, request: Any, context: Any) -> Any:
        """A refresh does not judge: what was recorded stays, and says when it was recorded."""
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Delete(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


def _difference(changed: list[str], replaces: list[str]) -> Any:
    kinds = provider_pb2.PropertyDiff
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=changed,
        replaces=replaces,
        hasDetailedDiff=True,
        detailedDiff={
            name: kinds(kind=kinds.UPDATE_REPLACE if name in replaces else kinds.UPDATE, inputDiff=True)
            for name in changed
        },
    )


def end_with_parent(engine_address: str) -> None:
    """End this process when its parent is gone: a killed engine leaves its providers running otherwise.

    A parent that was gone before the first look would never be missed, so the engine must answer at its address too.
    """
    parent = os.getppid()
    if engine_address and not _answers(engine_address):
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ENGINE_S).close()
    except ConnectionRefusedError:
        return False
    except (OSError, ValueError):
        return True  # an address that cannot be tried this way says nothing about the engine
    return True


def end_on_signals(provider: Provider) -> None:
    """The engine ends a provider with SIGINT and waits 5 s before it kills it; a verdict on its way out is let out."""

    def end() -> None:
        provider.stop()
        os._exit(0)

    def handle(_number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=end, name="end", daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)


def serve(validate: Validate, engine_address: str) -> None:
    """Serve until the engine ends the process. The engine reads the port from the first line of stdout."""
    provider = Provider(validate, EngineLog(engine_address))
    end_with_parent(engine_address)
    end_on_signals(provider)
    options = [("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.max_send_message_length", _MAX_MESSAGE)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64, thread_name_prefix="rpc"), options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while True:
        signal.pause()  # the main thread does nothing but take signals


def _validate(*arguments: Any, **options: Any) -> StackReport:
    """:func:`validation.runner.validate`, loaded when hosts are judged: a preview judges none, and waits for us."""
    from validation.runner import validate

    return validate(*arguments, **options)


def main(argv: list[str], validate: Validate = _validate) -> None:
    """Entry of the executable: the engine passes its own address as last argument."""
    serve(validate, argv[-1] if len(argv) > 1 and not argv[-1].startswith("-") else "")
