"""The status of a cluster, from the status of its nodes."""

from django.db.models import Count, Q

from cluster.models import Cluster, Node
from cluster.models.clusters import UNLIMITED

Status = Cluster.Status


def settle(cluster: Cluster, reason: str) -> None:
    """Set a cluster's status to ACTIVE, WARNING or ERROR by the number of its ACTIVE nodes. It is not saved.

    Args:
        reason: contains ``{}``, which is replaced by a description of the nodes.
    """
    active = cluster.members().aggregate(active=Count("pk", filter=Q(status=Node.Status.ACTIVE)))["active"]
    status, words = judge(cluster, active)
    cluster.settle(status, reason.format(words))


def judge(cluster: Cluster, active: int) -> tuple[Cluster.Status, str]:
    """Return the status of a cluster with so many ACTIVE nodes, and why."""
    number = f"number of active nodes is {active}"
    if active < cluster.min_size:
        return Status.ERROR, f"{number}, below min_size ({cluster.min_size})"
    if active < cluster.desired_capacity:
        return Status.WARNING, f"{number}, below desired_capacity ({cluster.desired_capacity})"
    if cluster.max_size != UNLIMITED and active > cluster.max_size:
        return Status.WARNING, f"{number}, above max_size ({cluster.max_size})"
    if active > cluster.desired_capacity:
        return Status.ACTIVE, f"{number}, above desired_capacity ({cluster.desired_capacity})"
    return Status.ACTIVE, f"{number}, as desired_capacity ({cluster.desired_capacity}) says"
