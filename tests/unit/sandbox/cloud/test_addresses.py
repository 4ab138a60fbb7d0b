"""Addresses and the SSH port of simulated hosts."""

from __future__ import annotations

import itertools
import socket

from sandbox.cloud import addresses


def test_every_host_gets_a_loopback_address_of_its_own() -> None:
    first = list(itertools.islice(addresses.pool(addresses.INSTANCES), 300))
    assert first[0] == "127.64.0.1"
    assert len(set(first)) == 300
    assert all(address.startswith("127.64.") for address in first)


def test_the_reserved_address_is_given_to_no_host() -> None:
    assert addresses.RESERVED not in set(addresses.pool(addresses.INSTANCES))


def test_elastic_addresses_are_apart_from_those_of_instances() -> None:
    assert next(addresses.pool(addresses.ELASTIC)) == "127.65.0.1"


def test_a_second_sandbox_takes_another_port() -> None:
    with socket.socket() as probe:
        probe.bind((addresses.RESERVED, 0))
        wanted = probe.getsockname()[1]
    with addresses.reserve_port(wanted) as first, addresses.reserve_port(wanted) as second:
        assert first.getsockname()[1] == wanted
        assert second.getsockname()[1] != wanted
