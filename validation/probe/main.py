"""The probe's entry: gather evidence and write it out; or run a burn-in. It decides nothing.

``collect NONCE [LIMIT_S]`` and ``burn-in NONCE LEVEL``. It leaves by ``os._exit``: no child, thread or exit hook can
hold it back.
"""

import hashlib
import json
import os
import re
import signal
import sys
import time
from typing import Any, Dict, List

from validation.probe.collectors import Collector, collectors
from validation.probe.files import Root
from validation.probe.process import Pool
from validation.probe.wire import Wire

USAGE = "usage: probe collect NONCE [LIMIT_S] | probe burn-in NONCE LEVEL"
REFUSED = re.compile("operation not permitted|permission denied|insufficient permissions|access denied", re.IGNORECASE)


def main(archive: bytes, arguments: List[str]) -> None:
    """Run the probe and leave the process. ``archive`` is the zip it was started from; its digest names the probe."""
    status = 2
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by the caller, it would hide how children ended
    try:
        mode, nonce = arguments[0], arguments[1]
        root = Root(os.environ.get("KILN_ROOT", "/"))
        wire = Wire(1, nonce)
        wire.start(header(root, archive))
        if mode == "collect":
            limit_s = float(arguments[2]) if len(arguments) > 2 else float("inf")
            gather(collectors(root), wire, limit_s)
        elif mode == "burn-in":
            burn_in(wire, arguments[2])
        else:
            raise ValueError("no such mode: %s" % mode)
        wire.end()
        status = 0
    except BrokenPipeError:
        status = 1  # nobody listens any more
    except (IndexError, ValueError) as error:
        os.write(2, ("%s (%s)\n" % (USAGE, error)).encode())
    except Exception as error:  # noqa: BLE001 - becomes the last line of the transcript; without an end, no verdict
        os.write(2, ("probe: %s: %s\n" % (type(error).__name__, error)).encode("utf-8", "replace"))
    finally:
        os._exit(status)


def header(root: Root, archive: bytes) -> Dict[str, Any]:
    """How this evidence was gathered: the root in effect, when by the host's clock, by which probe, as whom."""
    return {
        "schema": "kiln/probe/v1",
        "root": root.path,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "probe": hashlib.sha256(archive).hexdigest(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "uid": os.getuid(),
        "hostname": os.uname()[1],
    }


def gather(table: List[Collector], wire: Wire, limit_s: float) -> None:
    """Start every collector at once and send each item as it ends, whatever the others do."""
    pool = Pool()
    waiting = {}
    tried: Dict[str, List[Dict[str, Any]]] = {}
    begun = time.monotonic()
    for collector in table:
        waiting[collector.name] = collector
        tried[collector.name] = []
        _next_way(pool, collector, 0, begun, limit_s)
    try:
        while waiting:
            for name, result in pool.poll().items():
                collector, attempts = waiting[name], tried[name]
                attempts.append(_item(collector, len(attempts), result))
                if not _good(attempts[-1], collector) and _next_way(pool, collector, len(attempts), begun, limit_s):
                    continue
                wire.evidence(_best(attempts, collector))
                del waiting[name]
    except BrokenPipeError:
        pool.kill()
        raise


def _next_way(pool: Pool, collector: Collector, way: int, begun: float, limit_s: float) -> bool:
    """Start the collector's next way within what is left of its time; False where there is none."""
    left_s = min(collector.timeout_s, limit_s) - (time.monotonic() - begun if way else 0)
    if way >= len(collector.ways) or left_s <= 0:
        return False
    pool.start(collector.name, collector.ways[way][1], left_s, collector.cap)
    return True


def _item(collector: Collector, way: int, result: Dict[str, Any]) -> Dict[str, Any]:
    item = dict(result, name=collector.name, source=collector.ways[way][0])
    if collector.is_file:
        item["rc"] = None
    if item["outcome"] == "ok" and item["rc"] and REFUSED.search(item["stderr"]):
        item.update(outcome="denied", error=item["stderr"].strip().split("\n")[-1])
    return item


def _succeeded(item: Dict[str, Any]) -> bool:
    return item["outcome"] == "ok" and not item["rc"]


def _good(item: Dict[str, Any], collector: Collector) -> bool:
    return _succeeded(item) and (len(collector.ways) == 1 or collector.whole(item["stdout"]))


def _best(attempts: List[Dict[str, Any]], collector: Collector) -> Dict[str, Any]:
    """The one that is whole; else the longest that succeeded, the last that was there at all, the last."""
    whole = [item for item in attempts if _good(item, collector)]
    if whole:
        return whole[0]
    succeeded = [item for item in attempts if _succeeded(item)]
    if succeeded:
        return max(succeeded, key=lambda item: len(item["stdout"]))
    there = [item for item in attempts if item["outcome"] != "not-found"]
    return (there or attempts)[-1]


def burn_in(wire: Wire, level: str) -> None:
    """Run the burn-in and send its result as one item."""
    from validation.probe import burnin

    begun = time.monotonic()
    item: Dict[str, Any] = {"name": "burn-in", "source": "burn-in %s" % level, "outcome": "ok"}
    try:
        item["stdout"] = json.dumps(burnin.run(level, wire.progress), sort_keys=True)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - becomes the item's cause; nothing measured is never a pass
        item.update(outcome="error", error="%s: %s" % (type(error).__name__, error))
    item["duration_s"] = round(time.monotonic() - begun, 3)
    wire.evidence(item)
