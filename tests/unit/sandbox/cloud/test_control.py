"""The control API over a pool whose hosts are stand-ins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import ConfigError
from sandbox.cloud import pool as pools
from sandbox.cloud.control import Control
from sandbox.cloud.pool import Pool

RECORD = {
    "name": "node-0",
    "instance_type": "g5.xlarge",
    "efa_count": 0,
    "region": "us-east-1",
    "public": False,
    "placement_group": "",
    "root": {"volumeSize": 8},
    "metadata": {"httpTokens": "optional"},
    "host_key": "PRIVATE",
    "authorized_keys": ["ssh-ed25519 AAAA"],
}


class StandInHost:
    def __init__(self, instance_type: str) -> None:
        self.instance_type = instance_type
        self.faults: tuple[str, ...] = ()
        self.boots = 1

    @classmethod
    def create(cls, home: Path, host_id: str, name: str, instance_type: str, **_: Any) -> StandInHost:
        if instance_type == "t3.micro":
            raise ConfigError("no machine description for t3.micro")
        return cls(instance_type)

    def inject(self, name: str) -> None:
        self.faults = (*self.faults, name)

    def clear(self) -> None:
        self.faults = ()

    def reboot(self) -> None:
        self.boots += 1


class Listening:
    """Which addresses answer."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def serve(self, host: Any, address: str, port: int, key: str, keys: list[str]) -> Any:
        assert (port, keys) == (2222, ["ssh-ed25519 AAAA"])
        self.addresses.append(address)
        outer = self

        class Server:
            async def close(self) -> None:
                outer.addresses.remove(address)

        return Server()


