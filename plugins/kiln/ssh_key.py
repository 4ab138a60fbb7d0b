"""``kiln:index:SshKey``: an ed25519 key pair, whose private half is a secret output."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plugins.kiln.wire import secret

INPUTS = frozenset({"rotation"})


def check(inputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Property and reason for each input that is wrong."""
    return [(name, "no such input; SshKey takes only 'rotation'") for name in inputs if name not in INPUTS]


def replaces(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """A new value of ``rotation`` makes a new key; nothing else does."""
    return ["rotation"] if old.get("rotation") != new.get("rotation") else []


def create(inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(fingerprint, outputs) of a new pair; the private half in OpenSSH's own format, without passphrase."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    ).decode()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    fingerprint = fingerprint_of(public)
    return fingerprint, {
        "publicKey": public,
        "privateKey": secret(private),
        "fingerprint": fingerprint,
        **({"rotation": inputs["rotation"]} if "rotation" in inputs else {}),
    }


def fingerprint_of(public_key: str) -> str:
    """``SHA256:...`` of an OpenSSH public key line, as ``ssh-keygen -lf`` prints it."""
    blob = base64.b64decode(public_key.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
