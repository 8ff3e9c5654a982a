"""A substitute for Neutron with the part of its API that Nova calls: one network, and ports in memory."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_DNS, uuid4, uuid5

NETWORK, SUBNET = (str(uuid5(NAMESPACE_DNS, name)) for name in ("watcher network", "watcher subnet"))
EXTENSION = {
    "alias": "auto-allocated-topology",
    "name": "Auto Allocated Topology Services",
    "updated": "",
    "links": [],
}
ports: dict[str, dict[str, Any]] = {}
Answer = tuple[int, dict[str, Any] | None]


def network(project: str) -> dict[str, Any]:
    return {
        "id": NETWORK,
        "name": "net",
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": True,
        "mtu": 1500,
        "tenant_id": project,
        "project_id": project,
        "subnets": [SUBNET],
        "port_security_enabled": True,
        "router:external": False,
    }


def subnet() -> dict[str, Any]:
    return {
        "id": SUBNET,
        "network_id": NETWORK,
        "cidr": "10.0.0.0/8",
        "ip_version": 4,
        "gateway_ip": "10.0.0.1",
        "enable_dhcp": False,
        "dns_nameservers": [],
        "host_routes": [],
    }


def new_port(wanted: dict[str, Any]) -> dict[str, Any]:
    key = uuid4()
    address, hardware = key.bytes[:3], key.bytes[3:6]
    return {
        "id": str(key),
        "network_id": NETWORK,
        "status": "ACTIVE",
        "admin_state_up": True,
        "device_id": "",
        "tenant_id": "",
        "mac_address": "fa:16:3e:" + hardware.hex(":"),
        "fixed_ips": [{"subnet_id": SUBNET, "ip_address": "10." + ".".join(map(str, address))}],
        "security_groups": [],
        "allowed_address_pairs": [],
        "binding:vnic_type": "normal",
        "binding:vif_type": "ovs",
        "binding:vif_details": {},
        "binding:profile": {},
        **wanted,
    }


def missing(kind: str) -> Answer:
    return 404, {"NeutronError": {"type": kind, "message": "It could not be found.", "detail": ""}}


def list_ports(query: dict[str, str]) -> Answer:
    wanted = {key: query[key] for key in ("id", "device_id", "network_id") if key in query}
    return 200, {"ports": [port for port in ports.values() if wanted.items() <= port.items()]}


def handle_port(method: str, key: str, rest: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer:
    if method == "POST" and not key:
        port = new_port(body["port"])
        ports[port["id"]] = port
        return 201, {"port": port}
    if not key:
        return list_ports(query)
    # Bindings of a port to several hosts are an extension that this Neutron does not have.
    if key not in ports or rest:
        return missing("PortNotFound")
    if method == "DELETE":
        del ports[key]
        return 204, None
    ports[key] |= body.get("port", {})
    return 200, {"port": ports[key]}


def handle(method: str, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer:
    """Return the status and the body of an answer; any other collection is empty."""
    if not path:
        return 200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": []}]}
    kind, key = path[0], path[1] if len(path) > 1 else ""
    if kind == "ports":
        return handle_port(method, key, path[2:], query, body)
    if kind == "quotas":
        return 200, {"quota": dict.fromkeys(("port", "network", "floatingip", "security_group"), -1)}
    if kind == "networks" and key:
        return 200, {"network": network("")}
    if kind == "auto-allocated-topology":
        topology = {"id": "dry-run=pass"} if query.get("fields") == "dry-run" else {"id": NETWORK, "tenant_id": key}
        return 200, {"auto_allocated_topology": topology}
    lists: dict[str, list[dict[str, Any]]] = {
        "networks": [network("")] if query.get("id") == NETWORK else [],
        "subnets": [subnet()] if query.get("id", SUBNET) == SUBNET else [],
        "extensions": [EXTENSION],
    }
    if method == "GET" and not key:
        return 200, {kind.replace("-", "_"): lists.get(kind, [])}
    return missing("HTTPNotFound")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        address = urlsplit(self.path)
        path = [part.removesuffix(".json") for part in address.path.strip("/").split("/")[1:]]
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, found = handle(self.command, path, query, json.loads(body or b"{}"))
        content = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = respond  # noqa: N815


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
