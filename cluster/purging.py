"""Which of the rows of clusters may be removed for good: those that were deleted, and that no row that stays needs."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from cluster.models import Cluster, Node, Policy, PolicyBinding, Profile


def removable(cutoff: datetime) -> dict[str, QuerySet[Any]]:
    """Return what was deleted until then, by what people call it, in an order in which it can be removed."""
    nodes = expired(Node, cutoff)
    # Bindings go with their cluster.
    clusters = expired(Cluster, cutoff).exclude(refers("cluster", Node, nodes))
    bindings = expired(PolicyBinding, cutoff) | PolicyBinding.objects.filter(cluster__in=clusters.values("pk"))
    policies = expired(Policy, cutoff).exclude(refers("policy", PolicyBinding, bindings))
    profiles = expired(Profile, cutoff).exclude(refers("profile", Node, nodes) | refers("profile", Cluster, clusters))
    return {
        "Nodes": nodes,
        "Clusters": clusters,
        "Policy Bindings": expired(PolicyBinding, cutoff),
        "Policies": policies,
        "Profiles": profiles,
    }


def expired(model: Any, cutoff: datetime) -> QuerySet[Any]:
    found: QuerySet[Any] = model.objects.filter(deleted_at__lte=cutoff)
    return found


def refers(column: str, model: Any, going: QuerySet[Any]) -> Exists:
    """Ask whether a row of this model refers to the outer one, and stays."""
    return Exists(model.objects.filter(**{column: OuterRef("pk")}).exclude(pk__in=going.order_by().values("pk")))
