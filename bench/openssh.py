"""What there is without Kiln: the OpenSSH client in a loop, as many at once as Kiln logs in to."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

from bench.fleet import Fleet
from profiles.errors import KilnError
from sandbox.hosts.host import SimulatedHost
from validation.probe.collectors import collectors
from validation.probe.files import Root
from validation.target import Target

LIMIT_S = 120.0
# The files that the probe reads, as a shell would; their folders stand in for patterns that a shell cannot expand.
FILES = (
    "etc/os-release",
    "proc/sys/kernel/random/boot_id",
    "proc/driver/nvidia/version",
    "sys/class/dmi/id/*",
    "sys/module/efa/version",
    "usr/local/cuda*/version.json",
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/system/node/node*/distance",
    *(
        f"sys/bus/pci/devices/*/{name}"
        for name in (
            "vendor",
            "device",
            "class",
            "numa_node",
            "current_link_speed",
            "current_link_width",
            "max_link_speed",
            "max_link_width",
        )
    ),
)


def tool_commands() -> list[str]:
    """The command lines of the probe's tools. NVML has none: it is left out."""
    return [collector.ways[0][0] for collector in collectors(Root("/")) if not collector.is_file]


def file_command(host: SimulatedHost) -> str:
    """One shell line that prints the probe's files."""
    paths = " ".join(f"{host.folder}/root/{name}" for name in FILES)
    return f"cat {paths} 2>/dev/null"


def fact_commands(host: SimulatedHost) -> str:
    """One shell line that prints what the probe's tools and files say."""
    return "; ".join([*tool_commands(), file_command(host), "true"])


def loop(fleet: Fleet, commands: list[str], concurrency: int) -> int:
    """Run one command on each host; the bytes read. Raises KilnError where one of them did not end well."""
    with ThreadPoolExecutor(concurrency) as pool:
        return sum(pool.map(lambda pair: _one(fleet, *pair), zip(fleet.targets, commands, strict=True)))


def _one(fleet: Fleet, target: Target, command: str) -> int:
    arguments = ["ssh", "-F", "none", "-i", str(fleet.access.key_file), "-p", str(target.port), "-l", target.user]
    for option in (
        "IdentitiesOnly=yes",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        f"UserKnownHostsFile={fleet.access.known_hosts}",
        "LogLevel=ERROR",
    ):
        arguments += ["-o", option]
    done = subprocess.run([*arguments, target.address, command], capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise KilnError(f"ssh to {target.name} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return len(done.stdout)
