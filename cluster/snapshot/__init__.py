"""The cloud in memory, as strategies see it."""

from cluster.snapshot.cloud import AggregateSnapshot, ClusterSnapshot, NodeSnapshot, ServerSnapshot

__all__ = [
    "AggregateSnapshot",
    "ClusterSnapshot",
    "NodeSnapshot",
    "ServerSnapshot",
]
