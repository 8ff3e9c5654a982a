"""A strategy that replaces or recovers objects that are marked as unhealthy: resources of stacks, servers, nodes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any
from uuid import UUID

from audits import messages
from audits.strategies.base import HEALTH, Solution, Strategy
from cluster.models import Server, StackStatus
from cluster.models.stacks import IN_PROGRESS
from cluster.snapshot import ClusterSnapshot
from cluster.snapshot.health import StackHealth, UnhealthyPart
from watcher_site.refusals import Invalid

CAN_BE_REBUILT = frozenset({Server.State.ACTIVE, Server.State.STOPPED, Server.State.ERROR})


class ReplaceUnhealthy(Strategy):
    """Propose one action for each marked object (docs/strategies.md, "Unhealthy resources").

    A resource is replaced after the resources that it depends on. A marked stack is updated, which replaces all of its
    resources. Objects with an operation in progress are ignored until the next run.
    """

    name = "replace_unhealthy"
    display_name = "Replace what is unhealthy"
    goal = "stack_health"
    planner = "explicit"
    distinguished_by = ("stacks",)
    schema = {
        "type": "object",
        "properties": {
            "stacks": {
                "description": "The UUIDs or names of root stacks. By default all stacks, and servers and nodes, too.",
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "uniqueItems": True,
            },
            "replace_failed": {
                "description": "Whether to replace servers of stacks that failed without being marked, too.",
                "type": "boolean",
                "default": False,
            },
            "rebuild_servers": {
                "description": "Whether to rebuild marked servers without a stack. The data on their disks is lost.",
                "type": "boolean",
                "default": True,
            },
            "recover_nodes": {
                "description": "Whether to recover marked nodes, in clusters or without one.",
                "type": "boolean",
                "default": True,
            },
        },
    }

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return (HEALTH,)

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        solution, health = Solution(), cluster.health
        identifiers = parameters.get("stacks")
        unhealthy = 0
        for stack in choose_stacks(health.stacks, identifiers):
            unhealthy += add_recoveries(solution, stack, parameters["replace_failed"])
        if identifiers is None and parameters["rebuild_servers"]:
            unhealthy += len(health.servers)
            add_rebuilds(solution, health.servers)
        if identifiers is None and parameters["recover_nodes"]:
            unhealthy += len(health.nodes)
            add_actions(solution, "NODE_RECOVER", health.nodes)
        solution.indicators = {
            "unhealthy_resources_count": unhealthy,
            "replaced_resources_count": len(solution.actions),
        }
        return solution


def choose_stacks(stacks: Sequence[StackHealth], identifiers: Sequence[str] | None) -> Sequence[StackHealth]:
    """Return the stacks with these UUIDs or names, by default all. Raises: `Invalid` for an unknown one."""
    if identifiers is None:
        return stacks
    known_identifiers = {identifier for stack in stacks for identifier in (str(stack.uuid), stack.name)}
    if unknown := [identifier for identifier in identifiers if identifier not in known_identifiers]:
        raise Invalid(messages.NO_STACK.fill(name=unknown[0]))
    return [stack for stack in stacks if {str(stack.uuid), stack.name}.intersection(identifiers)]


def add_recoveries(solution: Solution, stack: StackHealth, replace_failed: bool) -> int:
    """Add the actions for one stack, and return the number of its unhealthy parts."""
    if stack.is_marked:
        if not stack.is_occupied:
            solution.add("update_stack", {"resource_name": stack.name}, resource_id=str(stack.uuid))
        return 1
    parts = [*stack.marked, *(stack.broken if replace_failed else ())]
    if stack.status not in (*IN_PROGRESS, StackStatus.DELETE_FAILED):
        add_replacements([part for part in parts if not part.is_occupied], solution)
    return len(parts)


def add_replacements(parts: Sequence[UnhealthyPart], solution: Solution) -> None:
    """Add the replacement of each resource, after those that the resource, or one that contains it, depends on."""
    inside: dict[UUID, list[UUID]] = defaultdict(list)
    for part in parts:
        for uuid in (part.uuid, *part.within):
            inside[uuid].append(part.uuid)
    before = {
        part.uuid: [uuid for uuid_before in part.depends_on for uuid in inside.get(uuid_before, ())] for part in parts
    }
    by_uuid = {part.uuid: part for part in parts}
    positions: dict[UUID, int] = {}
    for uuid in TopologicalSorter(before).static_order():
        part = by_uuid[uuid]
        inputs = {"resource_name": part.name, "expected_status": part.status}
        positions[uuid] = len(solution.actions)
        after = [positions[uuid_before] for uuid_before in before[uuid]]
        solution.add("replace_resource", inputs, resource_id=str(uuid), after=after)


def add_rebuilds(solution: Solution, servers: Sequence[UnhealthyPart]) -> None:
    add_actions(solution, "rebuild", [server for server in servers if server.status in CAN_BE_REBUILT])


def add_actions(solution: Solution, action_type: str, parts: Sequence[UnhealthyPart]) -> None:
    for part in parts:
        if not part.is_occupied:
            solution.add(action_type, {"resource_name": part.name}, resource_id=str(part.uuid))
