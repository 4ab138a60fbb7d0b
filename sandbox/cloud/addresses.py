"""Loopback addresses for simulated hosts, and one SSH port for all of them.

The whole of 127.0.0.0/8 answers on Linux without any set-up. Instances get 127.64.x.y, elastic addresses 127.65.x.y.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

INSTANCES = ipaddress.ip_network("127.64.0.0/16")
ELASTIC = ipaddress.ip_network("127.65.0.0/16")
RESERVED = "127.64.255.254"  # the sandbox itself listens here, so that no second one takes the same port
DEFAULT_PORT = 2222


def pool(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Iterator[str]:
    """Every usable address of ``network`` once, in order, without the reserved one."""
    return (str(address) for address in network.hosts() if str(address) != RESERVED)


def reserve_port(wanted: int = DEFAULT_PORT) -> socket.socket:
    """A socket that holds the SSH port of this sandbox: ``wanted`` where it is free, else any free one."""
    for port in (wanted, 0):
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.bind((RESERVED, port))
            holder.listen(1)
        except OSError:
            holder.close()
            if port == 0:
                raise
            continue
        return holder
    raise AssertionError("unreachable: the second attempt returns or raises")
