"""Locks on clusters and nodes: what keeps two actions from being done to one of them at the same time.

Rows that one transaction locks are locked in one order, so that no two wait for each other: profiles and policies,
then clusters, then nodes.
"""

from django.db import models
from django.db.models import Q

from cluster.models.clusters import Cluster
from cluster.models.nodes import Node


class Lock(models.Model):
    """An action's hold on a cluster or on a node, alone, or shared with others that share it.

    A lock ends with its action: `actions.types.clusters.locking` decides whose still counts.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, related_name="locks")
    node = models.ForeignKey(Node, models.CASCADE, null=True, related_name="locks")
    action = models.UUIDField()
    is_exclusive = models.BooleanField()
    taken_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(cluster=None) ^ Q(node=None), name="lock_of_one_thing"),
            models.UniqueConstraint("cluster", "action", name="lock_of_cluster"),
            models.UniqueConstraint("node", "action", name="lock_of_node"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster or self.node} by action {self.action}"
