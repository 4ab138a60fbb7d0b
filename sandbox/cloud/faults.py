"""Faults of the emulated cloud itself, by name; those of hosts are in :mod:`sandbox.hosts.host`."""

from __future__ import annotations

from dataclasses import dataclass, field

from profiles.errors import ConfigError
from sandbox.cloud.errors import AwsError

ANY = "*"
NAMES = {
    "no-capacity": "the next launches of the host are refused with InsufficientInstanceCapacity; value: how many, "
    "0 for all until cleared",
    "slow-create": "the host's launch takes that many seconds; value: seconds",
    "vanish": "the host's instance is terminated behind Pulumi's back, at once",
}


@dataclass
class CloudFaults:
    """Which launches are refused or slowed, by host name; ``*`` is every host."""

    refusals: dict[str, int] = field(default_factory=dict)  # how many more; -1 is without end
    delays_s: dict[str, float] = field(default_factory=dict)

    def inject(self, name: str, host: str, value: float) -> None:
        """Arm ``no-capacity`` or ``slow-create``.

        Raises:
            ConfigError: there is no such fault, or the value makes no sense.
        """
        check_name(name)
        if value < 0:
            raise ConfigError(f"{name}: the value must not be negative, found {value}")
        if name == "no-capacity":
            self.refusals[host] = int(value) or -1
        if name == "slow-create":
            self.delays_s[host] = value

    def launch(self, host: str, instance_type: str) -> float:
        """Seconds that the launch of ``host`` takes.

        Raises:
            AwsError: there is no capacity for it.
        """
        for key in (host, ANY):
            left = self.refusals.get(key, 0)
            if left:
                if left > 0:
                    self.refusals[key] = left - 1
                raise AwsError(
                    "InsufficientInstanceCapacity",
                    f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you "
                    "requested. Our system will be working on provisioning additional capacity.",
                    action="RunInstances",
                )
        return self.delays_s.get(host, self.delays_s.get(ANY, 0.0))

    def clear(self) -> None:
        self.refusals.clear()
        self.delays_s.clear()


def check_name(name: str) -> None:
    """Let a known cloud fault pass.

    Raises:
        ConfigError: there is no such fault; the message lists those that exist.
    """
    if name not in NAMES:
        raise ConfigError(f"unknown cloud fault '{name}'; the sandbox has {', '.join(sorted(NAMES))}")
