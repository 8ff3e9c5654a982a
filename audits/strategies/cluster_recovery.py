"""A strategy that recovers unhealthy nodes of clusters, and creates missing ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from audits.strategies.base import CLUSTERS, Solution, Strategy
from cluster.models import Cluster
from cluster.snapshot import ClusterSnapshot
from cluster.snapshot.cloud import NodeClusterSnapshot
from watcher_site.refusals import Invalid

# The nodes of these clusters are not yet created, or are being deleted.
IGNORED = (Cluster.Status.INIT, Cluster.Status.DELETING)


class ClusterRecovery(Strategy):
    """Check and then recover unhealthy clusters.

    A CONTINUOUS audit replaces the health manager of OpenStack's cluster service. Clusters with an operation in
    progress are ignored until the next run.
    """

    name = "cluster_recovery"
    display_name = "Cluster Recovery Strategy"
    goal = "cluster_health"
    planner = "sequences"
    distinguished_by = ("clusters",)
    schema = {
        "type": "object",
        "properties": {
            "clusters": {
                "description": "The UUIDs or names of the clusters. By default all clusters.",
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "uniqueItems": True,
            },
            "operation": {
                "description": "The operation on nodes that do not run. By default that of the health policy.",
                "type": "string",
                "enum": ["REBOOT", "REBUILD", "RECREATE"],
            },
            "restore_capacity": {
                "description": "Whether to create nodes that are missing from the desired capacity.",
                "type": "boolean",
                "default": True,
            },
        },
    }

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return (CLUSTERS,)

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        solution, restores = Solution(), parameters["restore_capacity"]
        kept = choose_clusters(cluster.clusters, parameters.get("clusters"))
        inputs = {"check_capacity": True} if restores else {}
        if "operation" in parameters:
            inputs |= {"operation": parameters["operation"]}
        recovered = [one for one in kept if needs_recovery(one, restores)]
        for one in recovered:
            named = {"resource_name": one.name}
            solution.add("CLUSTER_CHECK", named, resource_id=str(one.uuid))
            solution.add("CLUSTER_RECOVER", {**named, **inputs}, resource_id=str(one.uuid))
        solution.indicators = {
            "clusters_count": len(kept),
            "recovered_clusters_count": len(recovered),
            "broken_nodes_count": sum(len(one.broken) for one in recovered),
            "missing_nodes_count": sum(one.missing for one in recovered),
        }
        return solution


def choose_clusters(
    clusters: Sequence[NodeClusterSnapshot], wanted: Sequence[str] | None
) -> Sequence[NodeClusterSnapshot]:
    """Return the clusters with these UUIDs or names, by default all. Raises: `Invalid` for an unknown one."""
    if wanted is None:
        return clusters
    names = {identifier.lower() for identifier in wanted}
    known = {name for one in clusters for name in (str(one.uuid), one.name.lower())}
    if strays := [identifier for identifier in wanted if identifier.lower() not in known]:
        raise Invalid(f"clusters: there is no cluster {strays[0]}.")
    return [one for one in clusters if names & {str(one.uuid), one.name.lower()}]


def needs_recovery(cluster: NodeClusterSnapshot, restores: bool) -> bool:
    if cluster.is_occupied or cluster.status in IGNORED:
        return False
    return bool(cluster.broken) or (restores and cluster.missing > 0)
