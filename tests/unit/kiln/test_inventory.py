from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kiln import inventory
from profiles.errors import ConfigError
from validation.runner import Target

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGa7nVGQnB0c9j0aZ7nY7oKjVJzGMHJ3PuR+a2Yi9aM"


def private_key(passphrase: bytes | None = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    openssh = serialization.PrivateFormat.OpenSSH
    return Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, openssh, encryption)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key").write_bytes(private_key())
    return tmp_path


def load(folder: Path, text: str, *, accept_new: bool = False) -> tuple[Target, ...]:
    path = folder / "inventory.yaml"
    path.write_text(text)
    return inventory.load(path, accept_new=accept_new)


def problems(folder: Path, text: str, *, accept_new: bool = False) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, accept_new=accept_new)
    return [str(problem) for problem in caught.value.problems] or [str(caught.value)]


GOOD = f"""\
defaults:
  user: ubuntu
  privateKeyFile: key
  instanceType: p5.48xlarge
hosts:
  - name: gpu-1
    address: 10.0.0.1
    hostKey: {HOST_KEY}
    efaCount: 32
    driver: "580"
  - name: gpu-2
    address: gpu-2.example
    port: 2222
    user: root
    instanceType: g5.xlarge
    hostKey: {HOST_KEY}
    instanceId: i-1
    evidenceRoot: /captures
"""


def test_a_host_takes_the_defaults_and_overrides_them(folder: Path) -> None:
    first, second = load(folder, GOOD)
    assert (first.name, first.address, first.user, first.port) == ("gpu-1", "10.0.0.1", "ubuntu", 22)
    assert first.host_key == HOST_KEY
    assert first.expectation.efa_count == 32
    assert first.expectation.software.driver == "580"
    assert first.expectation.profile is not None
    assert (second.user, second.port, second.instance_id) == ("root", 2222, "i-1")
    assert second.expectation.instance_type == "g5.xlarge"
    assert second.expectation.root == "/captures"


def test_the_private_key_is_found_beside_the_inventory_and_never_shown(folder: Path) -> None:
    target = load(folder, GOOD)[0]
    assert target.private_key == (folder / "key").read_text()
    assert "PRIVATE KEY" not in repr(target)


def test_an_unknown_type_is_left_to_the_judge(folder: Path) -> None:
    assert load(folder, GOOD.replace("g5.xlarge", "p99.bogus"))[1].expectation.profile is None


def test_a_host_without_a_key_is_refused_unless_new_ones_are_accepted(folder: Path) -> None:
    text = GOOD.replace(f"    hostKey: {HOST_KEY}\n    efaCount", "    efaCount")
    (problem,) = problems(folder, text)
    assert problem == (
        "inventory.yaml:6: hosts[0].hostKey: found nothing; expected the host's public SSH key. "
        "`ssh-keyscan -t ed25519 -p 22 10.0.0.1` prints it; or opt in with --accept-new."
    )
    first, second = load(folder, text, accept_new=True)
    assert (first.accept_new, second.accept_new) == (True, False)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "user: ubuntu",
            "usr: ubuntu",
            ":2: defaults.usr: found a key that cannot be a default; expected user perhaps;",
        ),
        ("  user: ubuntu", "  name: x", ":2: defaults.name: found a key that cannot be a default"),
        ("port: 2222", "prot: 2222", ":13: hosts[1].prot: found a key that does not exist; expected port perhaps;"),
        ("port: 2222", "port: 99999", ":13: hosts[1].port: found 99999; expected less than"),
        ("efaCount: 32", "efaCount: 33", ":9: hosts[0].efaCount: found 33; expected 0 to 32 (p5.48xlarge)"),
        ("efaCount: 32", "softwareProfile: x", ":9: hosts[0].softwareProfile: found 'x'; expected one of unpinned"),
        (
            "name: gpu-2",
            "name: gpu-1",
            ":11: hosts[1].name: found 'gpu-1'; expected a name of its own: hosts[0] has it",
        ),
        ("name: gpu-2", "name: 'gpu 2'", ":11: hosts[1].name: found 'gpu 2'; expected"),
        ("  privateKeyFile: key\n", "", ": hosts[0].privateKeyFile: found nothing; expected a value"),
        ("privateKeyFile: key", "privateKeyFile: no", ":3: defaults.privateKeyFile: found"),
        ("evidenceRoot: /captures", "evidenceRoot: captures", ":18: hosts[1].evidenceRoot: found 'captures'"),
        ("hosts:", "host:", ":5: host: found a key that does not exist; expected defaults or hosts"),
        (f"hostKey: {HOST_KEY}\n    efa", "hostKey: AAAA\n    efa", ":8: hosts[0].hostKey: found 'AAAA'"),
    ],
)
def test_what_is_wrong_is_told_by_line_and_key(folder: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert expected in problems(folder, GOOD.replace(old, new, 1))[0]


def test_everything_wrong_is_told_at_once(folder: Path) -> None:
    text = GOOD.replace("port: 2222", "port: none").replace("efaCount: 32", "efaCount: 99")
    assert len(problems(folder, text)) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the top level must be a mapping"),
        ("hosts: []", "hosts: found no host; expected a list of hosts"),
        ("hosts: {}", "hosts: found no host; expected a list of hosts"),
        ("hosts: 7", "hosts: found no list; expected a list of hosts"),
        ("hosts: [7]", "hosts[0]: found 7; expected a mapping of keys"),
        ("defaults: 7\nhosts: [7]", "defaults: found int; expected a mapping of keys"),
        ("hosts: [a\n", "not YAML"),
    ],
)
def test_a_file_that_is_no_inventory_is_refused(folder: Path, text: str, expected: str) -> None:
    assert expected in problems(folder, text)[0]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing\\.yaml"):
        inventory.load(tmp_path / "nothing.yaml")


