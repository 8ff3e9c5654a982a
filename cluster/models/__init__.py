"""The cloud as tables, named as in the data models of the infra-optim API: memory in MB, disk in GB."""

from cluster.models.balancing import BalancingMember, BalancingPool, Draining
from cluster.models.clusters import Cluster, Policy, PolicyBinding, Profile
from cluster.models.compute import ComputeNode, ComputeNodeQuerySet, Flavor, HostAggregate, Server, ServerWait
from cluster.models.locks import Lock
from cluster.models.metrics import Sample
from cluster.models.nodes import Node
from cluster.models.quotas import ProjectQuota
from cluster.models.stacks import Stack, StackResource, StackStatus
from cluster.models.storage import Pool, StorageNode, Volume, VolumeAttachment, VolumeType
from cluster.models.synchronization import Synchronization
from cluster.models.trusts import Trust

__all__ = [
    "BalancingMember",
    "BalancingPool",
    "Cluster",
    "ComputeNode",
    "ComputeNodeQuerySet",
    "Draining",
    "Flavor",
    "HostAggregate",
    "Lock",
    "Node",
    "Policy",
    "PolicyBinding",
    "Pool",
    "Profile",
    "ProjectQuota",
    "Sample",
    "Server",
    "ServerWait",
    "Stack",
    "StackResource",
    "StackStatus",
    "StorageNode",
    "Synchronization",
    "Trust",
    "Volume",
    "VolumeAttachment",
    "VolumeType",
]
