"""The rows of clusters and stacks that may be removed for good: deleted ones, to which no row refers."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from cluster.models import Cluster, Node, Policy, PolicyBinding, Profile, Stack, StackResource
from cluster.stacks.templates.templates import DEEPEST


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
        "Stack Resources": expired(StackResource, cutoff),
        "Stacks": expired(Stack, cutoff),
    }


def order_removable(cutoff: datetime) -> list[QuerySet[Any]]:
    """Return what `removable` does so that each row, when its turn comes, is one that no other needs.

    What is in stacks within stacks goes level by level, the innermost first: each query finds what those before left.
    """
    found = removable(cutoff)
    within = Exists(Stack.objects.filter(parent_resource=OuterRef("pk")))
    below = Exists(Stack.objects.filter(root=OuterRef("pk")))
    parts = Exists(StackResource.objects.filter(stack=OuterRef("pk")))
    level = [found.pop("Stack Resources").exclude(within), found.pop("Stacks").exclude(below | parts)]
    return [*found.values(), *level * (DEEPEST + 1)]


def expired(model: Any, cutoff: datetime) -> QuerySet[Any]:
    found: QuerySet[Any] = model.objects.filter(deleted_at__lte=cutoff)
    return found


def refers(column: str, model: Any, going: QuerySet[Any]) -> Exists:
    """Return the condition that a row of this model refers to the outer row, and is not going to be removed itself."""
    return Exists(model.objects.filter(**{column: OuterRef("pk")}).exclude(pk__in=going.order_by().values("pk")))
