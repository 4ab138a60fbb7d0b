"""The gRPC side of the provider plugin: one-line errors, old inputs in a diff, cancel, and an end with its parent.

Pulumi's Python server turns every exception into a traceback for the user, drops the old inputs of a diff, and lives
on when the engine is killed. This module wraps it and changes just that.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from sandbox.cloud.errors import InitError
from sandbox.cloud.values import Properties, plain_map, wire_map

OLD_INPUTS: contextvars.ContextVar[Properties | None] = contextvars.ContextVar("OLD_INPUTS", default=None)
PARENT_POLL_S = 0.5
WRAPPED = ("Configure", "Check", "Create", "Update", "Delete", "Invoke", "CheckConfig", "GetSchema")


def one_line(error: BaseException) -> str:
    """What went wrong, on one line; an error that Kiln did not expect says its type, so it can be reported."""
    text = " ".join(str(error).split())
    known = type(error).__module__.startswith(("profiles.", "sandbox."))
    return text if known and text else f"unexpected {type(error).__name__} in the emulated provider: {text}"


class OneLineServicer(ProviderServicer):
    """Pulumi's servicer whose errors are one line, whose diffs see the old inputs, and whose gone is gone."""

    async def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        return await _answered(self._diff, request, context)

    async def _diff(self, request: Any, context: Any) -> Any:
        OLD_INPUTS.set(plain_map(PropertyValue.unmarshal_map(request.old_inputs)) or None)
        return await super().Diff(request, context)

    async def Read(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        answer = await _answered(super().Read, request, context)
        # The engine takes properties that are there but empty for a resource that exists: gone must be no answer.
        return answer if answer.id else provider_pb2.ReadResponse()


def _wrap(name: str) -> Callable[[Any, Any, Any], Awaitable[Any]]:
    async def method(self: ProviderServicer, request: Any, context: Any) -> Any:
        return await _answered(getattr(super(OneLineServicer, self), name), request, context)

    method.__name__ = name
    return method


for _name in WRAPPED:
    setattr(OneLineServicer, _name, _wrap(_name))


async def _answered(call: Callable[[Any, Any], Awaitable[Any]], request: Any, context: Any) -> Any:
    """The answer of ``call``, or its error as a status with one line of text."""
    try:
        return await call(request, context)
    except grpc.aio.AbortError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets one line and the engine a status
        cause = error.__context__ or error  # Pulumi's servicer wraps the error that it caught
        if isinstance(cause, InitError):
            _attach_partial_state(cause, context)
        await context.abort(grpc.StatusCode.UNKNOWN, one_line(cause))


def _attach_partial_state(error: InitError, context: Any) -> None:
    """Tell the engine that the resource exists, so that it is kept in the state and not leaked."""
    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=PropertyValue.marshal_map(wire_map(error.properties)),
        inputs=PropertyValue.marshal_map(wire_map(error.inputs)),
        reasons=[one_line(error)],
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=one_line(error))
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))


async def _watch_parent(parent: int) -> None:
    """Return when the process that started this one is gone."""
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_POLL_S)


async def serve(engine_address: str, version: str, provider: Provider) -> None:
    """Serve ``provider`` on a free port, which goes to standard output, until the engine is gone."""
    parent = os.getppid()
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    servicer = OneLineServicer([], version, provider, engine_address=engine_address)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await _watch_parent(parent)
    os._exit(0)  # a call may still be blocked in a thread; nobody is left to wait for it
