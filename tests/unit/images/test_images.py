"""The image lock and what a host is told at its first boot."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from images import lock
from images.cloud_init import host_key_user_data
from profiles.errors import ConfigError


def test_the_lock_loads_and_every_image_says_what_it_is() -> None:
    images = lock.load().images["aws"]
    assert all(image.note.strip() and image.root_device.startswith("/dev/") for image in images.values())


def test_an_image_is_found_by_name_and_region_only() -> None:
    locked = lock.load()
    found = locked.find("aws", "sandbox-ubuntu", "us-east-1")
    assert found is not None
    assert found.id.startswith("ami-")
    assert locked.find("aws", "sandbox-ubuntu", "mars-north-1") is None
    assert locked.find("aws", "nope", "us-east-1") is None
    assert locked.find("alicloud", "sandbox-ubuntu", "us-east-1") is None


@pytest.mark.parametrize(("text", "message"), [("images: [", "cannot be read"), ("schema: x\nimages: {}", "schema")])
def test_a_wrong_lock_file_is_named_with_the_key(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "lock.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        lock.load(file)
    assert "lock.yaml" in str(caught.value)


def test_a_host_gets_its_own_key_and_no_other() -> None:
    text = host_key_user_data("-----BEGIN\nabc\n-----END\n", "ssh-ed25519 AAAA")
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text) == {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": "-----BEGIN\nabc\n-----END\n", "ed25519_public": "ssh-ed25519 AAAA"},
    }
