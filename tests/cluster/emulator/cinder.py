"""Cinder: pools, volume types, volumes, and their migrations and retypes."""

from typing import Any

from werkzeug import Request, Response
from werkzeug.exceptions import BadRequest, Conflict, NotFound
from werkzeug.routing import Rule

from tests.cluster.emulator.paging import page

ROOT = "/volume/v3/<project>"
MOVING = ("starting", "migrating", "completing")


class Cinder:
    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud
        self.services: list[dict[str, Any]] = []
        self.pools: dict[str, dict[str, Any]] = {}
        self.types: dict[str, dict[str, Any]] = {}
        self.type_access: dict[str, list[str]] = {}
        self.volumes: dict[str, dict[str, Any]] = {}
        self.snapshots: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.failing = False

    def rules(self) -> list[Rule]:
        return [
            Rule(f"{ROOT}/os-services", endpoint=self.list_services),
            Rule(f"{ROOT}/scheduler-stats/get_pools", endpoint=self.list_pools),
            Rule(f"{ROOT}/types", endpoint=self.list_types),
            Rule(f"{ROOT}/types/<kind>/os-volume-type-access", endpoint=self.list_type_access),
            Rule(f"{ROOT}/volumes/detail", endpoint=self.list_volumes),
            Rule(f"{ROOT}/snapshots/detail", endpoint=self.list_snapshots),
            Rule(f"{ROOT}/snapshots", endpoint=self.list_snapshots),
            Rule(f"{ROOT}/snapshots/<snapshot>", endpoint=self.show_snapshot),
            Rule(f"{ROOT}/volumes/<volume>", endpoint=self.show),
            Rule(f"{ROOT}/volumes/<volume>/action", methods=["POST"], endpoint=self.act),
        ]

    def add_pool(self, name: str, backend_name: str, total: Any = 100, **capabilities: Any) -> None:
        host = name.partition("#")[0]
        if not any(service["host"] == host for service in self.services):
            states = {"status": "enabled", "state": "up", "disabled_reason": None}
            self.services.append({"binary": "cinder-volume", "host": host, "zone": "nova", **states})
        known = {"free_capacity_gb": total, "allocated_capacity_gb": 0, "provisioned_capacity_gb": 0}
        known |= {"max_over_subscription_ratio": "1.5", "volume_backend_name": backend_name}
        self.pools[name] = {"name": name, "capabilities": {"total_capacity_gb": total, **known, **capabilities}}

    def add_type(self, uuid: str, name: str, backend_name: str | None = None) -> None:
        specs = {"volume_backend_name": backend_name} if backend_name else {}
        self.types[uuid] = {"id": uuid, "name": name, "extra_specs": specs, "os-volume-type-access:is_public": True}

    def add_volume(self, uuid: str, name: str, pool: str, **columns: Any) -> None:
        self.volumes[uuid] = {
            "id": uuid,
            "name": name,
            "size": 10,
            "status": "available",
            "os-vol-host-attr:host": pool,
            "os-vol-mig-status-attr:migstat": None,
            "os-vol-tenant-attr:tenant_id": "a project",
            "volume_type": None,
            "multiattach": False,
            "bootable": "false",
            "snapshot_id": None,
            "metadata": {},
            "attachments": [],
            "created_at": "2026-03-01T10:00:00.000000",
            **columns,
        }

    def list_services(self, request: Request, project: str) -> Any:
        return {"services": self.services}

    def list_pools(self, request: Request, project: str) -> Any:
        return {"pools": list(self.pools.values())}

    def list_types(self, request: Request, project: str) -> Any:
        return page(request, "volume_types", list(self.types.values()), self.cloud.page_size)

    def list_type_access(self, request: Request, project: str, kind: str) -> Any:
        projects = self.type_access.get(kind, ())
        return {"volume_type_access": [{"volume_type_id": kind, "project_id": one} for one in projects]}

    def show_snapshot(self, request: Request, project: str, snapshot: str) -> Any:
        if snapshot not in self.snapshots:
            raise NotFound(f"Snapshot {snapshot} could not be found.")
        return {"snapshot": self.snapshots[snapshot]}

    def list_volumes(self, request: Request, project: str) -> Any:
        return page(request, "volumes", self.all_tenants_items(request, self.volumes), self.cloud.page_size)

    def list_snapshots(self, request: Request, project: str) -> Any:
        return page(request, "snapshots", self.all_tenants_items(request, self.snapshots), self.cloud.page_size)

    def all_tenants_items(self, request: Request, items: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Return all items for requests with ``all_tenants``, as they belong to another project."""
        return list(items.values()) if request.args.get("all_tenants") in {"1", "True"} else []

    def find(self, volume: str) -> dict[str, Any]:
        if volume not in self.volumes:
            raise NotFound(f"Volume {volume} could not be found.")
        return self.volumes[volume]

    def show(self, request: Request, project: str, volume: str) -> Any:
        found = self.find(volume)
        operation = self.operations.get(volume)
        if operation:
            operation["left"] -= 1
            if operation["left"] <= 0:
                self.finish(found, self.operations.pop(volume))
        return {"volume": found}

    def finish(self, volume: dict[str, Any], operation: dict[str, Any]) -> None:
        volume["status"] = operation["status"]
        volume["os-vol-mig-status-attr:migstat"] = "error" if self.failing else "success"
        if not self.failing:
            volume.update(operation["changes"])

    def act(self, request: Request, project: str, volume: str) -> Response:
        found, (verb, options) = self.find(volume), next(iter(request.get_json().items()))
        if volume in self.operations or found["status"] not in {"available", "in-use"}:
            raise Conflict(f"Volume {volume} status must be available or in-use.")
        changes = self.migrate(options) if verb == "os-migrate_volume" else self.retype(found, options)
        operation = {"left": self.cloud.readings, "status": found["status"], "changes": changes}
        self.operations[volume] = operation
        found["os-vol-mig-status-attr:migstat"] = "migrating"
        found["status"] = "retyping" if verb == "os-retype" else found["status"]
        return Response(status=202)

    def migrate(self, options: dict[str, Any]) -> dict[str, Any]:
        if options["host"] not in self.pools:
            raise BadRequest(f"No available service named {options['host']}")
        return {"os-vol-host-attr:host": options["host"]}

    def retype(self, volume: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        wanted = next(kind for kind in self.types.values() if options["new_type"] in {kind["id"], kind["name"]})
        name = wanted["extra_specs"].get("volume_backend_name")
        pools = [pool for pool in self.pools.values() if name in {None, pool["capabilities"]["volume_backend_name"]}]
        here = volume["os-vol-host-attr:host"]
        there = here if any(pool["name"] == here for pool in pools) else pools[0]["name"]
        if there != here and options.get("migration_policy") != "on-demand":
            raise BadRequest("Retype requires migration but is not allowed.")
        return {"volume_type": wanted["name"], "os-vol-host-attr:host": there}
