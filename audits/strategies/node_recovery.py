"""A strategy that evacuates compute nodes that are down."""

from collections.abc import Mapping, Sequence
from typing import Any

from audits import messages
from audits.strategies.base import Solution, Strategy
from audits.strategies.host_maintenance import find_backup, find_node
from audits.strategies.placement import Place, Placement, enabled
from cluster.drivers.rules import CONFIRMED, EVACUABLE, NOT_FENCED, VERIFY
from cluster.models import Server
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from watcher_site.refusals import Invalid

# The reason of the disabled compute service of an evacuated node, which other strategies do not enable again.
REASON = "watcher_evacuated"
POWER_OFF = "power_off"
# The values in metadata of servers that Masakari treats as true.
TRUE = {"1", "t", "true", "on", "y", "yes"}


class NodeRecovery(Strategy):
    name = "node_recovery"
    display_name = "Recovery of the servers of failed compute nodes"
    goal = "node_recovery"
    planner = "explicit"
    distinguished_by = ("failed_node",)
    schema = {
        "type": "object",
        "properties": {
            "failed_node": {
                "description": "The host name of the compute node to evacuate. By default all that are down and have "
                "servers that should run.",
                "type": "string",
                "format": "compute-node",
            },
            "fencing": {
                "description": "The protection against servers that run twice: verify: the node must be off, or its "
                "compute service forced down; power_off: the plan switches the node off first; confirmed: you have "
                "made sure that the node is off and stays off.",
                "type": "string",
                "enum": [VERIFY, POWER_OFF, CONFIRMED],
                "default": VERIFY,
            },
            "backup_node": {
                "description": "The host name of the compute node to which servers are moved while it has capacity. "
                "It must be up, and not disabled by a user.",
                "type": "string",
                "format": "compute-node",
            },
            "only_marked": {
                "description": "Whether to evacuate only servers whose metadata has metadata_key with a true value.",
                "type": "boolean",
                "default": False,
            },
            "metadata_key": {
                "description": "The metadata key of the servers that are evacuated first.",
                "type": "string",
                "minLength": 1,
                "default": "HA_Enabled",
            },
            "max_nodes": {
                "description": "The maximum number of nodes that are down, without failed_node. If more are down, the "
                "network or the cloud itself may have failed.",
                "type": "integer",
                "minimum": 1,
                "default": 1,
            },
        },
    }

    def check(self, parameters: Mapping[str, Any]) -> None:
        if parameters["fencing"] == CONFIRMED and "failed_node" not in parameters:
            raise Invalid(messages.FAILED_NODE_REQUIRED.text)
        if "failed_node" in parameters and parameters["failed_node"] == parameters.get("backup_node"):
            raise Invalid(messages.BACKUP_IS_FAILED_NODE.text)

    def check_repeated(self, parameters: Mapping[str, Any]) -> None:
        if parameters["fencing"] == CONFIRMED:
            raise Invalid(messages.CONFIRMED_ONCE.text)

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        """Disable and evacuate the nodes that are down and known to be off.

        Servers that the scope of the audit excludes stay, like servers in states that Nova refuses.
        """
        failed = find_failed(cluster, parameters)
        fenced = [node for node in failed if is_safe(node, parameters)]
        if failed and not fenced:
            raise Invalid(describe_unfenced(failed))
        destinations = Destinations(cluster, fenced, parameters.get("backup_node"))
        solution = Solution()
        for node in fenced:
            evacuate(solution, node, destinations, parameters)
        evacuated = sum(action.action_type == "evacuate" for action in solution.actions)
        solution.indicators = {
            "failed_nodes_count": len(failed),
            "unfenced_nodes_count": len(failed) - len(fenced),
            "failed_servers_count": sum(len(node.servers) for node in failed),
            "evacuated_servers_count": evacuated,
        }
        return solution


