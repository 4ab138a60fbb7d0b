"""A private key is refused before any host is tried with it, and never shown."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stacks.private_key import problem

PLAIN = serialization.NoEncryption()
LOCKED = serialization.BestAvailableEncryption(b"secret words")


def openssh(encryption: serialization.KeySerializationEncryption) -> bytes:
    form = serialization.PrivateFormat.OpenSSH
    return Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, form, encryption)


def pem(encryption: serialization.KeySerializationEncryption) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return generate_private_key(SECP256R1()).private_bytes(serialization.Encoding.PEM, form, encryption)


@pytest.mark.parametrize("key", [openssh(PLAIN), pem(PLAIN)], ids=["openssh", "pem"])
def test_a_key_that_can_be_used_has_no_problem(key: bytes) -> None:
    assert problem("p", key) is None


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (openssh(LOCKED), "p: found a passphrase; expected a private key without one"),
        (pem(LOCKED), "p: found a passphrase; expected a private key without one"),
        (b"abc", "p: found no private key; expected a key in OpenSSH or PEM form"),
        (b"", "p: found no private key"),
        (openssh(PLAIN)[:90], "p: found no private key"),
        ("Schlüssel".encode() + openssh(PLAIN), "p: found no private key"),
    ],
    ids=["openssh locked", "pem locked", "words", "nothing", "cut", "not ASCII"],
)
def test_a_key_that_cannot_be_used_is_refused_without_a_word_of_it(key: bytes, found: str) -> None:
    told = str(problem("p", key))
    assert told.startswith(found)
    assert key.decode(errors="replace") not in told or not key


def test_the_file_is_named_where_there_is_one() -> None:
    assert str(problem("p", b"x", file="/keys/id")).startswith("p: found /keys/id: no private key")
