"""Neutron: networks, security groups, subnets, and the ports of servers on them."""

from typing import Any

from werkzeug import Request
from werkzeug.exceptions import NotFound
from werkzeug.routing import Rule

from tests.cluster.emulator.paging import page

ROOT = "/network/v2.0"


class Neutron:
    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud
        self.subnets: dict[str, dict[str, Any]] = {}
        self.ports: list[dict[str, Any]] = []
        self.networks: list[dict[str, Any]] = []
        self.security_groups: list[dict[str, Any]] = []

    def rules(self) -> list[Rule]:
        return [
            Rule(f"{ROOT}/subnets", endpoint=self.list_subnets),
            Rule(f"{ROOT}/subnets/<subnet>", endpoint=self.show_subnet),
            Rule(f"{ROOT}/ports", endpoint=self.list_ports),
            Rule(f"{ROOT}/ports/<key>", endpoint=self.show, defaults={"kind": "port"}),
            Rule(f"{ROOT}/networks", endpoint=self.list_networks),
            Rule(f"{ROOT}/networks/<key>", endpoint=self.show, defaults={"kind": "network"}),
            Rule(f"{ROOT}/security-groups/<key>", endpoint=self.show, defaults={"kind": "security_group"}),
        ]

    def show(self, request: Request, kind: str, key: str) -> Any:
        items = {"port": self.ports, "network": self.networks, "security_group": self.security_groups}[kind]
        for item in items:
            if item["id"] == key:
                return {kind: item}
        raise NotFound(f"{kind} {key} could not be found.")

    def list_networks(self, request: Request) -> Any:
        found = [network for network in self.networks if request.args.get("name") in {None, network["name"]}]
        return page(request, "networks", found, self.cloud.page_size)

    def add_subnet(self, uuid: str, name: str) -> None:
        self.subnets[uuid] = {"id": uuid, "name": name}

    def add_port(self, server: str, **addresses: str) -> None:
        """Add a port of a server with an address on each of these subnets."""
        fixed = [{"subnet_id": subnet, "ip_address": address} for subnet, address in addresses.items()]
        self.ports.append({"id": f"port-{len(self.ports)}", "device_id": server, "fixed_ips": fixed})

    def list_subnets(self, request: Request) -> Any:
        wanted = request.args.get("name")
        found = [subnet for subnet in self.subnets.values() if wanted in {None, subnet["name"]}]
        return page(request, "subnets", found, self.cloud.page_size)

    def show_subnet(self, request: Request, subnet: str) -> Any:
        if subnet not in self.subnets:
            raise NotFound(f"Subnet {subnet} could not be found.")
        return {"subnet": self.subnets[subnet]}

    def list_ports(self, request: Request) -> Any:
        found = [port for port in self.ports if port["device_id"] == request.args["device_id"]]
        return page(request, "ports", found, self.cloud.page_size)
