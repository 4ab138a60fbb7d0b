"""The rules before resources: each with what it accepts and its exact words for what it refuses."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from stacks import plan, rules
from stacks.rules import hosts, image, network, storage
from stacks.settings import Settings

GOOD: dict[str, Any] = {"image": "sandbox-ubuntu", "instanceType": "p5.48xlarge"}
HOST: dict[str, Any] = {"name": "a", "address": "192.0.2.1", "instanceType": "g5.xlarge", "hostKey": "ssh-ed25519 AAAA"}


def asked(**changes: Any) -> Settings:
    return Settings.model_validate({**GOOD, **changes})


def static(*inventory: dict[str, Any], **changes: Any) -> dict[str, Any]:
    hosts = tuple({**HOST, **host} for host in inventory)
    return {"provider": "static", "sshPrivateKey": "key", "inventory": hosts, **changes}


def volume(size: int, iops: int = 3000, throughput: int = 125, **others: Any) -> dict[str, Any]:
    return {"rootVolume": {"sizeGib": size, "iops": iops, "throughputMibps": throughput}, **others}


ACCEPTED: list[dict[str, Any]] = [
    {},
    {"count": 64},
    {"count": 16_379},
    {"driver": "580", "cuda": "12.8"},
    {"driver": "580.105.08"},
    {"sshUser": "first.last@example.com", "owner": "Ünal Özgür"},
    {"efaCount": 32},
    {"efaCount": 0, "instanceType": "g5.xlarge"},
    {"sshAddress": "public", "sshFrom": "192.0.2.7/32"},
    {"softwareProfile": "dlami-base-2026-01"},
    volume(1, 3000, 125),  # the baseline is allowed at any size
    volume(160, 80_000, 2000),
    volume(65_536, 3000, 750),
    volume(16, 8000, 2000),
    static({}),
    static({"hostKey": None, "acceptNew": True}),
    static({}, {"name": "b"}),
]

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"instanceType": "p5.48xlarg"},
        "instanceType: found 'p5.48xlarg'; expected a type of the catalogue. Nearest: p5.48xlarge",
    ),
    (
        {"instanceType": "zz9.plural"},
        (
            "instanceType: found 'zz9.plural'; expected a type of the catalogue. docs/instance-types.md lists the "
            "types. [instance_type.known]"
        ),
    ),
    ({"count": 0}, "count: found 0; expected 1 or more. To remove all hosts: pulumi destroy. [count.positive]"),
    ({"count": -2}, "count: found -2; expected 1 or more. To remove all hosts: pulumi destroy. [count.positive]"),
    (
        {"count": 10**23},
        "count: found 100000000000000000000000; expected at most 16379. The stack's subnet has no address for more.",
    ),
    (
        {"instanceType": "ecs.gn6i-c4g1.xlarge"},
        (
            "instanceType: found 'ecs.gn6i-c4g1.xlarge'; expected a type of aws. It is a type of alicloud; hosts that "
            "exist already are kiln:provider static. [instance_type.provider]"
        ),
    ),
    (
        {"driver": "banana"},
        "driver: found 'banana'; expected numbers with dots, or nothing. For example 580. [versions.numbered]",
    ),
    ({"cuda": "[12]"}, "cuda: found '[12]'; expected numbers with dots, or nothing. For example 12.8."),
    ({"owner": "a\nb"}, "owner: found 'a\\nb'; expected 1 to 256 printable characters."),
    ({"sshUser": "a b; rm"}, "sshUser: found 'a b; rm'; expected a user name."),
    (
        {"zone": "eu-west-1a"},
        "zone: found 'eu-west-1a'; expected a zone of us-east-1. For example us-east-1a. [zone.in_region]",
    ),
    (
        {"zone": "us-east-1"},
        "zone: found 'us-east-1'; expected a zone of us-east-1. For example us-east-1a. [zone.in_region]",
    ),
    ({"softwareProfile": "nope"}, "softwareProfile: found 'nope'; expected one of unpinned, "),
    ({"ttlHours": 0}, "ttlHours: found 0; expected 1 or more. Give the hours it may live. [ttl.positive]"),
    ({"deadlineSeconds": 0}, "deadlineSeconds: found 0; expected 1 or more. 900 suits most types. [deadline.positive]"),
    (
        {"evidenceRoot": "x"},
        "evidenceRoot: found 'x'; expected an absolute path. / for a real host. [evidence_root.absolute]",
    ),
    (
        {"badUnits": "units.json"},
        (
            "badUnits: found 'units.json'; expected a path from / or ~/, or none. Empty keeps it beside a file:// "
            "state, else in the user's own. [bad_units.absolute]"
        ),
    ),
    ({"owner": " "}, "owner: found ' '; expected 1 to 256 printable characters. Set kiln:owner. [tags.named]"),
    ({"project": ""}, "project: found ''; expected 1 to 256 printable characters. Set kiln:project. [tags.named]"),
    (
        {"image": "nope"},
        (
            "image: found 'nope'; expected one of dlami-base-ubuntu-22.04, sandbox-ubuntu. "
            "Images are listed in images/lock.yaml. [image.locked]"
        ),
    ),
    (
        {"image": "dlami-base-ubuntu-22.04"},
        (
            "image: found 'dlami-base-ubuntu-22.04'; expected an id for us-east-1 in images/lock.yaml. Write the id "
            "into images/lock.yaml; it comes from: aws ssm get-parameter --region us-east-1 --name "
            "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id. [image.locked]"
        ),
    ),
    (
        {"instanceType": "g5g.xlarge"},
        "image: found 'sandbox-ubuntu'; expected an image for arm64. This one is for x86_64. [image.architecture]",
    ),
    (
        {"instanceType": "g5.xlarge", "efaCount": 1},
        "efaCount: found 1; expected 0: g5.xlarge has no EFA. Set it to 0. [efa.supported]",
    ),
    ({"efaCount": -1}, "efaCount: found -1; expected 0 or more. Set it to 0 for none. [efa.maximum]"),
    ({"efaCount": 33}, "efaCount: found 33; expected 0 to 32. p5.48xlarge carries 32. [efa.maximum]"),
    ({"sshPort": 0}, "sshPort: found 0; expected 1 to 65535. SSH is 22 by default. [ssh.port]"),
    ({"sshUser": ""}, "sshUser: found ''; expected a user name. Ubuntu images have 'ubuntu'. [ssh.user]"),
    (
        {"sshAddress": "public"},
        "sshFrom: found ''; expected a CIDR block, with sshAddress public. Your own address and /32. [ssh.from]",
    ),
    ({"sshFrom": "home"}, "sshFrom: found 'home'; expected a CIDR block. For example 192.0.2.7/32. [ssh.from]"),
    (
        {"sshFrom": "0.0.0.0/0"},
        "sshFrom: found '0.0.0.0/0'; expected less than the whole world. Your own address and /32. [ssh.from]",
    ),
    (
        volume(-5),
        "rootVolume.sizeGib: found -5; expected 1 to 65536 GiB. 200 GiB holds an image with CUDA. [volume.size]",
    ),
    (volume(70_000), "rootVolume.sizeGib: found 70000; expected 1 to 65536 GiB."),
    (
        volume(200, 2999),
        "rootVolume.iops: found 2999; expected 3000 to 80000. 3000 cost nothing extra. [volume.iops]",
    ),
    (volume(200, 80_001), "rootVolume.iops: found 80001; expected 3000 to 80000."),
    (
        volume(20, 16_000),
        (
            "rootVolume.iops: found 16000; expected at most 10000 on 20 GiB (500 IOPS per GiB). "
            "Set iops to 10000, or sizeGib to 32. [volume.iops_ratio]"
        ),
    ),
    (
        volume(5, 4000),
        (
            "rootVolume.iops: found 4000; expected at most 3000 on 5 GiB (500 IOPS per GiB). "
            "Set iops to 3000, or sizeGib to 8. [volume.iops_ratio]"
        ),
    ),
    (
        volume(200, 3000, 100),
        "rootVolume.throughputMibps: found 100; expected 125 to 2000 MiB/s. 125 cost nothing extra. [volume.thr",
    ),
    (volume(200, 16_000, 2001), "rootVolume.throughputMibps: found 2001; expected 125 to 2000 MiB/s."),
    (
        volume(200, 3000, 1000),
        (
            "rootVolume.throughputMibps: found 1000; expected at most 750 MiB/s with 3000 IOPS (0.25 MiB/s per IOPS). "
            "Set throughputMibps to 750, or iops to 4000. [volume.throughput_ratio]"
        ),
    ),
    (static(), "inventory: found 'no hosts'; expected at least one host. pulumi config set --path "),
    (
        {"inventory": (HOST,)},
        "inventory: found '1 hosts'; expected none. Only kiln:provider static uses an inventory. [inventory.present]",
    ),
    (static({}, sshPrivateKey=""), "sshPrivateKey: found 'nothing'; expected a private SSH key. pulumi config set "),
    (
        static({"hostKey": None}),
        (
            "inventory[0].hostKey: found 'nothing'; expected the host's public key. Paste "
            "/etc/ssh/ssh_host_ed25519_key.pub, or opt in to any key with acceptNew: true. [inventory.host_key]"
        ),
    ),
    (
        static({"hostKey": "garbage"}),
        (
            "inventory[0].hostKey: found 'garbage'; expected a public key as sshd writes it. It begins with "
            "ssh-ed25519, ssh-rsa or ecdsa-sha2-nistp256. [inventory.host_key]"
        ),
    ),
    (
        static({}, {}),
        "inventory[1].name: found 'a'; expected a name of its own. Another host has this name. [inventory.name]",
    ),
    (static({"name": "a/b"}), "inventory[0].name: found 'a/b'; expected a name without '/'."),
    (static({"address": ""}), "inventory[0].address: found ''; expected an address."),
    (static({"port": 0}), "inventory[0].port: found 0; expected 1 to 65535. SSH is 22 by default. [ssh.port]"),
    (static({"instanceType": "g5.xlarg"}), "inventory[0].instanceType: found 'g5.xlarg'; expected a type of the "),
    (static({"efaCount": 1}), "inventory[0].efaCount: found 1; expected 0 to 0. g5.xlarge has 0. [efa.maximum]"),
]

WARNED: list[tuple[dict[str, Any], str]] = [
    (
        volume(200, 4000, 1000, instanceType="g5.xlarge"),
        (
            "rootVolume.throughputMibps: found 1000; expected at most 417 MiB/s, what g5.xlarge moves to EBS. "
            "417 do as well and cost less. [volume.instance_cap]"
        ),
    ),
    (
        volume(200, 20_000, 125, instanceType="g5.xlarge"),
        (
            "rootVolume.iops: found 20000; expected at most 15000, what g5.xlarge does to EBS. "
            "15000 do as well and cost less. [volume.instance_cap]"
        ),
    ),
]


@pytest.mark.parametrize("changes", ACCEPTED, ids=str)
def test_right_settings_are_accepted_without_a_word(changes: dict[str, Any]) -> None:
    assert [str(finding) for finding in plan.judge(asked(**changes))] == []


@pytest.mark.parametrize(("changes", "text"), REFUSED, ids=[text[:60] for _, text in REFUSED])
def test_wrong_settings_are_refused_in_these_words(changes: dict[str, Any], text: str) -> None:
    found = [finding for finding in plan.judge(asked(**changes)) if not finding.warning]
    assert any(str(finding).startswith(text) for finding in found), [str(finding) for finding in found]


@pytest.mark.parametrize(("changes", "text"), WARNED, ids=[text[:60] for _, text in WARNED])
def test_a_waste_is_said_and_stops_nothing(changes: dict[str, Any], text: str) -> None:
    found = plan.judge(asked(**changes))
    assert [(str(finding), finding.warning) for finding in found] == [(text, True)]


def test_every_rule_of_every_module_is_in_the_list_and_refuses_something_here() -> None:
    written = {
        function
        for module in (hosts, image, network, storage)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    assert written == set(rules.RULES)
    assert len(rules.RULES) == len(set(rules.RULES))
    cases = [changes for changes, _ in (*REFUSED, *WARNED)]
    for rule in rules.RULES:
        assert any(list(rule(_asked(changes))) for changes in cases), rule.__name__
        assert rule.__doc__, rule.__name__


def _asked(changes: dict[str, Any]) -> rules.Asked:
    from images import lock
    from profiles import catalog

    wanted = asked(**changes)
    images = lock.load()
    return rules.Asked(
        wanted, catalog.load(wanted.instance_type), images.find("aws", wanted.image, wanted.region), images
    )
