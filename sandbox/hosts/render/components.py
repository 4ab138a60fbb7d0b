"""Software around the driver: Fabric Manager, DCGM, container toolkit, the EFA installer's list, NCCL, its plug-in."""

from __future__ import annotations

from sandbox.hosts.render.answers import Answer
from sandbox.hosts.state import Host

LIBRARIES = "usr/lib/x86_64-linux-gnu"
PLUGINS = "opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"
COMMIT = "0" * 40


def answers(host: Host) -> dict[str, Answer]:
    """What the tools print when asked for their version. Fabric Manager is there where NVSwitches are."""
    software = host.software
    found = {
        "dcgmi": Answer(f"\ndcgmi  version: {software.dcgm}\n\n"),
        "nvidia-ctk": Answer(f"NVIDIA Container Toolkit CLI version {software.container_toolkit}\ncommit: {COMMIT}\n"),
    }
    if host.machine.switches:
        version = host.fabric_manager or host.driver
        found["nv-fabricmanager"] = Answer(f"\n\n\n\tFabric Manager version is : {version}\n\n")
    return found


def files(host: Host) -> dict[str, str | bytes]:
    """The EFA installer's list of packages, and the libraries whose names or contents tell a version."""
    software = host.software
    packages = (
        "efa-config_1.18_all",
        "efa-profile_1.7_all",
        f"libfabric-aws-bin_{software.libfabric}_amd64",
        f"libfabric1-aws_{software.libfabric}_amd64",
        f"libnccl-ofi_{software.aws_ofi_nccl}-1_amd64",
    )
    plugin = f"\x7fELF\x00Initializing aws-ofi-nccl {software.aws_ofi_nccl}\x00".encode()
    return {
        "opt/amazon/efa_installed_packages": (
            f"# EFA installer version: {software.efa_installer}\n# Debug packages installed: no\n"
            f"# Packages installed:\n{' '.join(packages)}\n"
        ),
        f"{LIBRARIES}/libnccl.so.{software.nccl}": b"\x7fELF",
        f"{PLUGINS}/libnccl-net.so": plugin,
        f"{PLUGINS}/libnccl-net-ofi.so": plugin,
    }
