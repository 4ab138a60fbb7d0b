"""fi_info in its short and long form, of a host with EFA and of others."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import fi_info


def record(provider: str, domain: str, fabric: str = "efa", kind: str = "FI_EP_RDM") -> str:
    return (
        f"provider: {provider}\n    fabric: {fabric}\n    domain: {domain}\n    version: 201.0\n"
        f"    type: {kind}\n    protocol: FI_PROTO_EFA\n"
    )


def long(provider: str, name: str) -> str:
    return (
        "---\nfi_info:\n    caps: [ FI_MSG ]\n    nic: \n        name: x\n    fi_ep_attr:\n        type: FI_EP_RDM\n"
        f"        protocol: FI_PROTO_EFA\n    fi_domain_attr:\n        domain: 0x0\n        name: {name}\n"
        f"    fi_fabric_attr:\n        name: efa\n        prov_name: {provider}\n"
    )


def test_a_nic_with_its_direct_fabric_and_two_endpoint_kinds_is_one_nic() -> None:
    text = record("efa", "rdmap47s0-rdm", "efa-direct") + record("efa", "rdmap47s0-rdm")
    text += record("efa;ofi_rxd", "rdmap47s0-dgrm", kind="FI_EP_DGRAM")
    assert fi_info.parse(f"$ fi_info -p efa | less\n{text}").nics == ("rdmap47s0",)


def test_the_long_form_is_read_by_its_parts() -> None:
    text = f"{long('efa', 'rdmap70s0-rdm')}{long('efa', 'rdmap70s0-dgrm')}{long('efa', 'rdmap71s0-rdm')}"
    assert fi_info.parse(text).nics == ("rdmap70s0", "rdmap71s0")
    with pytest.raises(ParseError, match="cut short"):
        fi_info.parse(text[: text.rindex("    fi_fabric_attr")])


def test_other_providers_are_told_and_are_no_efa() -> None:
    found = fi_info.parse(record("tcp;ofi_rxm", "eth0") + record("shm", "shm") + record("shm", "shm"))
    assert (found.nics, found.others) == ((), ("tcp;ofi_rxm", "shm"))


@pytest.mark.parametrize(
    "rest", ["...\n", "[1,0]<stdout>:provider: efa\n", "Segmentation fault (core dumped)\n", "fi_getinfo: -12\n"]
)
def test_records_with_something_else_behind_them_are_not_all_there_is(rest: str) -> None:
    with pytest.raises(ParseError):
        fi_info.parse(record("efa", "rdmap47s0-rdm") + rest)
