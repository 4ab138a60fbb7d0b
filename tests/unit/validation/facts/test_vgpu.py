"""vGPU licences, as a guest tells its own and as a host tells its guests'."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import vgpu

GUEST = "    vGPU Software Licensed Product\n        Product Name     : NVIDIA RTX Virtual Workstation\n"
HOST = (
    "GPU 00000000:01:00.0\n    Active vGPUs                          : 2\n"
    "    vGPU ID                               : 3251634190\n        VM Name   : one\n"
    "        vGPU Name                         : NVIDIA A40-8Q\n        License Status  : Licensed (Expiry: 2027-1-1)\n"
    "    vGPU ID                               : 3251634191\n        vGPU Name : NVIDIA A40-4Q\n"
    "        License Status                    : N/A (Expiry: N/A)\n        PCI\n            Bus Id : 0:0:0\n"
)


@pytest.mark.parametrize(
    ("status", "licensed", "grace"),
    [
        ("Licensed (Expiry: N/A)", True, False),
        ("Unlicensed (Unrestricted)", False, True),
        ("Unlicensed (Restricted)", False, False),
        ("Unlicensed", False, False),
    ],
)
def test_a_guest_tells_its_licence(status: str, licensed: bool, grace: bool) -> None:
    (one,) = vgpu.parse(f"{GUEST}        License Status   : {status}\n").licenses
    assert (one.product, one.licensed, vgpu.in_grace(one.status)) == (
        "NVIDIA RTX Virtual Workstation",
        licensed,
        grace,
    )


def test_a_host_tells_the_licences_of_its_guests_as_far_as_it_knows_them() -> None:
    one, two = vgpu.parse(HOST).licenses
    assert (one.product, one.licensed, one.untold) == ("NVIDIA A40-8Q", True, False)
    assert (two.product, two.licensed, two.untold) == ("NVIDIA A40-4Q", False, True)
    assert vgpu.parse("GPU 00000000:01:00.0\n    Active vGPUs      : 0\n").licenses == ()


@pytest.mark.parametrize("text", [GUEST, "GPU 00000000:01:00.0\n", HOST.partition("        License")[0]])
def test_a_licence_without_its_status_is_cut_short(text: str) -> None:
    with pytest.raises(ParseError):
        vgpu.parse(text)
