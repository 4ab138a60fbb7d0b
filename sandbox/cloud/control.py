"""The control API: JSON over HTTP on 127.0.0.1, for the provider plugin and for ``sandbox.client``.

Requests arrive in threads and run on the daemon's event loop. Every request carries the token of ``endpoint.json``.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
import traceback
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from profiles.errors import KilnError
from sandbox.cloud import faults
from sandbox.cloud.endpoint import TOKEN_HEADER
from sandbox.cloud.errors import AwsError
from sandbox.cloud.pool import Pool, check_fault
from sandbox.hosts.faults import FAULTS

CALL_TIMEOUT_S = 60.0
Body = dict[str, Any]
Terminate = Callable[[str, str], Awaitable[None]]


class Control:
    """The API's operations. ``terminate`` ends an instance in moto: id and region."""

    def __init__(self, pool: Pool, terminate: Terminate, stop: Callable[[], None]) -> None:
        self._pool = pool
        self._terminate = terminate
        self._stop = stop
        self.last_call = time.monotonic()
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., Awaitable[Any]]]] = [
            (method, re.compile(f"^{pattern}$"), operation)
            for method, pattern, operation in (
                ("GET", "/status", self.status),
                ("POST", "/stop", self.stop),
                ("GET", "/instances", self.instances),
                ("GET", "/instances/([^/]+)", self.instance),
                ("PUT", "/instances/([^/]+)", self.add_instance),
                ("DELETE", "/instances/([^/]+)", self.remove_instance),
                ("POST", "/instances/([^/]+)/restart", self.restart_instance),
                ("POST", "/instances/([^/]+)/options", self.change_options),
                ("POST", "/launches", self.launch),
                ("GET", "/kept/([^/]+)", self.get_kept),
                ("PUT", "/kept/([^/]+)/(.+)", self.put_kept),
                ("DELETE", "/kept/([^/]+)/(.+)", self.delete_kept),
                ("GET", "/kept", self.all_kept),
                ("GET", "/addresses", self.addresses),
                ("PUT", "/addresses/([^/]+)", self.allocate),
                ("DELETE", "/addresses/([^/]+)", self.release),
                ("POST", "/addresses/([^/]+)/associate", self.associate),
                ("GET", "/faults", self.list_faults),
                ("POST", "/hosts/([^/]+)/faults", self.inject),
                ("DELETE", "/hosts/([^/]+)/faults", self.clear),
                ("POST", "/hosts/([^/]+)/reboot", self.reboot),
                ("POST", "/cloud-faults", self.inject_cloud_fault),
                ("DELETE", "/cloud-faults", self.clear_cloud_faults),
            )
        ]

    async def handle(self, method: str, path: str, body: Body) -> tuple[int, Any]:
        """Status and JSON answer of one request; every error becomes an answer."""
        self.last_call = time.monotonic()
        for wanted, pattern, operation in self._routes:
            match = pattern.match(path)
            if match and wanted == method:
                try:
                    return 200, await operation(*match.groups(), body)
                except AwsError as error:
                    return 400, {"kind": "aws", "code": error.code, "message": error.text, "action": error.action}
                except KilnError as error:
                    return 400, {"kind": "config", "message": error.message, "remedy": error.remedy}
                except Exception as error:  # noqa: BLE001 - the caller gets one line, the daemon's log the rest
                    traceback.print_exc()
                    message = f"{type(error).__name__}: {error}"
                    return 500, {"kind": "internal", "code": "InternalError", "message": message}
        return 404, {"kind": "internal", "code": "NoSuchOperation", "message": f"{method} {path}"}

    async def status(self, _: Body) -> Any:
        simulated = [instance for instance in self._pool.instances.values() if instance.host is not None]
        return {"instances": len(self._pool.instances), "hosts": len(simulated), "pending": self._pool.pending}

    async def stop(self, _: Body) -> Any:
        self._stop()
        return {}

    async def instances(self, _: Body) -> Any:
        return [self._pool.describe(instance) for instance in self._pool.instances.values()]

    async def instance(self, instance_id: str, _: Body) -> Any:
        found = self._pool.instances.get(instance_id)
        return None if found is None else self._pool.describe(found)

    async def add_instance(self, instance_id: str, body: Body) -> Any:
        return self._pool.describe(await self._pool.add(instance_id, body))

    async def remove_instance(self, instance_id: str, _: Body) -> Any:
        await self._pool.remove(instance_id)
        return {}

    async def restart_instance(self, instance_id: str, body: Body) -> Any:
        instance = self._pool.find(instance_id)
        await self._pool.restart(instance, body.get("instance_type"))
        return self._pool.describe(instance)

    async def change_options(self, instance_id: str, body: Body) -> Any:
        record = self._pool.find(instance_id).record
        for key in ("metadata", "root"):
            record[key] |= body.get(key, {})
        return {}

    async def launch(self, body: Body) -> Any:
        return {"delay_s": self._pool.cloud_faults.launch(body["name"], body["instance_type"])}

    async def all_kept(self, _: Body) -> Any:
        return self._pool.kept

    async def get_kept(self, kind: str, _: Body) -> Any:
        return self._pool.kept.get(kind, {})

    async def put_kept(self, kind: str, key: str, body: Body) -> Any:
        self._pool.kept.setdefault(kind, {})[key] = body
        return body

    async def delete_kept(self, kind: str, key: str, _: Body) -> Any:
        self._pool.kept.get(kind, {}).pop(key, None)
        return {}

    async def addresses(self, _: Body) -> Any:
        return self._pool.elastic

    async def allocate(self, allocation: str, body: Body) -> Any:
        return self._pool.allocate(allocation, body["region"])

    async def release(self, allocation: str, _: Body) -> Any:
        await self._pool.associate(allocation, "")
        self._pool.elastic.pop(allocation, None)
        return {}

    async def associate(self, allocation: str, body: Body) -> Any:
        await self._pool.associate(allocation, body["instance_id"])
        return {}

    async def list_faults(self, _: Body) -> Any:
        return {"host": sorted(FAULTS), "cloud": faults.NAMES}

    async def inject(self, host: str, body: Body) -> Any:
        check_fault(body["name"])
        if body.get("pending") and not any(host in (item.id, item.name) for item in self._pool.instances.values()):
            self._pool.pending.setdefault(host, []).append(body["name"])
            return {"pending": True}
        await self._pool.inject(self._pool.find(host), body["name"])
        return {"pending": False}

    async def clear(self, host: str, _: Body) -> Any:
        waiting = self._pool.pending.pop(host, None)
        if waiting is None:
            await self._pool.clear(self._pool.find(host))
        return {}

    async def reboot(self, host: str, _: Body) -> Any:
        await self._pool.restart(self._pool.find(host))
        return {}

    async def inject_cloud_fault(self, body: Body) -> Any:
        name, host = body["name"], body.get("host") or faults.ANY
        faults.check_name(name)
        if name != "vanish":
            self._pool.cloud_faults.inject(name, host, float(body.get("value") or 0))
            return {}
        instance = self._pool.find(host)
        await self._terminate(instance.id, instance.record["region"])
        await self._pool.remove(instance.id)
        return {"vanished": instance.id}

    async def clear_cloud_faults(self, _: Body) -> Any:
        self._pool.cloud_faults.clear()
        return {}


def server(control: Control, loop: asyncio.AbstractEventLoop, token: str) -> ThreadingHTTPServer:
    """An HTTP server on a free port of 127.0.0.1; the caller runs and closes it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            if not hmac.compare_digest(self.headers.get(TOKEN_HEADER, ""), token):
                self._reply(403, {"kind": "internal", "code": "Forbidden", "message": "wrong token"})
                return
            try:
                body = json.loads(raw) if raw else {}
                call = control.handle(self.command, self.path, body)
                status, answer = asyncio.run_coroutine_threadsafe(call, loop).result(CALL_TIMEOUT_S)
            except (ValueError, TimeoutError) as error:
                status, answer = 400, {"kind": "internal", "code": "BadRequest", "message": str(error)}
            self._reply(status, answer)

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the base class's names

        def _reply(self, status: int, answer: Any) -> None:
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Requests are not worth a line each."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    return http
