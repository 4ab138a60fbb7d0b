"""The sandbox as one process: moto, simulated hosts with their SSH servers, and the control API.

``python -m sandbox.cloud.daemon --home DIR`` runs until SIGTERM, SIGINT, a call of ``/stop`` or hours without a call.
State is in memory and below ``DIR/hosts``; nothing survives a restart.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

from sandbox.cloud import addresses, endpoint
from sandbox.cloud.control import Control, server
from sandbox.cloud.pool import Pool

IDLE_HOURS = 4.0
IDLE_POLL_S = 1.0


def _start_moto() -> tuple[ThreadedMotoServer, str]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    return moto, f"http://{host}:{port}"


async def _terminate(moto_url: str, instance_id: str, region: str) -> None:
    """End an instance as somebody else would: through the cloud's API, without telling Pulumi."""

    def call() -> None:
        client = boto3.client(
            "ec2",
            region_name=region,
            endpoint_url=moto_url,
            aws_access_key_id="sandbox",
            aws_secret_access_key="sandbox",  # noqa: S106 - moto takes any
        )
        client.terminate_instances(InstanceIds=[instance_id])

    await asyncio.to_thread(call)


async def run(home: Path, idle_hours: float) -> None:
    """Serve until something asks to stop; the home holds no endpoint and no host afterwards."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.rmtree(home / "hosts", ignore_errors=True)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with contextlib.closing(addresses.reserve_port()) as holder:
        ssh_port = int(holder.getsockname()[1])
        moto, moto_url = await asyncio.to_thread(_start_moto)
        pool = Pool(home, ssh_port)
        control = Control(pool, lambda name, region: _terminate(moto_url, name, region), stopping.set)
        token = secrets.token_urlsafe(24)
        http = server(control, loop, token)
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        ready = endpoint.Endpoint(
            pid=os.getpid(),
            control=f"http://127.0.0.1:{http.server_address[1]}",
            moto=moto_url,
            ssh_port=ssh_port,
            token=token,
            started=time.time(),
        )
        endpoint.write(home, ready)
        try:
            await _until_stopped(stopping, control, idle_hours)
        finally:
            (home / endpoint.FILE_NAME).unlink(missing_ok=True)
            await pool.close()
            await asyncio.to_thread(http.shutdown)
            http.server_close()
            await asyncio.to_thread(moto.stop)
            shutil.rmtree(home / "hosts", ignore_errors=True)


async def _until_stopped(stopping: asyncio.Event, control: Control, idle_hours: float) -> None:
    while not stopping.is_set():
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopping.wait(), IDLE_POLL_S)
        if time.monotonic() - control.last_call > idle_hours * 3600:
            return


def main(arguments: list[str] | None = None) -> int:
    """Run the daemon in the foreground."""
    parser = argparse.ArgumentParser(prog="sandbox.cloud.daemon", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="folder of the sandbox's state")
    parser.add_argument("--idle-hours", type=float, default=IDLE_HOURS, help="stop after so long without a call")
    given = parser.parse_args(arguments)
    asyncio.run(run(given.home.resolve(), given.idle_hours))
    return 0


if __name__ == "__main__":
    sys.exit(main())
