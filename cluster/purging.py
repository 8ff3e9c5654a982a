"""The rows of the cloud, clusters and stacks that a purge may remove: deleted ones without references."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils import timezone

from cluster.models import (
    Cluster,
    ComputeNode,
    Flavor,
    HostAggregate,
    Node,
    Policy,
    PolicyBinding,
    Pool,
    Profile,
    Server,
    Stack,
    StackResource,
    StorageNode,
    Volume,
    VolumeAttachment,
    VolumeType,
)
from cluster.stacks.templates.templates import MAX_DEPTH

# Late readings and messages of the cloud create no object whose row says that it was deleted.
LATEST_MESSAGE = timedelta(days=1)


def removable(cutoff: datetime) -> dict[str, QuerySet[Any]]:
    """Return the rows that were deleted until a time, by the title of the model, in an order of removal."""
    nodes = expired(Node, cutoff)
    # All bindings of a cluster are removed with it.
    clusters = expired(Cluster, cutoff).exclude(is_referenced("cluster", Node, nodes))
    bindings = expired(PolicyBinding, cutoff) | PolicyBinding.objects.filter(cluster__in=clusters.values("pk"))
    policies = expired(Policy, cutoff).exclude(is_referenced("policy", PolicyBinding, bindings))
    profiles = expired(Profile, cutoff).exclude(
        is_referenced("profile", Node, nodes) | is_referenced("profile", Cluster, clusters)
    )
    gone = min(cutoff, timezone.now() - LATEST_MESSAGE)
    servers, volumes = expired(Server, gone), expired(Volume, gone)
    pools = expired(Pool, gone).exclude(
        is_referenced("pool", Volume, volumes) | is_referenced("destination", Volume, volumes)
    )
    # The newest row shows that the cloud was filled: a demonstration that was deleted is not loaded again.
    newest = ComputeNode.objects.order_by("-pk").values("pk")[:1]
    return {
        # Attachments of removed servers and volumes are removed with them.
        "Attachments": expired(VolumeAttachment, gone),
        "Servers": servers,
        "Volumes": volumes,
        # Memberships of host aggregates are removed with the compute node.
        "Compute Nodes": expired(ComputeNode, gone)
        .filter(pk__lt=Subquery(newest))
        .exclude(is_referenced("node", Server, servers) | is_referenced("destination", Server, servers)),
        "Host Aggregates": expired(HostAggregate, gone),
        "Flavors": expired(Flavor, gone).exclude(is_referenced("new_flavor", Server, servers)),
        "Pools": pools,
        "Storage Nodes": expired(StorageNode, gone).exclude(is_referenced("storage_node", Pool, pools)),
        "Volume Types": expired(VolumeType, gone).exclude(is_referenced("volume_type", Volume, volumes)),
        "Nodes": nodes,
        # Before the clusters, with which the remaining ones are removed without being counted.
        "Policy Bindings": expired(PolicyBinding, cutoff),
        "Clusters": clusters,
        "Policies": policies,
        "Profiles": profiles,
        "Stack Resources": expired(StackResource, cutoff),
        "Stacks": expired(Stack, cutoff),
    }


def order_removable(cutoff: datetime) -> list[tuple[str, QuerySet[Any]]]:
    """Return the rows of `removable`, with their titles, in an order in which no row refers to a removed one.

    Nested stacks are removed level by level from the innermost, by queries that are evaluated in turn.
    """
    querysets = removable(cutoff)
    within = Exists(Stack.objects.filter(parent_resource=OuterRef("pk")))
    below = Exists(Stack.objects.filter(root=OuterRef("pk")))
    parts = Exists(StackResource.objects.filter(stack=OuterRef("pk")))
    conditions = {"Stack Resources": within, "Stacks": below | parts}
    level = [(title, querysets.pop(title).exclude(condition)) for title, condition in conditions.items()]
    return [*querysets.items(), *level * (MAX_DEPTH + 1)]


def expired(model: Any, cutoff: datetime) -> QuerySet[Any]:
    found: QuerySet[Any] = model.objects.filter(deleted_at__lte=cutoff)
    return found


def is_referenced(column: str, model: Any, going: QuerySet[Any]) -> Exists:
    """Return the condition that a row of this model refers to the outer row and is not removed itself."""
    return Exists(model.objects.filter(**{column: OuterRef("pk")}).exclude(pk__in=going.order_by().values("pk")))
