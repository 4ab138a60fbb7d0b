"""When an earlier burn-in still counts: same host, boot, GPUs, driver, expectation and judge, and young enough.

Only the measurement is reused. It is judged again, and one that no longer opens the gate is measured again.
"""

from __future__ import annotations

import datetime as dt

from validation.facts.gpu import GpuInventory
from validation.facts.host import HostInfo
from validation.facts.store import Facts
from validation.report.model import BurnInRecord, Identity

FUTURE_S = 60.0  # clocks may differ a little; a record from later than that is not believed


def identity_of(facts: Facts, *, instance_id: str, expectation: str, judge: str) -> Identity | None:
    """What a verdict on this host is bound to; None where a part of it could not be read, for then nothing can match.

    ``instance_id`` is the stack's; where it gave none, the host's own.
    """
    if HostInfo not in facts or GpuInventory not in facts:
        return None
    host, inventory = facts.need(HostInfo), facts.need(GpuInventory)
    uuids = [gpu.uuid for gpu in inventory.gpus]
    known = tuple(sorted(uuid for uuid in uuids if isinstance(uuid, str)))
    driver = inventory.driver_version
    if not known or len(known) != len(uuids) or inventory.lost or not isinstance(driver, str):
        return None
    own = host.instance_id if isinstance(host.instance_id, str) else ""
    return Identity(
        instance_id=instance_id or own,
        boot_id=host.boot_id,
        gpu_uuids=known,
        driver=driver,
        expectation=expectation,
        judge=judge,
    )


def reusable(record: BurnInRecord, identity: Identity, level: str, lifetime_s: float, now: dt.datetime) -> bool:
    """Whether a record stands for this host as it is now. A time that cannot be read is too old."""
    if record.identity != identity or record.level != level:
        return False
    try:
        age_s = (now - dt.datetime.fromisoformat(record.ran_at.replace("Z", "+00:00"))).total_seconds()
    except (TypeError, ValueError):
        return False
    return -FUTURE_S <= age_s <= lifetime_s
