"""A strategy that provides capacity for PENDING servers, oldest first, in one plan.

See docs/strategies.md, "Capacity for servers that wait".
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from audits.strategies.base import Solution, Strategy
from audits.strategies.capacity.search import CapacitySearch, Step, cost
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

WAITING = "PENDING"


class MakeRoom(Strategy):
    """Build PENDING servers, and move or delete other servers if necessary.

    Capacity is reserved in the order of waiting, so that small servers do not starve a large one. A server for which
    no capacity can be provided does not delay others, and is set to ERROR after `settings.PENDING_TIMEOUT`.
    """

    name = "make_room"
    display_name = "Make room for servers that wait"
    goal = "capacity"
    planner = "explicit"

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        search = CapacitySearch(cluster)
        waiting = [server for server in cluster.waiting if not server.watcher_exclude]
        unplaceable = [server for server in waiting if not search.find_capacity(server)]
        solution = Solution()
        add_steps(solution, search.steps)
        now = timezone.now()
        for server in unplaceable:
            if has_waited_enough(server, now):
                propose_reset(solution, server)
        freeing_steps = [step for step in search.steps if step.source]
        deletions, migrations = cost(freeing_steps)
        solution.indicators = {
            "waiting_servers_count": len(waiting),
            "served_servers_count": len(waiting) - len(unplaceable),
            "instance_migrations_count": migrations,
            "deleted_servers_count": deletions,
        }
        return solution


def add_steps(solution: Solution, steps: list[Step]) -> None:
    """Add the steps to the solution. The parents of a step are all earlier steps that leave its target."""
    after = dependencies(steps)
    needs = needed_for(steps, after)
    for step, predecessors, need in zip(steps, after, needs, strict=True):
        server = step.server
        parameters: dict[str, Any] = {"resource_name": server.name}
        if step.target:
            parameters["destination_node"] = step.target.hostname
        if step.source:
            parameters["needed_for"] = need
        if step.source is None:
            action_type, how = "rebuild", {"expected_status": WAITING}
        elif step.target is None:
            action_type, how = "delete_server", {}
        else:
            action_type, how = "migrate", {"migration_type": "live", "source_node": step.source.hostname}
        solution.add(action_type, {**parameters, **how}, resource_id=str(server.uuid), after=predecessors)


def dependencies(steps: list[Step]) -> list[list[int]]:
    """Return for each step the positions of the steps that must precede it.

    A server that moves to a node depends on all servers that leave the node earlier, so that the node has capacity in
    any order of the other steps.
    """
    departures: defaultdict[str, list[int]] = defaultdict(list)
    predecessors = []
    for position, step in enumerate(steps):
        predecessors.append(list(departures[step.target.hostname]) if step.target else [])
        if step.source:
            departures[step.source.hostname].append(position)
    return predecessors


def needed_for(steps: list[Step], after: list[list[int]]) -> list[list[str]]:
    """Return for each step the servers that depend on it, directly or through other steps."""
    needs: list[dict[str, None]] = [{} for _ in steps]
    for position in reversed(range(len(steps))):
        if steps[position].source is None:
            needs[position][str(steps[position].server.uuid)] = None
        for other in after[position]:
            needs[other].update(needs[position])
    return [list(reversed(need)) for need in needs]


def has_waited_enough(server: ServerSnapshot, now: datetime) -> bool:
    limit = settings.PENDING_TIMEOUT
    return bool(limit) and server.waiting_since is not None and server.waiting_since + limit <= now


def propose_reset(solution: Solution, server: ServerSnapshot) -> None:
    zone = f" in availability zone {server.pinned_az}" if server.pinned_az else ""
    size = f"{server.vcpus} VCPUs, {server.memory} MB of memory and {server.disk} GB of disk"
    reason = f"No capacity can be provided for {size}{zone}."[:255]
    how = {"state": "error", "reason": reason, "expected_status": WAITING, "resource_name": server.name}
    solution.add("reset_state", how, resource_id=str(server.uuid))
