"""The demonstration's cluster: servers of its cloud as members, and a policy that says which go first."""

from typing import Any
from uuid import UUID

from django.utils import timezone

from cluster.models import Cluster, Node, Policy, PolicyBinding, Profile, Server
from cluster.policies.base import PolicyType
from watcher_site import plugins

NAME = "web"
SIZE = 4
PROFILE: dict[str, Any] = {"flavor": "small", "metadata": {"tier": "front"}}
POLICY = "senlin.policy.deletion-1.1"


def make_cluster() -> Cluster:
    """Have the first web servers be a cluster's nodes; profile and policy stay as they are, if people have them.

    In a transaction.
    """
    profile, _ = Profile.objects.get_or_create(name="web server", deleted_at=None, defaults={"spec": PROFILE})
    cluster = Cluster.objects.create(
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
        name=name,
        profile=cluster.profile,
        cluster=cluster,
        index=index,
        status=Node.Status.ACTIVE,
        physical_id=server.uuid,
        init_at=cluster.init_at,
    )


def attach(cluster: Cluster, policy_type: type[PolicyType]) -> None:
    policy, _ = Policy.objects.get_or_create(
        name="oldest first", deleted_at=None, defaults={"type": POLICY, "spec": {"criteria": "OLDEST_FIRST"}}
    )
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=policy_type.priority)


def delete_clusters() -> None:
    """Take away all clusters and nodes, which only stand for servers that go with them. Their actions stay."""
    Node.objects.present().soft_delete()
    PolicyBinding.objects.present().soft_delete()
    Cluster.objects.present().soft_delete()


def servers_of_nodes() -> set[UUID]:
    """Return the UUIDs of the servers that were created for nodes: a node's UUID begins their token."""
    nodes = {str(uuid) for uuid in Node.objects.values_list("uuid", flat=True)}
    created = Server.objects.exclude(token="").values_list("uuid", "token")
    return {uuid for uuid, token in created if token.partition("/")[0] in nodes}
