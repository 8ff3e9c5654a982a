"""The cloud as it would be: a model in memory, on which operations are foreseen and nothing is done."""

from cluster.simulated.cloud import ForeseenCloud, foreseen_cloud

__all__ = ["ForeseenCloud", "foreseen_cloud"]
