"""Plans applied directly to the tables, with the same result as by the applier and the embedded cloud."""

from collections.abc import Mapping
from typing import Any

from actions.models import Action
from audits.models import Audit
from cluster.models import ComputeNode, Server
from tests.benchmarks.replay.site import Site


class StraightSite(Site):
    """A site without the applier, for a fast replay: no locks, checks of capacity, phases or events of actions."""

    def decide(self, strategy: str, goal: str, parameters: Mapping[str, Any], *, auto_trigger: bool = False) -> Audit:
        self.audit = super().decide(strategy, goal, parameters, auto_trigger=False)
        return self.audit

    def apply(self) -> None:
        """Apply the plan of the last audit.

        Raises:
            RuntimeError: an action has no destination, or its type is not supported here.
        """
        nodes = {node.hostname: node for node in ComputeNode.objects.all()}
        moved, changed = dict[str, Server](), dict[str, ComputeNode]()
        servers = {str(server.uuid): server for server in Server.objects.all()}
        for action in self.planned(self.audit):
            given = action.input_parameters
            if action.action_type == "migrate" and given.get("destination_node"):
                server = moved[given["resource_id"]] = servers[given["resource_id"]]
                server.node = nodes[given["destination_node"]]
            elif action.action_type == "change_nova_service_state":
                node = changed[given["resource_name"]] = nodes[given["resource_name"]]
                node.status, node.disabled_reason = given["state"], given.get("disabled_reason")
            else:
                raise RuntimeError(f"An action {action.action_type} can not be carried out straight: {given}")
        Server.objects.bulk_update(moved.values(), ["node"])
        ComputeNode.objects.bulk_update(changed.values(), ["status", "disabled_reason"])

    def planned(self, audit: Audit) -> Any:
        return Action.objects.filter(action_plan__audit=audit).order_by("pk")

    def outcome(self, audit: Audit) -> tuple[int, int]:
        return self.planned(audit).filter(action_type="migrate").count(), 0
