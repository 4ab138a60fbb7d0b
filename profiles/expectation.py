"""What one host must be: the profile of its type, overridden by what the stack asked for."""

from __future__ import annotations

from profiles import catalog
from profiles.errors import ConfigError, Problem
from profiles.models import BurnInLevel, Expectation, SoftwareProfile


def expect(
    instance_type: str,
    *,
    software: str | SoftwareProfile = "unpinned",
    driver: str | None = None,
    cuda: str | None = None,
    efa_count: int = 0,
    mig: bool = False,
    persistence: bool = True,
    ecc: bool | None = None,
    power_limit_w: float | None = None,
    root: str = "/",
    burn_in: BurnInLevel = "none",
) -> Expectation:
    """The expectation of one host.

    An unknown type gives an expectation without a profile: the judge then says UNKNOWN. ``driver`` and ``cuda``
    override the software profile's pins. Raises ConfigError for an unknown software profile, and for more EFAs than
    the type can carry.
    """
    profile = catalog.load(instance_type)
    pins = catalog.software(software) if isinstance(software, str) else software
    overrides = {key: value for key, value in (("driver", driver), ("cuda", cuda)) if value}
    limit = profile.network.efa_max.value if profile else None
    if efa_count < 0 or (limit is not None and efa_count > limit):
        allowed = f"0 to {limit} ({instance_type})" if limit is not None else "0 or more"
        raise ConfigError("the expectation is wrong", [Problem("efaCount", str(efa_count), allowed)])
    return Expectation(
        instance_type=instance_type,
        profile=profile,
        software=pins.model_copy(update=overrides),
        efa_count=efa_count,
        mig=mig,
        persistence=persistence,
        ecc=ecc,
        power_limit_w=power_limit_w,
        root=root,
        burn_in=burn_in,
    )
