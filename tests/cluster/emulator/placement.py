"""Placement: a resource provider for each hypervisor, with its inventories."""

from typing import Any

from werkzeug import Request
from werkzeug.exceptions import NotFound
from werkzeug.routing import Rule


class Placement:
    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud
        self.inventories: dict[str, dict[str, dict[str, Any]]] = {}

    def rules(self) -> list[Rule]:
        return [
            Rule("/placement/resource_providers", endpoint=self.list_providers),
            Rule("/placement/resource_providers/<provider>/inventories", endpoint=self.list_inventories),
        ]

    def list_providers(self, request: Request) -> Any:
        names = {key: node["hypervisor_hostname"] for key, node in self.cloud.nova.hypervisors.items()}
        providers = [
            {"uuid": key, "name": names.get(key, key), "generation": 1, "links": []} for key in self.inventories
        ]
        return {"resource_providers": providers}

    def list_inventories(self, request: Request, provider: str) -> Any:
        if provider not in self.inventories:
            raise NotFound(f"No resource provider with uuid {provider} found")
        return {"resource_provider_generation": 1, "inventories": self.inventories[provider]}


def inventory(total: int, reserved: int = 0, allocation_ratio: float = 1.0, **rules: int) -> dict[str, Any]:
    units = {"min_unit": 1, "max_unit": total, "step_size": 1, **rules}
    return {"total": total, "reserved": reserved, "allocation_ratio": allocation_ratio, **units}
