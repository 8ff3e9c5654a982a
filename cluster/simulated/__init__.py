"""The simulated cloud of preflights: a model in memory, on which operations change nothing else."""

from cluster.simulated.cloud import SimulatedCloud, simulated_cloud

__all__ = ["SimulatedCloud", "simulated_cloud"]
