"""Versions of the software around the driver, as its tools and files tell them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profiles.errors import ParseError
from validation.evidence import Bundle, Item, Outcome
from validation.facts import components
from validation.facts.assemble import assemble
from validation.facts.components import Components
from validation.facts.missing import ABSENT, Missing, Reason

DEBIAN = (
    "# EFA installer version: 1.45.0\n# Debug packages installed: no\n# Packages installed:\n"
    "efa-profile_1.7_all libfabric-aws-bin_2.3.1amzn1.0_amd64 libnccl-ofi_1.17.2-1_amd64\n"
)
RED_HAT = DEBIAN.replace("libfabric-aws-bin_2.3.1amzn1.0_amd64", "libfabric-aws-2.3.1amzn1.0-1.amzn2.x86_64")


@pytest.mark.parametrize(
    ("parse", "text", "version"),
    [
        (components.fabric_manager, "\n\n\tFabric Manager version is : 535.161.08\n\n", "535.161.08"),
        (components.dcgm, "\ndcgmi  version: 4.7.0\n\n", "4.7.0"),
        (components.container_toolkit, "NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202\n", "1.17.8"),
        (components.efa_installer, DEBIAN, "1.45.0"),
        (components.libfabric, DEBIAN, "2.3.1amzn1.0"),
        (components.libfabric, RED_HAT, "2.3.1amzn1.0"),
        (components.nccl, "/usr/lib64/libnccl.so.2\n/usr/lib64/libnccl.so.2.28.3\n", ("2.28.3",)),
        (components.nccl, "/usr/lib/libnccl.so.2.9.9\n/opt/nccl/build/lib/libnccl.so.2.18.5\n", ("2.9.9", "2.18.5")),
        (components.aws_ofi_nccl, "/a/libnccl-net.so:1.18.0-aws\n/a/libnccl-net-ofi.so:1.18.0-aws\n", "1.18.0"),
        (components.modules, "/sys/module/nvidia_peermem\n", ("nvidia_peermem",)),
    ],
)
def test_a_version_is_read(parse: Callable[[str], object], text: str, version: object) -> None:
    assert parse(text) == version


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (components.fabric_manager, ""),
        (components.fabric_manager, "Fabric Manager version is : unknown\n"),
        (components.dcgm, "dcgmi: error while loading shared libraries\n"),
        (components.efa_installer, DEBIAN.replace("EFA installer", "installer")),
        (components.libfabric, "# EFA installer version: 1.45.0\n"),
        (components.nccl, "/usr/lib64/libnccl.so.2\n"),
        (components.aws_ofi_nccl, ""),
        (components.aws_ofi_nccl, "/a/libnccl-net.so:<says no version>\n"),
        (components.aws_ofi_nccl, "/a/libnccl-net.so:1.18.0\n/b/libnccl-net.so:1.17.2\n"),
        (components.modules, "nvidia_peermem\n"),
    ],
)
def test_a_text_without_a_version_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_each_version_stands_for_itself() -> None:
    items = [
        Item("dcgmi-version", "dcgmi --version", Outcome.OK, "\ndcgmi  version: 4.4.2\n", rc=1),
        Item("nvidia-ctk", "nvidia-ctk --version", Outcome.NOT_FOUND),
        Item("fabricmanager-version", "nv-fabricmanager --version", Outcome.TIMEOUT, duration_s=15),
        Item("efa-packages", "/opt/amazon/efa_installed_packages", Outcome.OK, "# EFA installer version: 1.45.0\n"),
    ]
    found = assemble(Bundle("h", {item.name: item for item in items})).need(Components)
    assert (found.dcgm, found.container_toolkit, found.efa_installer) == ("4.4.2", ABSENT, "1.45.0")
    for value, word in (
        (found.fabric_manager, "no answer within 15 s"),
        (found.libfabric, "no package libfabric-aws"),
        (found.nccl, "'nccl-libraries' was not gathered"),
    ):
        assert isinstance(value, Missing)
        assert value.reason is Reason.COULD_NOT_LOOK
        assert word in value.text
