"""Locks on clusters, nodes, stacks and their resources, which prevent concurrent actions on the same object.

Transactions lock the rows of objects in one order, to avoid deadlocks: profiles and policies, then clusters, then
nodes, then stacks from the root, then resources. Plans and actions follow (docs/architecture.md, "Lock order").
"""

from django.db import models
from django.db.models import Q

from cluster.models.clusters import Cluster
from cluster.models.nodes import Node
from cluster.models.stacks import Stack, StackResource

LOCKED_OBJECTS = ("cluster", "node", "stack", "resource")


def is_on_one_object() -> Q:
    """Return the condition that a lock refers to exactly one object."""
    return Q.create(
        [
            Q(**{f"{name}__isnull": name != locked_object for name in LOCKED_OBJECTS})
            for locked_object in LOCKED_OBJECTS
        ],
        connector=Q.OR,
    )


class Lock(models.Model):
    """The lock of an action on a cluster, a node, a stack or a resource, exclusive or shared.

    A lock ends with its action: `actions.types.locking` decides which locks are still valid.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, related_name="locks")
    node = models.ForeignKey(Node, models.CASCADE, null=True, related_name="locks")
    stack = models.ForeignKey(Stack, models.CASCADE, null=True, related_name="locks")
    resource = models.ForeignKey(StackResource, models.CASCADE, null=True, related_name="locks")
    action = models.UUIDField()
    is_exclusive = models.BooleanField()
    taken_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=is_on_one_object(), name="lock_of_one_thing"),
            models.UniqueConstraint("cluster", "action", name="lock_of_cluster"),
            models.UniqueConstraint("node", "action", name="lock_of_node"),
            models.UniqueConstraint("stack", "action", name="lock_of_stack"),
            models.UniqueConstraint("resource", "action", name="lock_of_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster or self.node or self.stack or self.resource} by action {self.action}"
