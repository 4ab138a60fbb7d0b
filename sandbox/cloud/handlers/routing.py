# ruff: noqa: ARG002 - every handler has the same methods with the same arguments
"""Route table, single route and association."""

from __future__ import annotations

from typing import Any

from sandbox.cloud.handlers.base import Created, Handler
from sandbox.cloud.handlers.network import TARGETS, destination, route_arguments
from sandbox.cloud.session import Session
from sandbox.cloud.values import Properties


class RouteTable(Handler):
    """A route table with its inline routes."""

    token = "aws:ec2/routeTable:RouteTable"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        table = cloud.call(
            "create_route_table",
            inputs.get("region"),
            VpcId=inputs["vpcId"],
            TagSpecifications=cloud.tag_specification("route-table", inputs),
        )["RouteTable"]
        table_id = table["RouteTableId"]
        for route in inputs.get("routes") or []:
            cloud.call("create_route", inputs.get("region"), RouteTableId=table_id, **route_arguments(route))
        return Created(table_id, self.read(cloud, table_id, inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        table = _describe(cloud, resource_id, state)
        if table is None:
            return None
        return {
            **self.common(cloud, f"route-table/{resource_id}", table, state),
            "vpcId": table["VpcId"],
            "routes": _matching(state.get("routes") or [], table["Routes"]),
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        old = [route_arguments(route) for route in state.get("routes") or []]
        new = [route_arguments(route) for route in inputs.get("routes") or []]
        region = inputs.get("region")
        for route in old:
            if route not in new:
                where = {key: value for key, value in route.items() if key.startswith("Destination")}
                cloud.call_unless_gone("delete_route", region, RouteTableId=resource_id, **where)
        for route in new:
            if route not in old:
                cloud.call("create_route", region, RouteTableId=resource_id, **route)
        return super().update(cloud, resource_id, state, inputs)

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("delete_route_table", state.get("region"), RouteTableId=resource_id)


class Route(Handler):
    """One route of a table that is managed elsewhere; its id is made of the table's and the destination."""

    token = "aws:ec2/route:Route"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        table_id = inputs["routeTableId"]
        arguments = route_arguments(inputs)
        cloud.call("create_route", inputs.get("region"), RouteTableId=table_id, **arguments)
        where = arguments.get("DestinationCidrBlock") or arguments["DestinationIpv6CidrBlock"]
        return Created(f"r-{table_id}_{where}", self.read(cloud, "", inputs) or {})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        if "routeTableId" not in state:
            table_id, _, where = resource_id.removeprefix("r-").partition("_")
            name = "destinationIpv6CidrBlock" if ":" in where else "destinationCidrBlock"
            state = {**state, "routeTableId": table_id, name: where}
        table = _describe(cloud, state["routeTableId"], state)
        wanted = destination(state.get("destinationCidrBlock"), state.get("destinationIpv6CidrBlock"))
        route = next((r for r in (table or {}).get("Routes", []) if wanted.items() <= r.items()), None)
        if route is None:
            return None
        found = {name: route.get(argument) for name, argument in TARGETS}
        known = {name: state.get(name) for name in ("routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock")}
        return {
            **known,
            **found,
            "origin": route.get("Origin", "CreateRoute"),
            "state": route.get("State", "active"),
            "region": state.get("region") or cloud.region,
        }

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        region = inputs.get("region")
        cloud.call("replace_route", region, RouteTableId=inputs["routeTableId"], **route_arguments(inputs))
        return self.read(cloud, resource_id, inputs) or {}

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        where = destination(state.get("destinationCidrBlock"), state.get("destinationIpv6CidrBlock"))
        cloud.call_unless_gone("delete_route", state.get("region"), RouteTableId=state["routeTableId"], **where)


class RouteTableAssociation(Handler):
    """A subnet's (or gateway's) use of a route table. Another table means another association id, in place."""

    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"  # noqa: S105 - a type token

    def create(self, cloud: Session, name: str, inputs: Properties) -> Created:
        association = cloud.call(
            "associate_route_table",
            inputs.get("region"),
            RouteTableId=inputs["routeTableId"],
            SubnetId=inputs.get("subnetId"),
            GatewayId=inputs.get("gatewayId"),
        )["AssociationId"]
        return Created(association, {"region": inputs.get("region") or cloud.region})

    def read(self, cloud: Session, resource_id: str, state: Properties) -> Properties | None:
        mine = [{"Name": "association.route-table-association-id", "Values": [resource_id]}]
        tables = cloud.call("describe_route_tables", state.get("region"), Filters=mine)["RouteTables"]
        for table in tables:
            for association in table["Associations"]:
                if association["RouteTableAssociationId"] == resource_id:
                    return {
                        "routeTableId": table["RouteTableId"],
                        "subnetId": association.get("SubnetId"),
                        "gatewayId": association.get("GatewayId"),
                        "region": state.get("region") or cloud.region,
                    }
        return None

    def update(self, cloud: Session, resource_id: str, state: Properties, inputs: Properties) -> Properties:
        cloud.call(
            "replace_route_table_association",
            inputs.get("region"),
            AssociationId=resource_id,
            RouteTableId=inputs["routeTableId"],
        )
        return {}

    def delete(self, cloud: Session, resource_id: str, state: Properties) -> None:
        cloud.call_unless_gone("disassociate_route_table", state.get("region"), AssociationId=resource_id)


def _describe(cloud: Session, table_id: str, state: Properties) -> dict[str, Any] | None:
    answer = cloud.call_unless_gone("describe_route_tables", state.get("region"), RouteTableIds=[table_id])
    return next(iter(answer["RouteTables"]), None) if answer else None


def _matching(wanted: list[Properties], routes: list[dict[str, Any]]) -> list[Properties]:
    """The routes of the program that the table still has, plus those that somebody added."""
    found = [route for route in wanted if any(route_arguments(route).items() <= item.items() for item in routes)]
    for item in routes:
        known = any(route_arguments(route).items() <= item.items() for route in found)
        if not known and item.get("Origin") == "CreateRoute" and item.get("DestinationCidrBlock"):
            targets = {name: item[argument] for name, argument in TARGETS if item.get(argument)}
            found.append({"cidrBlock": item["DestinationCidrBlock"], **targets})
    return found
