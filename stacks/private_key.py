"""A private SSH key as it is given: what is wrong with it, without a word of it."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from profiles.errors import Problem


def problem(path: str, key: bytes, *, file: str = "") -> Problem | None:
    """What is wrong with a key (the problem's path is ``path``); None for one that can be used. ``file`` holds it."""
    where = f"{file}: " if file else ""
    openssh = b"BEGIN OPENSSH PRIVATE KEY" in key
    try:
        key.decode("ascii")
        (serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key)(key, None)
    except TypeError:
        return Problem(
            path, f"{where}a passphrase", "a private key without one", "`ssh-keygen -p` takes it off a copy."
        )
    except (ValueError, UnsupportedAlgorithm):
        return Problem(path, f"{where}no private key", "a key in OpenSSH or PEM form")
    return None
