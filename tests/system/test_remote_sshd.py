"""The probe over a real OpenSSH daemon."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from profiles.errors import ConfigError, HostError
from validation.collect import collect
from validation.connection import Ending, Endpoint, Failure, HostKeyError, RemoteError
from validation.evidence import Bundle, Outcome
from validation.probe.collectors import collectors
from validation.probe.files import Root
from validation.remote import FabricRemote

pytestmark = pytest.mark.system

EVERY_ITEM = {entry.name for entry in collectors(Root("/"))}
SENTRY_S = 5.0


def endpoint(sshd: Any, user: str = "root", **changes: Any) -> Endpoint:
    fields = {
        "name": "node",
        "address": sshd.address,
        "user": user,
        "private_key": sshd.private_key,
        "host_key": sshd.host_key,
        "port": sshd.port,
    }
    return Endpoint(**{**fields, **changes})


def gather(target: Endpoint) -> Bundle:
    remote = FabricRemote()
    connection = remote.login(target, remote.knock(target, SENTRY_S), SENTRY_S)
    try:
        return collect(connection, target)
    finally:
        connection.close()


def refusal(target: Endpoint) -> RemoteError:
    remote = FabricRemote()
    with pytest.raises(RemoteError) as caught:
        remote.login(target, remote.knock(target, SENTRY_S), SENTRY_S)
    return caught.value


def test_root_brings_home_every_item_and_a_complete_bundle(start_sshd: Callable[..., Any]) -> None:
    bundle = gather(endpoint(start_sshd()))
    assert bundle.complete, bundle.notes
    assert set(bundle.items) == EVERY_ITEM
    assert bundle.root == "/"
    assert bundle.items["boot-id"].stdout == Path("/proc/sys/kernel/random/boot_id").read_text()


def test_an_ordinary_user_gathers_through_sudo_as_root(
    start_sshd: Callable[..., Any], make_user: Callable[..., str]
) -> None:
    bundle = gather(endpoint(start_sshd(), make_user(sudo=True)))
    assert bundle.complete, bundle.notes
    assert set(bundle.items) == EVERY_ITEM
    assert bundle.items["kernel-log"].outcome is Outcome.OK


def test_a_host_without_a_gpu_answers_not_found_and_stays_complete(start_sshd: Callable[..., Any]) -> None:
    bundle = gather(endpoint(start_sshd("SetEnv PATH=/usr/local/bin:/usr/bin:/bin")))
    assert bundle.complete
    gpu_items = ("nvml", "nvidia-smi-q-x", "topo-m", "topo-p2p-r", "nvlink-s", "driver-module")
    assert {bundle.items[name].outcome for name in gpu_items} == {Outcome.NOT_FOUND}


def test_a_user_whom_sudo_refuses_is_told_the_way_out(
    start_sshd: Callable[..., Any], make_user: Callable[..., str]
) -> None:
    user = make_user(sudo=False)
    with pytest.raises(HostError, match=f"sudo refused user {user}") as caught:
        gather(endpoint(start_sshd(), user))
    assert caught.value.stage == "probe"
    assert "NOPASSWD" in caught.value.remedy


def test_a_host_without_python_is_told_the_way_out(
    start_sshd: Callable[..., Any], make_user: Callable[..., str], tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sudo").symlink_to(shutil.which("sudo") or "/usr/bin/sudo")
    with pytest.raises(HostError, match="no python3") as caught:
        gather(endpoint(start_sshd(f"SetEnv PATH={tools}"), make_user(sudo=True)))
    assert "Install python3" in caught.value.remedy


def test_a_host_without_sudo_is_told_the_way_out(
    start_sshd: Callable[..., Any], make_user: Callable[..., str], tmp_path: Path
) -> None:
    with pytest.raises(HostError, match="sudo refused") as caught:
        gather(endpoint(start_sshd(f"SetEnv PATH={tmp_path}"), make_user(sudo=True)))
    assert "log in as root" in caught.value.remedy


def test_noise_from_the_login_shell_changes_nothing(
    start_sshd: Callable[..., Any], make_user: Callable[..., str], tmp_path: Path
) -> None:
    user = make_user(sudo=True)
    noisy = tmp_path / "noisy"
    noisy.write_text(
        '#!/bin/sh\nprintf "Welcome {\\"kiln\\": 1}\\nno line end"\necho trouble >&2\neval "$SSH_ORIGINAL_COMMAND"\n'
    )
    noisy.chmod(0o755)
    bundle = gather(endpoint(start_sshd(f"ForceCommand {noisy}"), user))
    assert bundle.complete, bundle.notes
    assert set(bundle.items) == EVERY_ITEM


def test_a_wrong_host_key_is_refused_and_both_keys_are_named(
    start_sshd: Callable[..., Any], key_pair: Callable[[], Any]
) -> None:
    sshd, other = start_sshd(), key_pair().public
    error = refusal(endpoint(sshd, host_key=other))
    assert isinstance(error, HostKeyError)
    assert error.failure is Failure.HOST_KEY
    assert error.expected != error.offered
    assert error.expected.startswith("ssh-ed25519 SHA256:")
    assert error.offered in str(error)
    assert error.expected in str(error)


def test_an_unknown_host_key_is_refused_unless_accepting_it_was_asked_for(start_sshd: Callable[..., Any]) -> None:
    sshd = start_sshd()
    assert refusal(endpoint(sshd, host_key=None)).failure is Failure.UNPINNED
    assert gather(endpoint(sshd, host_key=None, accept_new=True)).complete


def test_accepting_unknown_keys_does_not_accept_a_wrong_one(
    start_sshd: Callable[..., Any], key_pair: Callable[[], Any]
) -> None:
    error = refusal(endpoint(start_sshd(), host_key=key_pair().public, accept_new=True))
    assert error.failure is Failure.HOST_KEY


def test_a_key_that_is_not_authorized_is_told_apart(
    start_sshd: Callable[..., Any], key_pair: Callable[[], Any]
) -> None:
    secret = key_pair().private
    error = refusal(endpoint(start_sshd(), private_key=secret))
    assert error.failure is Failure.AUTHENTICATION
    assert error.stage == "authenticated"
    assert secret not in str(error)


def test_a_closed_port_is_refused(start_sshd: Callable[..., Any], closed_port: int) -> None:
    error = refusal(endpoint(start_sshd(), port=closed_port))
    assert error.failure is Failure.REFUSED
    assert "Connection refused" in error.last_seen


def test_an_unreadable_private_key_is_a_configuration_error_that_does_not_show_it(
    start_sshd: Callable[..., Any],
) -> None:
    target = endpoint(start_sshd(), private_key="very secret")
    remote = FabricRemote()
    with pytest.raises(ConfigError, match="private key cannot be read") as caught:
        remote.login(target, remote.knock(target, SENTRY_S), SENTRY_S)
    assert "very secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_command_reports_both_streams_and_its_exit_status(start_sshd: Callable[..., Any]) -> None:
    target, remote = endpoint(start_sshd()), FabricRemote()
    connection = remote.login(target, remote.knock(target, SENTRY_S), SENTRY_S)
    flood = "i=0; while [ $i -lt 20000 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done; exit 7"
    result = connection.execute(flood, timeout_s=30.0)
    assert (result.ending, result.rc) == (Ending.EXITED, 7)
    assert result.stdout.endswith("out19999\n")
    assert result.stderr.endswith("err19999\n")
    connection.close()


def test_a_command_that_hangs_ends_at_its_timeout_and_at_a_cancel(start_sshd: Callable[..., Any]) -> None:
    target, remote = endpoint(start_sshd()), FabricRemote()
    connection = remote.login(target, remote.knock(target, SENTRY_S), SENTRY_S)
    begun = time.monotonic()
    assert connection.execute("sleep 30", timeout_s=0.5).ending is Ending.TIMED_OUT
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    assert connection.execute("sleep 30", timeout_s=30.0, cancel=cancel).ending is Ending.CANCELLED
    assert time.monotonic() - begun < SENTRY_S
    connection.close()


def test_a_connection_that_breaks_is_an_ending_and_not_a_crash(start_sshd: Callable[..., Any]) -> None:
    target, remote = endpoint(start_sshd()), FabricRemote()
    connection = remote.login(target, remote.knock(target, SENTRY_S), SENTRY_S)
    result = connection.execute("kill -9 $PPID; sleep 30", timeout_s=SENTRY_S)
    assert (result.ending, result.rc) == (Ending.LOST, None)
    connection.close()


@pytest.fixture
def second_key(tmp_path: Path) -> tuple[str, str]:
    """An RSA host key: the sshd_config line that serves it too, and its public half."""
    key = rsa.generate_private_key(65537, 2048)
    pem, openssh = serialization.Encoding.PEM, serialization.Encoding.OpenSSH
    private = key.private_bytes(pem, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    (tmp_path / "rsa").write_bytes(private)
    (tmp_path / "rsa").chmod(0o600)
    public = key.public_key().public_bytes(openssh, serialization.PublicFormat.OpenSSH).decode()
    return f"HostKey {tmp_path / 'rsa'}", public


def test_a_host_with_several_keys_is_known_by_the_one_that_was_given(
    start_sshd: Callable[..., Any], second_key: tuple[str, str]
) -> None:
    sshd = start_sshd(second_key[0])
    assert gather(endpoint(sshd)).complete
    assert gather(endpoint(sshd, host_key=second_key[1])).complete


def test_a_host_without_a_key_of_the_kind_that_was_given_is_refused(
    start_sshd: Callable[..., Any], second_key: tuple[str, str]
) -> None:
    error = refusal(endpoint(start_sshd(), host_key=second_key[1]))
    assert isinstance(error, HostKeyError)
    assert error.expected.startswith("ssh-rsa SHA256:")
    assert error.offered.startswith("ssh-ed25519 SHA256:")


def test_nothing_of_the_users_own_configuration_has_an_effect(
    start_sshd: Callable[..., Any], key_pair: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd, other = start_sshd(), key_pair()
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host *\n  User nobody\n  HostName 192.0.2.1\n  ProxyCommand false\n")
    (tmp_path / ".ssh/id_ed25519").write_text(sshd.private_key)
    (tmp_path / ".fabric.yml").write_text("user: nobody\nconnect_kwargs: {password: wrong}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "no-agent"))
    assert gather(endpoint(sshd)).complete
    # The key that would let us in lies in the user's directory, and is not looked for.
    assert refusal(endpoint(sshd, private_key=other.private)).failure is Failure.AUTHENTICATION
