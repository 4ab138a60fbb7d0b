"""A host's state as evidence: what every tool prints, every file says, and every stub library answers."""

from __future__ import annotations

from sandbox.hosts.render import components, kernel, pci, smi, software, stub, system
from sandbox.hosts.render.answers import Answer, Rendered
from sandbox.hosts.state import Host


def render(host: Host) -> Rendered:
    """Everything that the host's sessions can see, all of it from one state."""
    return Rendered(
        answers={
            **smi.render(host),
            **software.answers(host),
            **components.answers(host),
            **system.answers(host),
            "lspci": Answer(pci.lspci(host)),
            "dmesg": Answer(kernel.log(host)),
        },
        root={
            **pci.sysfs(host),
            **kernel.files(host),
            **software.files(host),
            **components.files(host),
            **system.files(host),
        },
        machine=stub.render(host),
    )
