"""One handler for each resource type; :data:`HANDLERS` is the one list of them."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.cloud.handlers.address import Eip, EipAssociation, NetworkInterface
from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.handlers.instance import Instance
from sandbox.cloud.handlers.network import InternetGateway, Subnet, Vpc
from sandbox.cloud.handlers.routing import Route, RouteTable, RouteTableAssociation
from sandbox.cloud.handlers.security import EgressRule, IngressRule, SecurityGroup
from sandbox.cloud.handlers.template import KeyPair, LaunchTemplate, PlacementGroup

__all__ = ["HANDLERS", "Created", "Handler"]

HANDLERS: Mapping[str, Handler] = {
    handler.token: handler
    for handler in (
        Vpc(),
        Subnet(),
        InternetGateway(),
        RouteTable(),
        Route(),
        RouteTableAssociation(),
        SecurityGroup(),
        IngressRule(),
        EgressRule(),
        LaunchTemplate(),
        KeyPair(),
        PlacementGroup(),
        Instance(),
        Eip(),
        EipAssociation(),
        NetworkInterface(),
    )
}
