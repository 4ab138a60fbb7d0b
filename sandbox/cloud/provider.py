"""The emulated AWS provider: Pulumi's requests in, resource handlers and the semantics table behind."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from pulumi.provider.experimental import provider as pulumi_provider
from pulumi.provider.experimental.provider import (
    CheckFailure,
    CheckRequest,
    CheckResponse,
    ConfigureRequest,
    ConfigureResponse,
    CreateRequest,
    CreateResponse,
    DeleteRequest,
    DiffRequest,
    DiffResponse,
    GetSchemaRequest,
    GetSchemaResponse,
    InvokeRequest,
    InvokeResponse,
    PropertyDiff,
    PropertyDiffKind,
    ReadRequest,
    ReadResponse,
    UpdateRequest,
    UpdateResponse,
)

from profiles.errors import ConfigError, KilnError
from sandbox.cloud import diff, invokes, semantics
from sandbox.cloud.endpoint import default_home
from sandbox.cloud.handlers import HANDLERS, Handler
from sandbox.cloud.serving import OLD_INPUTS, one_line
from sandbox.cloud.session import Session
from sandbox.cloud.values import UNKNOWN, Properties, has_unknown, plain_map, wire_map

DEFAULTED = "__defaults"  # the bridge's name for the list of inputs that the provider filled in
EMPTY: tuple[Any, ...] = (None, [], {}, "")
KINDS = {
    ("add", False): PropertyDiffKind.ADD,
    ("add", True): PropertyDiffKind.ADD_REPLACE,
    ("delete", False): PropertyDiffKind.DELETE,
    ("delete", True): PropertyDiffKind.DELETE_REPLACE,
    ("update", False): PropertyDiffKind.UPDATE,
    ("update", True): PropertyDiffKind.UPDATE_REPLACE,
}


class EmulatedAws(pulumi_provider.Provider):
    """Serves the resource types of semantics.yaml. Blocking calls run in threads; a cancel ends waits."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home or default_home()
        self._table = semantics.load()
        self._region: str | None = None
        self._default_tags: dict[str, str] = {}
        self._session: Session | None = None
        self._connecting = asyncio.Lock()

    async def get_schema(self, _: GetSchemaRequest) -> GetSchemaResponse:
        """None: the engine would cache it under the real provider's name and version, for every other project."""
        raise ConfigError("the sandbox's aws provider has no schema; use `pulumi import --generate-code=false`")

    async def configure(self, request: ConfigureRequest) -> ConfigureResponse:
        """Only remembers: an error here would reach the user with a traceback of the program that waits for it."""
        given = plain_map(request.args)
        tags = _decoded(given.get("defaultTags")) or {}
        self._region = given.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._default_tags = tags.get("tags") or {}
        return ConfigureResponse(accept_secrets=False, supports_preview=True, accept_outputs=False)

    async def session(self) -> Session:
        """The connection to the sandbox, made when it is first needed.

        Raises:
            ConfigError: no region is set.
            SandboxDownError: no sandbox is running.
        """
        async with self._connecting:
            if self._session is None:
                if not self._region:
                    raise ConfigError("no AWS region: set it with `pulumi config set aws:region` or in AWS_REGION")
                self._session = await asyncio.to_thread(Session, self._home, self._region, self._default_tags)
            return self._session

    async def cancel(self) -> None:
        if self._session is not None:
            self._session.cancelled.set()

    def _handler(self, token: str) -> Handler:
        if token not in HANDLERS:
            known = ", ".join(sorted(HANDLERS))
            raise ConfigError(f"the sandbox does not emulate {token}; it has {known}")
        return HANDLERS[token]

    async def check(self, request: CheckRequest) -> CheckResponse:
        try:
            self._handler(request.type)
            await self.session()
        except KilnError as error:
            return CheckResponse(inputs=request.new_inputs, failures=[CheckFailure("", one_line(error))])
        given = plain_map(request.new_inputs)
        old = plain_map(request.old_inputs)
        resource = self._table.resources[request.type]
        filled, failures = self._table.check(request.type, given)
        defaults = sorted(name for name in filled if name not in given)
        name = resource.autoname
        if name and name not in filled:
            kept = old.get(name) if name in old.get(DEFAULTED, []) else None
            prefix = filled.get(f"{name}Prefix")
            filled[name] = kept or _autoname(prefix or f"{request.name}-", request.random_seed)
            defaults.append(name)
        filled[DEFAULTED] = defaults
        wrong = [CheckFailure(failure.path, failure.reason) for failure in failures]
        return CheckResponse(inputs=wire_map(filled), failures=wrong)

    async def diff(self, request: DiffRequest) -> DiffResponse:
        handler = self._handler(request.type)
        state, new = plain_map(request.old_state), plain_map(request.new_inputs)
        old = self._with_computed(request.type, OLD_INPUTS.get() or state, state)
        found = diff.compare(self._table, request.type, old, new)
        changes = [change for change in found.changes if change.name not in request.ignore_changes]
        detailed: dict[str, PropertyDiff] = {}
        replaces = []
        for change in changes:
            replace = change.on_change == "replace"
            if replace and not has_unknown(new.get(change.name)):
                replace = await asyncio.to_thread(
                    handler.refine, await self.session(), request.resource_id, change.name, new
                )
            if replace:
                replaces.append(change.name)
            detailed[change.path] = PropertyDiff(KINDS[change.kind, replace], input_diff=True)
        return DiffResponse(
            changes=bool(changes),
            replaces=sorted(set(replaces)),
            diffs=sorted({change.name for change in changes}),
            detailed_diff=detailed,
            delete_before_replace=found.delete_before_replace and bool(replaces),
        )

    async def create(self, request: CreateRequest) -> CreateResponse:
        handler = self._handler(request.type)
        inputs = plain_map(request.properties)
        if request.preview:
            return CreateResponse(resource_id="", properties=wire_map(self._unknowns(request.type, inputs)))
        created = await asyncio.to_thread(handler.create, await self.session(), request.name, inputs)
        return CreateResponse(created.id, wire_map(self._state(request.type, inputs, created.outputs)))

    async def read(self, request: ReadRequest) -> ReadResponse:
        handler = self._handler(request.type)
        state, inputs = plain_map(request.properties), plain_map(request.inputs)
        observed = await asyncio.to_thread(handler.read, await self.session(), request.resource_id, {**inputs, **state})
        if observed is None:
            return ReadResponse(resource_id="", properties={}, inputs={})
        inputs = self._observed_inputs(request.type, inputs, observed, imported=not state)
        new_state = self._state(request.type, {**state, **inputs}, observed)
        return ReadResponse(request.resource_id, wire_map(new_state), wire_map(inputs))

    async def update(self, request: UpdateRequest) -> UpdateResponse:
        handler = self._handler(request.type)
        state, inputs = plain_map(request.olds), plain_map(request.news)
        known = self._table.resources[request.type].inputs
        outputs = {name: value for name, value in state.items() if name not in known or known[name].computed}
        if request.preview:
            changing = {"latestVersion": UNKNOWN} if "latestVersion" in outputs else {}
            return UpdateResponse(wire_map({**outputs, **inputs, **changing}))
        changed = await asyncio.to_thread(handler.update, await self.session(), request.resource_id, state, inputs)
        if "tagsAll" in outputs:
            changed = {"tagsAll": (await self.session()).all_tags(inputs), **changed}
        return UpdateResponse(wire_map(self._state(request.type, {**outputs, **inputs}, changed)))

    async def delete(self, request: DeleteRequest) -> None:
        handler = self._handler(request.type)
        await asyncio.to_thread(
            handler.delete, await self.session(), request.resource_id, plain_map(request.properties)
        )

    async def invoke(self, request: InvokeRequest) -> InvokeResponse:
        answer = await asyncio.to_thread(invokes.answer, await self.session(), request.tok, plain_map(request.args))
        return InvokeResponse(return_value=wire_map(answer))

    def _with_computed(self, token: str, inputs: Properties, state: Properties) -> Properties:
        """The old inputs, and what the cloud filled in for those that the program left out.

        So a program that begins to spell out the value in effect changes nothing.
        """
        known = self._table.resources[token].inputs
        filled = {name: state[name] for name, prop in known.items() if prop.computed and name in state}
        return {**filled, **inputs}

    def _unknowns(self, token: str, inputs: Properties) -> Properties:
        """A preview of a new resource: its inputs, and every output that only the cloud will know."""
        resource = self._table.resources[token]
        later = [*resource.outputs, *(name for name, prop in resource.inputs.items() if prop.computed)]
        return {**dict.fromkeys(later, UNKNOWN), **inputs}

    def _state(self, token: str, base: Properties, observed: Properties) -> Properties:
        """Inputs and outputs in one, limited to what the resource type has."""
        resource = self._table.resources[token]
        known = {*resource.inputs, *resource.outputs}
        state = {**base, **{name: value for name, value in observed.items() if value is not None}}
        return {name: value for name, value in state.items() if name in known}

    def _observed_inputs(self, token: str, inputs: Properties, observed: Properties, *, imported: bool) -> Properties:
        """The inputs as they would have to be for the resource as it is; so a drift shows in the next diff."""
        known = self._table.resources[token].inputs
        if not imported:
            return {
                name: _drifted(value, observed[name]) if name in observed else value for name, value in inputs.items()
            }
        pruned = self._table.only_inputs(token, observed)
        return {name: value for name, value in pruned.items() if value not in EMPTY and value != known[name].default}


def _drifted(wanted: Any, found: Any) -> Any:
    """The value found; of an object only the keys that the program named. None, for gone, stays what it was."""
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted:
        return {key: found.get(key, value) for key, value in wanted.items()} if not _is_tags(wanted, found) else found
    return wanted if found is None else found


def _is_tags(wanted: dict[str, Any], found: dict[str, Any]) -> bool:
    return all(isinstance(value, str) for value in (*wanted.values(), *found.values()))


def _autoname(prefix: str, seed: bytes) -> str:
    """``prefix`` and seven hex digits, the same for the same seed."""
    digits = seed.hex()[:7] if seed else os.urandom(4).hex()[:7]
    return f"{prefix}{digits}"


def _decoded(value: Any) -> Any:
    """Nested provider settings come as JSON text."""
    return json.loads(value) if isinstance(value, str) else value
