"""What the outputs of network tools mean, taken alone: EFA, RDMA ports and their counters, Alibaba's eRDMA driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.eadm import Eadm
from validation.facts.host import EfaNics, RdmaDevice, RdmaDevices
from validation.facts.missing import Missing
from validation.facts.rdma import ALIBABA, AMAZON
from validation.facts.rdma_counters import RdmaCounters
from validation.facts.store import Facts
from validation.verdict import FaultClass, Finding, Verdict

_TWICE = "Read them twice while the network is in use: only those that rise say that something is wrong now."


class EfaPresent(Check):
    """fi_info, asked for EFA, finds some."""

    id = "tool.fi_info"
    title = "EFA NICs found"
    why = "fi_getinfo: -61 means that libfabric has no EFA at all: no interface of that type, or no driver for it."
    source = "libfabric FI_ENODATA; AWS EFA user guide"
    remedy = "Load the EFA driver; if there is no EFA interface, create the instance again with interface type efa."
    fault_class = FaultClass.CONFIGURATION
    requires = (EfaNics,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        found = facts.need(EfaNics)
        if found.nics:
            yield self.finding(Verdict.PASS, "host", f"{counted(len(found.nics), 'EFA NIC')}: {listed(found.nics)}")
        elif found.others:
            # fi_info asked for another provider has no word on EFA, and a host without EFA has these too.
            message = f"only other providers are listed: {listed(found.others)}; fi_info -p efa asks for EFA"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message)
        else:
            message = "no EFA NIC: libfabric was asked for EFA and has none"
            yield self.finding(Verdict.FAIL, "host", message, measured="0 EFA NICs", expected="1 or more")


class RdmaPorts(Check):
    """Every RDMA port is up. GUIDs and firmware are not judged: an EFA device has zeros there when it is healthy."""

    id = "tool.rdma"
    title = "RDMA ports"
    why = "A port that is down takes its share of the network along."
    source = "ibv_devinfo of EFA (zero GUIDs, firmware 0.0.0.0); ibstatus of Azure (Ethernet beside InfiniBand)"
    remedy = "Look at the cable and the switch, or replace the host."
    fault_class = FaultClass.REPLACE_NOW
    requires = (RdmaDevices,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        devices = facts.need(RdmaDevices).devices
        told = [device for device in devices if not isinstance(device.state, Missing)]
        for device in devices:
            yield from self._port(device)
        if not devices:
            message = "the tool found no RDMA device"
            yield self.finding(
                Verdict.WARN, "host", message, remedy="Load the driver of the network card, if there is one."
            )
        up = [device for device in devices if (device.is_active() if device in told else device.netdev_up is True)]
        if up:
            band = [device for device in up if device.link_layer == "InfiniBand"]
            what = "port" if told else "network interface"
            ports = f"{len(up)} of {counted(len(devices), what)} up" if len(up) < len(devices) else ""
            ports = ports or f"{counted(len(up), what)} up"
            known = any(not isinstance(device.link_layer, Missing) for device in devices)
            yield self.finding(Verdict.PASS, "host", f"{ports}, {len(band)} of them InfiniBand" if known else ports)

    def _port(self, device: RdmaDevice) -> Iterable[Finding]:
        state, physical = str(device.state), str(device.physical).upper()
        if isinstance(device.state, Missing):
            if device.netdev_up is False:
                message = f"its network interface {device.netdev} is down, which says nothing of the port"
                yield self.finding(Verdict.WARN, device.name, message, remedy="Ask the port itself: ibstat.")
        elif device.is_active():
            return
        elif any(word in state.upper() for word in ("INIT", "ARMED")):
            message = f"the port is {state}: the link is up, and no subnet manager has brought the port up"
            remedy = "See that a subnet manager runs on the fabric and reaches this port."
            yield self.finding(
                Verdict.FAIL, device.name, message, measured=state, expected="active", remedy=remedy,
                fault_class=FaultClass.OPERATOR,
            )  # fmt: skip
        elif _maybe_unused(device, physical):
            message = f"the port is {state}, as an Ethernet port without a cable is"
            remedy = "Look at the cable and the switch, if this port is meant to be used."
            yield self.finding(Verdict.WARN, device.name, message, measured=state, expected="active", remedy=remedy)
        else:
            yield self.finding(Verdict.FAIL, device.name, f"the port is {state}", measured=state, expected="active")


def _maybe_unused(device: RdmaDevice, physical: str) -> bool:
    """Whether a port that is down may well be one that nobody plugged in: an Ethernet port of a card, no cloud NIC.

    EFA and eRDMA ports have no cable, so there is nothing else that down can mean. An InfiniBand port that is down
    polls for its peer; an Ethernet port is Disabled.
    """
    if device.vendor_id in (AMAZON, ALIBABA) or device.name.startswith("erdma_"):
        return False
    return device.link_layer == "Ethernet" or "DISABLED" in physical


class RdmaCounted(Check):
    """No RDMA port has counted errors since its driver was loaded."""

    id = "tool.rdma_counters"
    title = "RDMA error counters"
    why = "Packets that are lost or sent again make one rank slow, and with it the whole job."
    source = "Linux erdma_verbs.c, efa_verbs.c; NVIDIA, mlx5 Linux counters; kubeskoop pkg/exporter/probe/rdma"
    remedy = _TWICE
    fault_class = FaultClass.OPERATOR
    requires = (RdmaCounters,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        for port in facts.need(RdmaCounters).ports:
            verdict, message = _counted(port.errors())
            yield self.finding(verdict, port.name, message)


class EadmAnswer(Check):
    """The eRDMA driver answers, and has counted no errors since it was loaded."""

    id = "tool.eadm"
    title = "Alibaba eRDMA driver"
    why = "Without its driver an instance with eRDMA talks TCP, and connections that fail make a job wait or fall back."
    source = (
        "shaowenchen/erdma-exporter d68614f (forms); Linux erdma_verbs.c (counters); Alibaba help: eRDMA monitoring"
    )
    remedy = _TWICE
    fault_class = FaultClass.OPERATOR
    requires = (Eadm,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:  # noqa: ARG002 - part of the shape
        told = facts.need(Eadm)
        if not isinstance(told.driver, Missing):
            # The driver answers this without any device (its do_ioctl), so a version shows no adapter.
            message = f"the eRDMA driver {told.driver} is loaded and answers; ibv_devinfo shows the devices"
            yield self.finding(Verdict.PASS, "host", message, measured=told.driver)
        if told.counters:
            verdict, message = _counted(told.errors)
            yield self.finding(verdict, "eRDMA" if isinstance(told.device, Missing) else told.device, message)


def _counted(errors: Mapping[str, int]) -> tuple[Verdict, str]:
    """A count since the driver was loaded warns: a connection that was refused hours ago is one too."""
    above = [f"{name} {count}" for name, count in errors.items() if count]
    if above:
        return Verdict.WARN, f"since the driver was loaded: {listed(above, limit=6)}"
    if not errors:
        return Verdict.NOT_APPLICABLE, "there is no counter of errors among these"
    return Verdict.PASS, f"{counted(len(errors), 'error counter')}, all zero"
