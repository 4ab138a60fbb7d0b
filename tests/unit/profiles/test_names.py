"""The catalogue against the names of its types: clouds write size and number of GPUs into them."""

from __future__ import annotations

import re

import pytest

from profiles import catalog
from profiles.models import InstanceProfile

# Not four CPUs for each step of the size: the documentation says so itself.
ODD_SIZES = re.compile(r"ecs\.(vgn|gn6v-c10g1\.20xlarge)")


def alibaba() -> list[InstanceProfile]:
    profiles = [catalog.load(name) for name in catalog.types() if name.startswith("ecs.")]
    return [profile for profile in profiles if profile is not None]


@pytest.mark.parametrize("profile", alibaba(), ids=lambda profile: profile.instance_type)
def test_cpus_and_gpus_are_those_of_the_name(profile: InstanceProfile) -> None:
    name, count = profile.instance_type, profile.gpu.count.value
    assert profile.vcpus is not None
    size = re.search(r"\.(\d*)x?large$", name)
    assert size
    if not ODD_SIZES.match(name):
        assert profile.vcpus.value == 4 * int(size[1] or 1)
    if gpus := re.search(r"-(\d)x\.", name):  # gn8v-4x.24xlarge
        assert count == int(gpus[1])
    if cpus := re.search(r"-c(\d+)g1\.", name):  # gn7i-c32g1.16xlarge: 32 CPUs a GPU
        assert profile.vcpus.value // int(cpus[1]) == count
    if share := re.search(r"-m(\d+)s?[-.]", name):  # vgn7i-vws-m8.2xlarge: 8 GB of a board
        assert profile.gpu.board.endswith(f"-{share[1]}Q")


def test_a_family_has_one_board() -> None:
    """A slice of a board is named with its size; the board it is cut from is the same."""
    boards: dict[str, set[str]] = {}
    for name in catalog.types():
        profile = catalog.load(name)
        assert profile is not None
        family = re.sub(r"-(?:c\d+g\d+|\d+x|m\d+s?)(?=-|$)", "", name.rpartition(".")[0])
        boards.setdefault(family, set()).add(re.sub(r"-\d+Q$", "", profile.gpu.board))
    assert {family: found for family, found in boards.items() if len(found) > 1} == {}


@pytest.mark.parametrize("profile", alibaba(), ids=lambda profile: profile.instance_type)
def test_bare_metal_has_no_virtual_gpu_and_eight_gpus_at_most(profile: InstanceProfile) -> None:
    assert 1 <= profile.gpu.count.value <= 8
    if ".ebm" in profile.instance_type:
        assert not profile.gpu.names.value[0].endswith("Q")
