"""The actions that many strategies ask for, with the parameters that their types demand."""

from audits.strategies.base import Solution
from cluster.snapshot import NodeSnapshot, ServerSnapshot

# The reasons with which strategies disable compute services: to maintain the node, and to keep it empty.
MAINTAINING = "watcher_maintaining"
EMPTIED = "watcher_disabled"
CONSOLIDATED = "Watcher node resource consolidation strategy"
REASONS = frozenset({MAINTAINING, EMPTIED, CONSOLIDATED})


def migrate(
    solution: Solution, server: ServerSnapshot, kind: str, source: str, destination: str | None = None
) -> None:
    """Migrate a server ``live`` or ``cold`` between host names; without a destination the cloud chooses."""
    target = {"destination_node": destination} if destination else {}
    parameters = {"migration_type": kind, "source_node": source, "resource_name": server.name}
    solution.add("migrate", {**parameters, **target}, resource_id=str(server.uuid))


def enable(solution: Solution, node: NodeSnapshot) -> None:
    parameters = {"state": "enabled", "resource_name": node.hostname}
    solution.add("change_nova_service_state", parameters, resource_id=str(node.uuid))


def disable(solution: Solution, node: NodeSnapshot, reason: str) -> None:
    parameters = {"state": "disabled", "disabled_reason": reason, "resource_name": node.hostname}
    solution.add("change_nova_service_state", parameters, resource_id=str(node.uuid))
