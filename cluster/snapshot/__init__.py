"""Snapshots of the cloud for strategies."""

from cluster.snapshot.cloud import AggregateSnapshot, ClusterSnapshot, NodeSnapshot, ServerSnapshot

__all__ = [
    "AggregateSnapshot",
    "ClusterSnapshot",
    "NodeSnapshot",
    "ServerSnapshot",
]
