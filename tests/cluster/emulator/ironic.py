"""Ironic: machines that are powered on and off."""

from typing import Any

from werkzeug import Request, Response
from werkzeug.exceptions import NotFound
from werkzeug.routing import Rule


class Ironic:
    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud
        self.nodes: dict[str, dict[str, Any]] = {}
        self.left: dict[str, float] = {}
        self.ignores_power_changes = False

    def rules(self) -> list[Rule]:
        return [
            Rule("/baremetal/v1/nodes", endpoint=self.list),
            Rule("/baremetal/v1/nodes/detail", endpoint=self.list),
            Rule("/baremetal/v1/nodes/<node>", endpoint=self.show),
            Rule("/baremetal/v1/nodes/<node>/states/power", methods=["PUT"], endpoint=self.set_power),
        ]

    def add(self, uuid: str, name: str, power_state: str = "power on", **extra: str) -> None:
        self.nodes[uuid] = {
            "uuid": uuid,
            "name": name,
            "power_state": power_state,
            "target_power_state": None,
            "last_error": None,
            "extra": extra,
        }

    def list(self, request: Request) -> Any:
        return {"nodes": list(self.nodes.values())}

    def show(self, request: Request, node: str) -> Any:
        found = self.find(node)
        if found["target_power_state"]:
            self.left[node] -= 1
            if self.left[node] <= 0:
                reached = found["power_state"] if self.ignores_power_changes else found["target_power_state"]
                found["power_state"], found["target_power_state"] = reached, None
        return found

    def set_power(self, request: Request, node: str) -> Response:
        self.find(node)["target_power_state"] = request.get_json()["target"]
        self.left[node] = self.cloud.readings
        return Response(status=202)

    def find(self, node: str) -> dict[str, Any]:
        if node not in self.nodes:
            raise NotFound(f"Node {node} could not be found.")
        return self.nodes[node]
