"""A strategy that recovers unhealthy nodes of clusters, and creates missing ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from audits import messages
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
        clusters = choose_clusters(cluster.clusters, parameters.get("clusters"))
        inputs = {"check_capacity": True} if restores else {}
        if "operation" in parameters:
            inputs |= {"operation": parameters["operation"]}
        recovered = [node_cluster for node_cluster in clusters if needs_recovery(node_cluster, restores)]
        for node_cluster in recovered:
            name_input = {"resource_name": node_cluster.name}
            solution.add("CLUSTER_CHECK", name_input, resource_id=str(node_cluster.uuid))
            solution.add("CLUSTER_RECOVER", {**name_input, **inputs}, resource_id=str(node_cluster.uuid))
        solution.indicators = {
            "clusters_count": len(clusters),
            "recovered_clusters_count": len(recovered),
            "broken_nodes_count": sum(len(node_cluster.broken) for node_cluster in recovered),
            "missing_nodes_count": sum(node_cluster.missing for node_cluster in recovered),
        }
        return solution


def choose_clusters(
    clusters: Sequence[NodeClusterSnapshot], identifiers: Sequence[str] | None
) -> Sequence[NodeClusterSnapshot]:
    """Return the clusters with these UUIDs or names, by default all. Raises: `Invalid` for an unknown one."""
    if identifiers is None:
        return clusters
    names = {identifier.lower() for identifier in identifiers}
    known_names = {name for node_cluster in clusters for name in (str(node_cluster.uuid), node_cluster.name.lower())}
    if unknown := [identifier for identifier in identifiers if identifier.lower() not in known_names]:
        raise Invalid(messages.NO_CLUSTER.fill(name=unknown[0]))
    return [node_cluster for node_cluster in clusters if names & {str(node_cluster.uuid), node_cluster.name.lower()}]


def needs_recovery(cluster: NodeClusterSnapshot, restores: bool) -> bool:
    if cluster.is_occupied or cluster.status in IGNORED:
        return False
    return bool(cluster.broken) or (restores and cluster.missing > 0)
