"""The plan: pure, and everything that a program declares."""

from __future__ import annotations

import pytest

from profiles import catalog
from profiles.errors import ConfigError
from stacks import plan
from stacks.plan import Interface

SANDBOX = {"image": "sandbox-ubuntu"}
LAYOUTS: list[tuple[str, int, list[tuple[int, int, str]]]] = [
    ("g5.xlarge", 0, [(0, 0, "interface")]),
    ("p5.48xlarge", 0, [(0, 0, "interface")]),
    ("p5.48xlarge", 2, [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only")]),
    ("g5.48xlarge", 1, [(0, 0, "interface"), (0, 1, "efa-only")]),
    ("p6-b300.48xlarge", 2, [(0, 0, "interface"), (1, 0, "efa-only"), (2, 0, "efa-only")]),
]


@pytest.mark.parametrize(("name", "count", "layout"), LAYOUTS)
def test_the_interfaces_follow_the_current_layout(name: str, count: int, layout: list[tuple[int, int, str]]) -> None:
    profile = catalog.load(name)
    assert profile is not None
    assert plan.interfaces(profile.network, count) == tuple(Interface(*entry) for entry in layout)


@pytest.mark.parametrize(
    "name", [name for name in catalog.types() if (p := catalog.load(name)) and p.network.efa_max.value]
)
def test_all_efas_of_a_type_fit_its_cards_one_ena_and_no_slot_twice(name: str) -> None:
    profile = catalog.load(name)
    assert profile is not None
    layout = plan.interfaces(profile.network, profile.network.efa_max.value)
    assert [entry.kind for entry in layout].count("efa-only") == profile.network.efa_max.value
    assert [entry for entry in layout if entry.kind == "interface"] == [Interface(0, 0, "interface")]
    assert len({(entry.card, entry.device) for entry in layout}) == len(layout)
    assert profile.network.enis_per_card is not None
    per_card = profile.network.enis_per_card.value
    assert max([entry.card for entry in layout].count(card) for card in range(len(layout))) <= per_card


def test_a_second_host_changes_nothing_about_the_first() -> None:
    one = plan.make({**SANDBOX, "count": "1", "efaCount": "32"})
    two = plan.make({**SANDBOX, "count": "2", "efaCount": "32"})
    assert two.hosts[0] == one.hosts[0]
    assert (one.interfaces, one.cluster, one.image) == (two.interfaces, two.cluster, two.image)
    assert [host.name for host in two.hosts] == ["node-0", "node-1"]


def test_hosts_without_efa_need_no_placement_group() -> None:
    assert not plan.make({**SANDBOX, "count": "4"}).cluster
    assert plan.make({**SANDBOX, "efaCount": "1"}).cluster


def test_every_resource_says_whose_it_is() -> None:
    tags = plan.make({**SANDBOX, "owner": "ada", "project": "llm", "ttlHours": "48"}).tags("prod", "node-0")
    assert tags == {"Name": "prod-node-0", "project": "llm", "owner": "ada", "stack": "prod", "ttl": "48h"}


def test_everything_wrong_is_told_at_once_types_and_values() -> None:
    with pytest.raises(ConfigError) as caught:
        plan.make({**SANDBOX, "count": "0", "efaCount": "x", "colour": "red", "sshPort": "0"})
    assert sorted(problem.path for problem in caught.value.problems) == ["colour", "count", "efaCount", "sshPort"]
    text = str(caught.value)
    assert text.startswith("the stack's configuration is wrong; nothing was changed\n  - ")
    assert "[count.positive]" in text


def test_a_static_plan_has_the_inventory_and_no_hosts_to_make() -> None:
    inventory = '[{"name": "a", "address": "192.0.2.1", "instanceType": "g5.xlarge", "hostKey": "ssh-ed25519 AAAA"}]'
    made = plan.make({"provider": "static", "inventory": inventory, "sshPrivateKey": "key"})
    assert made.hosts == ()
    assert made.inventory[0].name == "a"
