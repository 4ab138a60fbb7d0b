"""Running the probe on a scripted host, and saying why one did not start."""

from __future__ import annotations

from typing import Any

import pytest

from profiles.errors import HostError
from validation.collect import burn_in, collect, not_started
from validation.connection import CommandResult, Ending, Endpoint

ENDPOINT = Endpoint("node", "192.0.2.1", "ubuntu", "key")


def connected(remote: Any) -> Any:
    return remote.login(ENDPOINT, remote.knock(ENDPOINT, 1.0), 1.0)


def result(stderr: str = "", stdout: str = "", rc: int | None = 1, ending: Ending = Ending.EXITED) -> CommandResult:
    return CommandResult(ending, rc, stdout, stderr, 0.2)


def test_evidence_comes_home(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(items={"kernel": {"stdout": "Linux"}})
    bundle = collect(connected(scripted_remote(node=host)), ENDPOINT)
    assert bundle.complete
    assert bundle.items["kernel"].stdout == "Linux"


def test_another_probe_than_the_one_sent_makes_the_bundle_incomplete(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(items={"kernel": {}}, probe_digest="0" * 64)
    bundle = collect(connected(scripted_remote(node=host)), ENDPOINT)
    assert not bundle.complete
    assert bundle.notes[0] == "another probe answered than the one sent"


def test_a_connection_that_breaks_before_the_probe_starts_is_evidence_that_did_not_arrive(
    scripted_host: Any, scripted_remote: Any
) -> None:
    host = scripted_host(probe_result=result("reset by peer", "", None, Ending.LOST))
    bundle = collect(connected(scripted_remote(node=host)), ENDPOINT)
    assert not bundle.complete
    assert bundle.notes[0] == "the probe did not start"
    assert "reset by peer" in bundle.notes[-1]


def test_a_burn_in_is_one_item(scripted_host: Any, scripted_remote: Any) -> None:
    bundle = burn_in(connected(scripted_remote(node=scripted_host())), ENDPOINT, "quick")
    assert bundle.items["burn-in"].stdout == '{"level": "quick"}'


def test_a_probe_that_does_not_start_is_a_host_error_of_that_stage(scripted_host: Any, scripted_remote: Any) -> None:
    host = scripted_host(probe_result=result("This account is currently not available."))
    with pytest.raises(HostError, match=r"exit status 1 after .* s; last words: This account") as caught:
        collect(connected(scripted_remote(node=host)), ENDPOINT)
    assert caught.value.stage == "probe"


@pytest.mark.parametrize(
    ("seen", "message", "remedy"),
    [
        (result("kiln: no python3", rc=127), "no python3 on the host's PATH", "Install python3"),
        (result("sudo: python3: command not found"), "no python3 on the host's PATH", "Install python3"),
        (result("kiln: no sudo", rc=127), "sudo refused user ubuntu", "NOPASSWD"),
        (result("sudo: a password is required"), "sudo refused user ubuntu: sudo: a password is required", "NOPASSWD"),
        (result("sudo: sorry, you must have a tty to run sudo"), "sudo refused user ubuntu", "NOPASSWD"),
        (result("ubuntu is not in the sudoers file."), "sudo refused user ubuntu", "NOPASSWD"),
        (result("", "Please login as the user ec2-user\n", 142), "exit status 142", "Log in as this user"),
        (result("", "", None, Ending.TIMED_OUT), "timed out after 0.2 s", "Log in as this user"),
        (result("reset by peer", "", None, Ending.LOST), "connection lost", "Log in as this user"),
    ],
)
def test_each_way_of_not_starting_has_its_own_way_out(seen: CommandResult, message: str, remedy: str) -> None:
    error = not_started(ENDPOINT, seen)
    assert message in error.last_seen
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        ("2020-01-01T00:00:00Z", "behind this machine's: set the one that is wrong"),
        ("2099-01-01T00:00:00Z", "ahead of this machine's: set the one that is wrong"),
        ("yesterday", "the host's clock cannot be read: 'yesterday'"),
    ],
)
def test_a_clock_that_is_off_is_noticed(scripted_host: Any, scripted_remote: Any, clock: str, said: str) -> None:
    bundle = collect(connected(scripted_remote(node=scripted_host(clock=clock))), ENDPOINT)
    assert bundle.complete
    assert [said in note for note in bundle.notes] == [True]


def test_a_clock_that_is_right_is_no_matter(scripted_host: Any, scripted_remote: Any) -> None:
    assert collect(connected(scripted_remote(node=scripted_host())), ENDPOINT).notes == ()