def find_failed(cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> list[NodeSnapshot]:
    """Return the nodes to evacuate.

    Without ``failed_node``, nodes whose servers are all stopped are omitted, because they may have been switched off
    to save energy.

    Raises:
        Invalid: the requested node is unknown or up, or too many nodes are down.
    """
    if "failed_node" in parameters:
        node = find_node(cluster, parameters["failed_node"])
        if node.is_up:
            raise Invalid(messages.NODE_IS_UP.fill(name=node.hostname))
        return [node]
    failed = [
        node
        for node in cluster.nodes.values()
        if not node.is_up
        and any(server.state == Server.State.ACTIVE for server in servers_to_evacuate(node, parameters))
    ]
    if len(failed) > parameters["max_nodes"]:
        names = ", ".join(node.hostname for node in failed)
        raise Invalid(
            messages.TOO_MANY_FAILED_NODES.fill(number=len(failed), names=names, most=parameters["max_nodes"])
        )
    return failed


def is_safe(node: NodeSnapshot, parameters: Mapping[str, Any]) -> bool:
    """Return whether no server of a node that is down can run twice: the node is fenced, or has none to evacuate."""
    return parameters["fencing"] != VERIFY or node.is_known_to_be_off or not servers_to_evacuate(node, parameters)


def describe_unfenced(nodes: Sequence[NodeSnapshot]) -> str:
    names = ", ".join(node.hostname for node in nodes)
    subject = messages.UNFENCED_NODE if len(nodes) == 1 else messages.UNFENCED_NODES
    return messages.NOT_FENCED_NODES.fill(subject=subject.fill(names=names), problem=NOT_FENCED)


def servers_to_evacuate(node: NodeSnapshot, parameters: Mapping[str, Any]) -> list[ServerSnapshot]:
    """Return the servers of a node to evacuate, marked ones first."""

    def is_marked(server: ServerSnapshot) -> bool:
        return str(server.metadata.get(parameters["metadata_key"], "")).lower() in TRUE

    servers = [server for server in node.servers if not server.watcher_exclude and server.state in EVACUABLE]
    if parameters["only_marked"]:
        return [server for server in servers if is_marked(server)]
    return sorted(servers, key=is_marked, reverse=True)


class Destinations:
    """The possible destinations of evacuated servers, with their remaining capacity."""

    def __init__(self, cluster: ClusterSnapshot, failed: Sequence[NodeSnapshot], backup: str | None) -> None:
        self.places = enabled(Placement(cluster).places.values())
        self.backup: Place | None = None
        if backup is None:
            return
        node = find_backup(cluster, backup)
        self.backup = next((place for place in self.places if place.node is node), None) or Place(node)

    def choose(self, server: ServerSnapshot) -> Place | None:
        """Return the backup node if it has capacity, or else the node with the most free memory, and reserve it.

        With None, the cloud chooses, and may have capacity when the action is executed.
        """
        if self.backup and self.backup.fits(server):
            best: Place | None = self.backup
        else:
            fitting = [place for place in self.places if place.fits(server)]
            best = max(fitting, key=lambda place: place.free_memory, default=None)
        if best:
            best.take(server)
        return best


def evacuate(
    solution: Solution, node: NodeSnapshot, destinations: Destinations, parameters: Mapping[str, Any]
) -> None:
    """Add the actions for one node: it is disabled, fenced if requested, and then evacuated."""
    servers = servers_to_evacuate(node, parameters)
    before: list[int] = []
    name_input = {"resource_name": node.hostname}
    if node.is_enabled:
        reason = {"state": "disabled", "disabled_reason": REASON, "revertible": False}
        solution.add("change_nova_service_state", {**name_input, **reason}, resource_id=str(node.uuid))
        before = [len(solution.actions) - 1]
    if servers and parameters["fencing"] == POWER_OFF and not node.is_known_to_be_off:
        fence = {"state": "off", "fence": True}
        solution.add("change_node_power_state", {**name_input, **fence}, resource_id=str(node.uuid), after=before)
        before = [len(solution.actions) - 1]
    places = [destinations.choose(server) for server in servers]
    backup = destinations.backup
    if backup and not backup.node.is_enabled and backup in places:
        solution.enable(backup.node)
        before.append(find_enable_action(solution, backup.node))
    for server, place in zip(servers, places, strict=True):
        target = {"destination_node": place.hostname} if place else {}
        fencing = {"fencing": CONFIRMED} if parameters["fencing"] == CONFIRMED else {}
        details = {"resource_name": server.name, "source_node": node.hostname, **target, **fencing}
        solution.add("evacuate", details, resource_id=str(server.uuid), after=before)


def find_enable_action(solution: Solution, node: NodeSnapshot) -> int:
    """Return the position of the action that enables a node, which is added once for all failed nodes."""
    return next(
        position
        for position, action in enumerate(solution.actions)
        if action.action_type == "change_nova_service_state"
        and action.input_parameters["resource_id"] == str(node.uuid)
    )
