"""The demonstration's cluster: servers of its cloud as members, and a policy that says which go first."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

from django.db.models import Q
from django.utils import timezone

from cluster.models import Cluster, Node, Policy, PolicyBinding, Profile, Server
from cluster.policies.base import PolicyType
from watcher_site import plugins

NAME = "web"
SIZE = 4
PROFILE: dict[str, Any] = {"flavor": "small", "metadata": {"tier": "front"}}
POLICY = "senlin.policy.deletion-1.1"
# What the UUIDs of its clusters and nodes begin with: people change the names, and each loading brings others.
BEGINNING = "d3305bf1"
OWN = UUID(BEGINNING + 24 * "0"), UUID(BEGINNING + 24 * "f")


def make_cluster() -> Cluster:
    """Make the first web servers the nodes of a cluster. A profile and a policy that exist are not changed.

    The caller has begun a transaction.
    """
    profile, _ = Profile.objects.get_or_create(name="web server", deleted_at=None, defaults={"spec": PROFILE})
    cluster = Cluster.objects.create(
        uuid=make_uuid(),
        name=NAME,
        profile=profile,
        min_size=2,
        max_size=8,
        desired_capacity=SIZE,
        next_index=SIZE + 1,
        metadata={"team": "web shop"},
        status=Cluster.Status.ACTIVE,
        init_at=timezone.now(),
    )
    Node.objects.bulk_create(make_member(cluster, index) for index in range(1, SIZE + 1))
    if policy_type := plugins.load("POLICY_TYPES").get(POLICY):
        attach(cluster, policy_type)
    return cluster


def make_member(cluster: Cluster, index: int) -> Node:
    name = f"{NAME}-{index}"
    server = Server.objects.present().get(name=name)
    return Node(
        uuid=make_uuid(),
        name=name,
        profile=cluster.profile,
        cluster=cluster,
        index=index,
        status=Node.Status.ACTIVE,
        physical_id=server.uuid,
        init_at=cluster.init_at,
    )


def make_uuid() -> UUID:
    return UUID(BEGINNING + uuid4().hex[len(BEGINNING) :])


def attach(cluster: Cluster, policy_type: type[PolicyType]) -> None:
    policy, _ = Policy.objects.get_or_create(
        name="oldest first", deleted_at=None, defaults={"type": POLICY, "spec": {"criteria": "OLDEST_FIRST"}}
    )
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=policy_type.priority)


def find_clusters() -> Any:
    """Return the demonstration's clusters that are there."""
    return Cluster.objects.present().filter(uuid__range=OWN)


def find_nodes() -> Any:
    """Return the nodes that are there, and that it brought, or that were made for its cluster."""
    return Node.objects.present().filter(Q(uuid__range=OWN) | Q(cluster__in=find_clusters()))


def strange_clusters() -> Iterator[str]:
    """Yield the clusters and nodes that people made for themselves."""
    for own in (find_clusters(), find_nodes()):
        others = own.model.objects.present().exclude(pk__in=own)
        yield from (f"{own.model._meta.verbose_name} {row}" for row in others)


def delete_clusters() -> None:
    """Take away the demonstration's cluster and nodes, which only stand for servers that go. Their actions stay."""
    find_nodes().soft_delete()
    PolicyBinding.objects.filter(cluster__in=find_clusters()).soft_delete()
    find_clusters().soft_delete()


def servers_of_nodes() -> set[UUID]:
    """Return the UUIDs of the servers that were created for nodes: a node's UUID begins their token."""
    nodes = {str(uuid) for uuid in Node.objects.values_list("uuid", flat=True)}
    created = Server.objects.exclude(token="").values_list("uuid", "token")
    return {uuid for uuid, token in created if token.partition("/")[0] in nodes}
