"""Keys, and the first word of a daemon, without SSH."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from profiles.errors import ConfigError
from validation.connection import Endpoint, Failure, RemoteError
from validation.remote import FabricRemote, fingerprint, read_private_key, read_public_key

PRIVATE: dict[str, Callable[[], Any]] = {
    "ssh-ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa-sha2-nistp256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ssh-rsa": lambda: rsa.generate_private_key(65537, 2048),
}
OPENSSH = serialization.PrivateFormat.OpenSSH
PEM = serialization.PrivateFormat.TraditionalOpenSSL
PLAIN = serialization.NoEncryption()


def texts(key: Any, form: serialization.PrivateFormat = OPENSSH, lock: Any = PLAIN) -> tuple[str, str]:
    private = key.private_bytes(serialization.Encoding.PEM, form, lock).decode()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private, public.decode()


@pytest.mark.parametrize("kind", PRIVATE)
def test_keys_of_every_kind_are_read_from_their_text(kind: str) -> None:
    private, public = texts(PRIVATE[kind]())
    ours, theirs = read_private_key(private, "node"), read_public_key(f"{public} root@node\n", "node")
    assert ours.get_name() == kind
    assert fingerprint(ours) == fingerprint(theirs)
    assert fingerprint(theirs).startswith(f"{kind} SHA256:")


@pytest.mark.parametrize("kind", ["ecdsa-sha2-nistp256", "ssh-rsa"])
def test_the_older_pem_format_is_read_too(kind: str) -> None:
    private, _ = texts(PRIVATE[kind](), PEM)
    assert read_private_key(private, "node").get_name() == kind


@pytest.mark.parametrize("text", ["", "secret words", "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END"])
def test_a_private_key_that_cannot_be_read_is_told_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="node: the private key cannot be read") as caught:
        read_private_key(text, "node")
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)
    assert "c2VjcmV0" not in str(caught.value)


def test_a_private_key_under_a_passphrase_is_told_so_by_its_remedy() -> None:
    locked = serialization.BestAvailableEncryption(b"pass")
    with pytest.raises(ConfigError, match="without passphrase"):
        read_private_key(texts(PRIVATE["ssh-ed25519"](), lock=locked)[0], "node")


@pytest.mark.parametrize("text", ["", "ssh-ed25519", "ssh-ed25519 ????", "ssh-dss AAAA", "ssh-ed25519 AAAA"])
def test_a_host_key_that_cannot_be_read_is_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigError, match="node: the host key cannot be read"):
        read_public_key(text, "node")


@contextlib.contextmanager
def daemon(greeting: bytes | None) -> Iterator[int]:
    """A listener that says one thing and closes; None: accepts and stays silent."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            caller, _ = server.accept()
            with caller:
                if greeting is None:
                    done.wait(5.0)
                else:
                    caller.sendall(greeting)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        done.set()
        thread.join()


def knock(port: int) -> socket.socket:
    return FabricRemote().knock(Endpoint("node", "127.0.0.1", "root", "key", port=port), 0.5)


def test_a_daemon_that_greets_is_reached_and_its_greeting_is_left_to_be_read() -> None:
    with daemon(b"SSH-2.0-OpenSSH_9.6\r\n") as port, knock(port) as door:
        assert door.recv(4) == b"SSH-"


@pytest.mark.parametrize(
    ("greeting", "failure", "seen"),
    [
        (b"", Failure.DROPPED, "closed before its SSH banner"),
        (b"Exceeded MaxStartups\r\n", Failure.DROPPED, "Exceeded MaxStartups"),
        (b"Not allowed at this time\r\n", Failure.DROPPED, "Not allowed at this time"),
        (None, Failure.TIMED_OUT, "connected, but no SSH banner: timed out"),
    ],
)
def test_a_daemon_that_does_not_greet_is_told_apart(greeting: bytes | None, failure: Failure, seen: str) -> None:
    with daemon(greeting) as port, pytest.raises(RemoteError) as caught:
        knock(port)
    assert caught.value.failure is failure
    assert caught.value.stage == "reachable"
    assert seen in caught.value.last_seen


def test_something_that_is_no_ssh_daemon_is_dropped_with_its_cause() -> None:
    private, _ = texts(PRIVATE["ssh-ed25519"]())
    target = Endpoint("node", "127.0.0.1", "root", private, accept_new=True)
    with daemon(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port, pytest.raises(RemoteError) as caught:
        FabricRemote().login(target, knock(port), 1.0)
    assert caught.value.failure is Failure.DROPPED


def test_every_failure_has_its_own_way_out() -> None:
    remedies = [RemoteError("node", failure, "seen").remedy for failure in Failure]
    assert all(remedies)
    assert len(set(remedies)) == len(remedies)