class Api:
    """The API as a plain object: ``api("GET", "/status")`` gives status and answer."""

    def __init__(self, home: Path) -> None:
        self.pool = Pool(home, 2222)
        self.terminated: list[tuple[str, str]] = []
        self.stopped = False
        self.control = Control(self.pool, self._terminate, self._stop)

    async def _terminate(self, instance_id: str, region: str) -> None:
        self.terminated.append((instance_id, region))

    def _stop(self) -> None:
        self.stopped = True

    def __call__(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        return asyncio.run(self.control.handle(method, path, body or {}))

    def ok(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        status, answer = self(method, path, body)
        assert status == 200, answer
        return answer


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Listening:
    found = Listening()
    monkeypatch.setattr(pools, "SimulatedHost", StandInHost)
    monkeypatch.setattr(pools, "serve", found.serve)
    return found


@pytest.fixture
def api(tmp_path: Path, listening: Listening) -> Api:  # the hosts are stand-ins by then
    return Api(tmp_path)


def test_an_instance_gets_a_host_at_its_address(api: Api, listening: Listening) -> None:
    made = api.ok("PUT", "/instances/i-1", RECORD)
    assert made["address"] == "127.64.0.1"
    assert made["public_address"] == ""
    assert listening.addresses == ["127.64.0.1"]
    assert api.ok("GET", "/instances/i-1") == made
    assert api.ok("GET", "/status") == {"instances": 1, "hosts": 1, "pending": {}}


def test_no_key_leaves_the_sandbox(api: Api) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    assert "PRIVATE" not in str(api.ok("GET", "/instances"))


def test_a_public_instance_shows_its_address_as_public(api: Api) -> None:
    assert api.ok("PUT", "/instances/i-1", {**RECORD, "public": True})["public_address"] == "127.64.0.1"


def test_an_instance_goes_with_its_host_and_may_go_twice(api: Api, listening: Listening) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    for _ in range(2):
        api.ok("DELETE", "/instances/i-1")
    assert listening.addresses == []
    assert api.ok("GET", "/instances") == []
    assert api.ok("GET", "/instances/i-1") is None


def test_a_type_that_no_machine_is_described_for_has_an_instance_but_no_host(api: Api, listening: Listening) -> None:
    made = api.ok("PUT", "/instances/i-1", {**RECORD, "instance_type": "t3.micro"})
    assert (made["simulated"], made["why_no_host"]) == (False, "no machine description for t3.micro")
    assert listening.addresses == []
    status, answer = api("POST", "/hosts/node-0/faults", {"name": "gpu-lost"})
    assert status == 400
    assert "has no simulated host" in answer["message"]


def test_faults_go_to_a_host_by_name_or_id_and_are_cleared(api: Api) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    api.ok("POST", "/hosts/node-0/faults", {"name": "gpu-lost"})
    api.ok("POST", "/hosts/i-1/faults", {"name": "nvlink-down"})
    assert api.ok("GET", "/instances")[0]["faults"] == ["gpu-lost", "nvlink-down"]
    api.ok("DELETE", "/hosts/node-0/faults")
    assert api.ok("GET", "/instances")[0]["faults"] == []


def test_the_newest_of_two_hosts_with_one_name_is_meant(api: Api) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    api.ok("PUT", "/instances/i-2", RECORD)
    api.ok("POST", "/hosts/node-0/faults", {"name": "gpu-lost"})
    assert [item["faults"] for item in api.ok("GET", "/instances")] == [[], ["gpu-lost"]]


@pytest.mark.parametrize(
    ("path", "fault", "words"),
    [("/hosts/nobody/faults", "gpu-lost", "the sandbox has node-0"), ("/hosts/node-0/faults", "rust", "gpu-lost")],
)
def test_an_unknown_host_or_fault_is_refused_with_the_known_ones(api: Api, path: str, fault: str, words: str) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    status, answer = api("POST", path, {"name": fault})
    assert (status, answer["kind"]) == (400, "config")
    assert words in answer["message"]


def test_a_fault_waits_for_a_host_that_is_not_there_yet(api: Api) -> None:
    assert api.ok("POST", "/hosts/node-0/faults", {"name": "gpu-lost", "pending": True}) == {"pending": True}
    assert api.ok("PUT", "/instances/i-1", RECORD)["faults"] == ["gpu-lost"]
    assert api.ok("PUT", "/instances/i-2", RECORD)["faults"] == []


def test_a_waiting_fault_can_be_forgotten(api: Api) -> None:
    api.ok("POST", "/hosts/node-0/faults", {"name": "gpu-lost", "pending": True})
    api.ok("DELETE", "/hosts/node-0/faults")
    assert api.ok("GET", "/status")["pending"] == {}


def test_a_reboot_keeps_the_host_and_another_type_is_another_host(api: Api, listening: Listening) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    first: Any = api.pool.instances["i-1"].host
    api.ok("POST", "/hosts/node-0/reboot")
    assert first.boots == 2
    api.ok("POST", "/instances/i-1/restart", {"instance_type": "g5.48xlarge"})
    second: Any = api.pool.instances["i-1"].host
    assert second.instance_type == "g5.48xlarge"
    assert listening.addresses == ["127.64.0.1"]


def test_an_elastic_address_answers_for_the_instance_it_is_given_to(api: Api, listening: Listening) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    assert api.ok("PUT", "/addresses/eipalloc-1", {"region": "us-east-1"})["address"] == "127.65.0.1"
    api.ok("POST", "/addresses/eipalloc-1/associate", {"instance_id": "i-1"})
    assert listening.addresses == ["127.64.0.1", "127.65.0.1"]
    assert api.ok("GET", "/instances")[0]["public_address"] == "127.65.0.1"
    api.ok("DELETE", "/addresses/eipalloc-1")
    assert listening.addresses == ["127.64.0.1"]
    assert api.ok("GET", "/addresses") == {}


def test_an_elastic_address_outlives_its_instance(api: Api, listening: Listening) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    api.ok("PUT", "/addresses/eipalloc-1", {"region": "us-east-1"})
    api.ok("POST", "/addresses/eipalloc-1/associate", {"instance_id": "i-1"})
    api.ok("DELETE", "/instances/i-1")
    assert listening.addresses == []
    assert api.ok("GET", "/addresses")["eipalloc-1"]["instance_id"] == ""


def test_what_moto_has_no_room_for_is_kept(api: Api) -> None:
    api.ok("PUT", "/kept/placement-groups/a", {"strategy": "cluster"})
    assert api.ok("GET", "/kept/placement-groups") == {"a": {"strategy": "cluster"}}
    api.ok("DELETE", "/kept/placement-groups/a")
    assert api.ok("GET", "/kept") == {"placement-groups": {}}


def test_options_are_changed_one_by_one(api: Api) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    api.ok("POST", "/instances/i-1/options", {"root": {"iops": 4000}})
    assert api.ok("GET", "/instances")[0]["root"] == {"volumeSize": 8, "iops": 4000}


def test_a_launch_without_capacity_is_refused_in_the_words_of_aws(api: Api) -> None:
    api.ok("POST", "/cloud-faults", {"name": "no-capacity", "host": "node-0"})
    status, answer = api("POST", "/launches", {"name": "node-0", "instance_type": "g5.xlarge"})
    assert (status, answer["kind"], answer["code"]) == (400, "aws", "InsufficientInstanceCapacity")
    api.ok("DELETE", "/cloud-faults")
    assert api.ok("POST", "/launches", {"name": "node-0", "instance_type": "g5.xlarge"}) == {"delay_s": 0.0}


def test_a_vanished_instance_is_terminated_in_the_cloud_and_has_no_host(api: Api, listening: Listening) -> None:
    api.ok("PUT", "/instances/i-1", RECORD)
    assert api.ok("POST", "/cloud-faults", {"name": "vanish", "host": "node-0"}) == {"vanished": "i-1"}
    assert api.terminated == [("i-1", "us-east-1")]
    assert listening.addresses == []


def test_a_host_whose_waiting_fault_does_not_fit_is_not_left_behind(
    api: Api, monkeypatch: pytest.MonkeyPatch, listening: Listening
) -> None:
    def refuse(self: StandInHost, name: str) -> None:
        raise ConfigError("this machine has no NVLink")

    monkeypatch.setattr(StandInHost, "inject", refuse)
    api.ok("POST", "/hosts/node-0/faults", {"name": "nvlink-down", "pending": True})
    status, answer = api("PUT", "/instances/i-1", RECORD)
    assert (status, answer["message"]) == (400, "this machine has no NVLink")
    assert (api.ok("GET", "/instances"), listening.addresses) == ([], [])


def test_an_unknown_operation_is_told_apart_from_an_error(api: Api) -> None:
    assert api("GET", "/nonsense")[0] == 404
    status, answer = api("POST", "/launches", {})
    assert (status, answer["message"]) == (500, "KeyError: 'name'")


def test_the_sandbox_can_be_told_to_stop(api: Api) -> None:
    api.ok("POST", "/stop")
    assert api.stopped
