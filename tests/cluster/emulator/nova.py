"""Nova: hypervisors with their services, aggregates, flavors, and servers."""

import re
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from werkzeug import Request, Response
from werkzeug.exceptions import NotFound
from werkzeug.routing import Rule

from tests.cluster.emulator.nova_operations import Operations
from tests.cluster.emulator.paging import page

ROOT = "/compute/v2.1"
VM_STATES = {"ACTIVE": "active", "SHUTOFF": "stopped", "PAUSED": "paused", "ERROR": "error"}
CAPACITY = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "running_vms")


def make_uuid(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))


class Nova(Operations):
    newest = "2.96"

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self.hypervisors: dict[str, dict[str, Any]] = {}
        self.services: dict[str, dict[str, Any]] = {}
        self.aggregates: list[dict[str, Any]] = []
        self.flavors: dict[str, dict[str, Any]] = {}
        self.flavor_access: dict[str, list[str]] = {}
        self.server_groups: dict[str, dict[str, Any]] = {}
        self.requested: list[dict[str, Any]] = []
        """The bodies of the requests for servers."""

    def rules(self) -> list[Rule]:
        server = f"{ROOT}/servers/<server>"
        return [
            Rule(f"{ROOT}/os-hypervisors/detail", endpoint=self.list_hypervisors),
            Rule(f"{ROOT}/os-hypervisors/<hypervisor>", endpoint=self.show_hypervisor),
            Rule(f"{ROOT}/os-migrations", endpoint=self.list_evacuations),
            Rule(f"{ROOT}/os-services", endpoint=self.list_services),
            Rule(f"{ROOT}/os-services/<service>", methods=["PUT"], endpoint=self.change_service),
            Rule(f"{ROOT}/os-aggregates", endpoint=self.list_aggregates),
            Rule(f"{ROOT}/flavors/detail", endpoint=self.list_flavors),
            Rule(f"{ROOT}/flavors/<flavor>", endpoint=self.show_flavor),
            Rule(f"{ROOT}/flavors/<flavor>/os-flavor-access", endpoint=self.list_flavor_access),
            Rule(f"{ROOT}/os-server-groups/<group>", endpoint=self.show_server_group),
            Rule(f"{ROOT}/servers/detail", endpoint=self.list_servers),
            Rule(f"{ROOT}/servers", methods=["POST"], endpoint=self.create_server),
            Rule(server, methods=["GET"], endpoint=self.show_server),
            Rule(server, methods=["DELETE"], endpoint=self.delete_server),
            Rule(f"{server}/action", methods=["POST"], endpoint=self.act),
            Rule(f"{server}/metadata", methods=["POST"], endpoint=self.set_metadata),
            Rule(f"{server}/metadata/<key>", methods=["DELETE"], endpoint=self.delete_metadata),
            Rule(f"{server}/migrations", endpoint=self.list_migrations),
            Rule(f"{server}/migrations/<migration>", methods=["DELETE"], endpoint=self.abort_migration),
            Rule(f"{server}/os-instance-actions", endpoint=self.list_actions),
            Rule(f"{server}/os-instance-actions/<action>", endpoint=self.show_action),
        ]

    # Contents that tests add.

    def add_host(self, host: str, vcpus: int = 16, memory: int = 32768, disk: int = 500, **columns: Any) -> str:
        key, service = make_uuid(host), make_uuid(f"service of {host}")
        states = {"status": "enabled", "state": "up", "disabled_reason": None, "forced_down": False}
        states |= {name: columns.pop(name) for name in list(columns) if name in states}
        zone = columns.pop("zone", "nova")
        self.services[service] = {"id": service, "binary": "nova-compute", "host": host, "zone": zone, **states}
        self.hypervisors[key] = {
            "id": key,
            "hypervisor_hostname": f"{host}.example.org",
            "hypervisor_type": "QEMU",
            "status": states["status"],
            "state": states["state"],
            "service": {"id": service, "host": host, "disabled_reason": states["disabled_reason"]},
            "vcpus": vcpus,
            "memory_mb": memory,
            "local_gb": disk,
            **columns,
        }
        return key

    def add_flavor(self, flavor_id: str, name: str, vcpus: int = 2, ram: int = 2048, disk: int = 20) -> None:
        extra = {"OS-FLV-EXT-DATA:ephemeral": 0, "swap": "", "os-flavor-access:is_public": True, "extra_specs": {}}
        self.flavors[flavor_id] = {"id": flavor_id, "name": name, "vcpus": vcpus, "ram": ram, "disk": disk, **extra}

    def add_server(self, name: str, host: str, status: str = "ACTIVE", flavor: str = "f1", **columns: Any) -> str:
        key = make_uuid(name)
        self.servers[key] = {
            "id": key,
            "name": name,
            "status": status,
            "tenant_id": "a project",
            "user_id": "a user",
            "metadata": {},
            "image": {"id": make_uuid("image")},
            "flavor": self.embed(flavor),
            "created": "2026-03-01T10:00:00Z",
            "locked": False,
            "OS-EXT-SRV-ATTR:host": host,
            "OS-EXT-STS:vm_state": VM_STATES[status],
            "OS-EXT-STS:task_state": None,
            "OS-SRV-USG:launched_at": "2026-03-01T10:00:30.000000",
            "os-extended-volumes:volumes_attached": [],
            "pinned_availability_zone": None,
            **columns,
        }
        return key

    def add_aggregate(self, number: int, name: str, *hosts: str, **metadata: str) -> None:
        known = {"id": number, "uuid": make_uuid(name), "name": name}
        self.aggregates.append({**known, "hosts": list(hosts), "metadata": metadata})

    def embed(self, flavor: str) -> dict[str, Any]:
        """Return a flavor in the format of servers from 2.47 on, without its ID."""
        wanted = self.flavors[flavor]
        size = {name: wanted[name] for name in ("vcpus", "ram", "disk", "extra_specs")}
        return {"original_name": wanted["name"], "ephemeral": 0, "swap": 0, **size}

    # Responses.

    def list_hypervisors(self, request: Request) -> Any:
        hidden = CAPACITY if self.version(request) >= (2, 88) else ()
        shown = [{k: v for k, v in node.items() if k not in hidden} for node in self.hypervisors.values()]
        return page(request, "hypervisors", shown, self.cloud.page_size)

    def version(self, request: Request) -> tuple[int, ...]:
        header = request.headers.get("OpenStack-API-Version", "compute 2.1").split()[-1]
        return tuple(int(part) for part in header.split("."))

    def show_hypervisor(self, request: Request, hypervisor: str) -> Any:
        if hypervisor not in self.hypervisors:
            raise NotFound(f"Hypervisor with ID '{hypervisor}' could not be found.")
        return {"hypervisor": self.hypervisors[hypervisor]}

    def list_services(self, request: Request) -> Any:
        wanted = {key: request.args[key] for key in ("binary", "host") if key in request.args}
        return {"services": [s for s in self.services.values() if wanted.items() <= s.items()]}

    def change_service(self, request: Request, service: str) -> Any:
        if service not in self.services:
            raise NotFound(f"Service {service} could not be found.")
        found, change = self.services[service], request.get_json()
        found["status"] = change.get("status", found["status"])
        found["disabled_reason"] = change.get("disabled_reason")
        for node in self.hypervisors.values():
            if node["service"]["id"] == service:
                node["status"], node["service"]["disabled_reason"] = found["status"], found["disabled_reason"]
        return {"service": found}

    def list_aggregates(self, request: Request) -> Any:
        return {"aggregates": self.aggregates}

    def list_flavors(self, request: Request) -> Any:
        """Return the public flavors, or all flavors for requests of administrators with ``is_public=None``."""
        is_complete = request.args.get("is_public") == "None"
        shown = [one for one in self.flavors.values() if is_complete or one["os-flavor-access:is_public"]]
        return page(request, "flavors", shown, self.cloud.page_size)

    def show_flavor(self, request: Request, flavor: str) -> Any:
        if flavor not in self.flavors:
            raise NotFound(f"Flavor {flavor} could not be found.")
        return {"flavor": self.flavors[flavor]}

    def list_flavor_access(self, request: Request, flavor: str) -> Any:
        projects = self.flavor_access.get(flavor, ())
        return {"flavor_access": [{"flavor_id": flavor, "tenant_id": project} for project in projects]}

    def show_server_group(self, request: Request, group: str) -> Any:
        if group not in self.server_groups:
            raise NotFound(f"Instance group {group} could not be found.")
        return {"server_group": {"id": group, **self.server_groups[group]}}

    def list_servers(self, request: Request) -> Any:
        """Return all servers for requests with ``all_tenants``, as they belong to another project."""
        found = list(self.servers.values()) if request.args.get("all_tenants") in {"1", "True"} else []
        if "host" in request.args:
            found = [server for server in found if server["OS-EXT-SRV-ATTR:host"] == request.args["host"]]
        if "project_id" in request.args:
            found = [server for server in found if server["tenant_id"] == request.args["project_id"]]
        if "name" in request.args:
            found = [server for server in found if re.search(request.args["name"], server["name"])]
        return page(request, "servers", found, self.cloud.page_size)

    def create_server(self, request: Request) -> Response:
        self.requested.append(request.get_json())
        return self.build(request.get_json()["server"], *self.cloud.owner_of(request.headers.get("X-Auth-Token")))

    def show_server(self, request: Request, server: str) -> Any:
        found = self.find(server)
        self.advance(found)
        return {"server": found}

    def list_actions(self, request: Request, server: str) -> Any:
        shown = ("action", "request_id", "message")
        return {"instanceActions": [{name: entry[name] for name in shown} for entry in self.actions(server)]}

    def show_action(self, request: Request, server: str, action: str) -> Any:
        found = next((entry for entry in self.actions(server) if entry["request_id"] == action), None)
        return {"instanceAction": self.read_action(found)} if found else Response(status=404)