def test_a_key_with_a_passphrase_is_refused(folder: Path) -> None:
    (folder / "key").write_bytes(private_key(b"secret"))
    assert "key: a passphrase; expected a private key without one" in problems(folder, GOOD)[0]


@pytest.mark.parametrize("data", [b"nonsense", b"-----BEGIN OPENSSH PRIVATE KEY-----\nxx\n", b"\xff\xfe"])
def test_a_file_that_is_no_key_is_refused(folder: Path, data: bytes) -> None:
    (folder / "key").write_bytes(data)
    assert "no private key" in problems(folder, GOOD)[0]


def test_a_key_below_the_home_of_nobody_is_refused(folder: Path) -> None:
    (problem, *_) = problems(folder, GOOD.replace("privateKeyFile: key", "privateKeyFile: ~no-such-user/key"))
    assert "privateKeyFile: found ~no-such-user/key" in problem


def test_a_version_that_no_host_could_have_is_refused(folder: Path) -> None:
    (problem,) = problems(folder, GOOD.replace('"580"', "banana"))
    assert "hosts[0].driver: found 'banana'; expected numbers with dots" in problem


def test_an_inventory_that_is_not_there_is_told_with_the_way_out(folder: Path) -> None:
    for path in (folder / "none.yaml", folder):
        with pytest.raises(ConfigError, match=r"there is no inventory .*\n.*docs/inventory\.md"):
            inventory.load(path)


def test_the_settings_that_were_asked_for_reach_the_expectation(folder: Path) -> None:
    asked = "    efaCount: 32\n    persistence: false\n    ecc: false\n    powerLimitW: 400\n    mig: true\n"
    wanted = load(folder, GOOD.replace("    efaCount: 32\n", asked))[0].expectation
    assert (wanted.persistence, wanted.ecc, wanted.power_limit_w, wanted.mig) == (False, False, 400.0, True)
    untold = load(folder, GOOD)[0].expectation
    assert (untold.persistence, untold.ecc, untold.power_limit_w, untold.mig) == (True, None, None, False)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("powerLimitW: much", "expected a number"), ("powerLimitW: 0", "greater than 0"), ("ecc: 7", "true or false")],
)
def test_a_setting_that_cannot_be_is_refused(folder: Path, line: str, expected: str) -> None:
    (found,) = problems(folder, GOOD.replace("    efaCount: 32\n", f"    {line}\n"))
    assert line.partition(":")[0] in found
    assert expected in found
