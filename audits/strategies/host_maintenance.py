"""A strategy that empties one compute node for maintenance."""

from collections.abc import Mapping
from typing import Any

from audits import messages
from audits.strategies.base import MAINTAINING, REASONS, Solution, Strategy
from audits.strategies.placement import accepts
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from watcher_site.refusals import Invalid


class HostMaintenance(Strategy):
    name = "host_maintenance"
    display_name = "Host Maintenance Strategy"
    goal = "cluster_maintaining"
    distinguished_by = ("maintenance_node",)
    schema = {
        "type": "object",
        "properties": {
            "maintenance_node": {
                "description": "The host name of the compute node to empty.",
                "type": "string",
                "format": "compute-node",
            },
            "backup_node": {
                "description": "The host name of the compute node to which all servers are moved if it has capacity. "
                "It must be up, and not disabled by a user.",
                "type": "string",
                "format": "compute-node",
            },
            "disable_live_migration": {
                "description": "Whether to migrate active servers cold, or to stop them if this is disabled, too.",
                "type": "boolean",
                "default": False,
            },
            "disable_cold_migration": {
                "description": "Whether to leave inactive servers on the node.",
                "type": "boolean",
                "default": False,
            },
        },
        "required": ["maintenance_node"],
    }

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        """Disable the node and move its servers away, except servers that the scope of the audit excludes."""
        node = find_node(cluster, parameters["maintenance_node"])
        backup = find_backup(cluster, parameters["backup_node"]) if "backup_node" in parameters else None
        servers = [server for server in node.servers if not server.watcher_exclude]
        destination = backup if backup and backup is not node and has_capacity(backup, servers) else None
        solution = Solution()
        if servers and destination and not destination.is_enabled:
            solution.enable(destination)
        solution.disable(node, MAINTAINING)
        for server in servers:
            move(solution, server, node, destination, parameters)
        return solution


def find_node(cluster: ClusterSnapshot, hostname: str) -> NodeSnapshot:
    try:
        return cluster.nodes[hostname]
    except KeyError:
        raise Invalid(messages.NODE_NOT_FOUND.fill(name=hostname)) from None


def find_backup(cluster: ClusterSnapshot, hostname: str) -> NodeSnapshot:
    """Return the node to which servers are moved. Raises: `Invalid` if it is down or disabled by a user."""
    node = find_node(cluster, hostname)
    if not node.is_up:
        raise Invalid(messages.BACKUP_IS_DOWN.fill(name=hostname))
    if not node.is_enabled and node.disabled_reason not in REASONS:
        if not node.disabled_reason:
            raise Invalid(messages.BACKUP_DISABLED.fill(name=hostname))
        raise Invalid(messages.BACKUP_DISABLED_BECAUSE.fill(name=hostname, reason=node.disabled_reason))
    return node


def has_capacity(node: NodeSnapshot, servers: list[ServerSnapshot]) -> bool:
    """Return whether all the servers fit together. As in Watcher, disks are ignored."""
    return all(accepts(node, server) for server in servers) and (
        sum(server.vcpus for server in servers) <= node.free_vcpus
        and sum(server.memory for server in servers) <= node.free_memory
    )


def move(
    solution: Solution,
    server: ServerSnapshot,
    node: NodeSnapshot,
    destination: NodeSnapshot | None,
    parameters: Mapping[str, Any],
) -> None:
    """Migrate one server as the parameters allow, or stop it if it is active and no migration is allowed."""
    migration_type = choose_migration(server, parameters)
    if migration_type:
        target = destination.hostname if destination else None
        solution.migrate(server, migration_type, node.hostname, target)
    elif server.is_active:
        solution.add("stop", {}, resource_id=str(server.uuid))


def choose_migration(server: ServerSnapshot, parameters: Mapping[str, Any]) -> str | None:
    if server.is_active and not parameters["disable_live_migration"]:
        return "live"
    return None if parameters["disable_cold_migration"] else "cold"
