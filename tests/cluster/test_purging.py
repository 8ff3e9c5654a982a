"""``manage.py purge`` removes deleted objects of the cloud, clusters and stacks when no row refers to them."""

from uuid import uuid4

import pytest

from audits.demonstration import load_demonstration
from cluster.models import (
    Cluster,
    ComputeNode,
    Flavor,
    HostAggregate,
    Lock,
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
from tests.audits.test_purge import delete, purge
from tests.builders import make_cluster, make_node, make_policy, make_pool, make_server

pytestmark = pytest.mark.django_db


def test_deleted_servers_and_volumes_are_removed_with_their_attachments() -> None:
    server, volume = make_server(), Volume.objects.create(name="data", size=1, pool=make_pool())
    VolumeAttachment.objects.create(server=server, volume=volume)
    present = make_server("web-2")
    delete(server, volume, days=2)
    purge()
    assert Server.objects.get() == present
    assert (Volume.objects.count(), VolumeAttachment.objects.count()) == (0, 0)


def test_server_that_was_just_deleted_is_kept_for_late_messages_of_the_cloud() -> None:
    server = make_server()
    delete(server)
    purge()
    assert Server.objects.get() == server


def make_flavor(name: str = "small") -> Flavor:
    return Flavor.objects.create(name=name, vcpus=1, memory=512, disk=1)


def count_infrastructure() -> list[int]:
    return [model.objects.count() for model in (ComputeNode, Flavor, Pool)]


def test_deleted_compute_nodes_flavors_and_pools_are_removed() -> None:
    node, flavor, pool = make_node(), make_flavor(), make_pool()
    HostAggregate.objects.create(pk=1, name="fast").nodes.add(node)
    delete(node, flavor, pool, days=2)
    make_node("compute2")
    make_flavor("large")
    purge()
    assert (count_infrastructure(), HostAggregate.objects.get().nodes.count()) == ([1, 1, 0], 0)


def test_deleted_compute_node_flavor_and_pool_are_removed_with_deleted_rows_that_refer_to_them() -> None:
    node, flavor, pool = make_node(), make_flavor(), make_pool()
    server = make_server(node=node, new_flavor=flavor)
    volume = Volume.objects.create(name="data", size=1, pool=pool)
    delete(node, flavor, pool, server, volume, days=2)
    make_node("compute2")
    assert "5 removed" in purge()
    assert count_infrastructure() == [1, 0, 0]


def test_deleted_compute_node_flavor_and_pool_are_kept_while_rows_refer_to_them() -> None:
    node, target, flavor, pool = make_node(), make_node("compute2"), make_flavor(), make_pool()
    make_node("compute3")
    make_server(node=node, destination=target, new_flavor=flavor)
    Volume.objects.create(name="data", size=1, pool=pool)
    delete(node, target, flavor, pool, days=2)
    purge()
    assert count_infrastructure() == [3, 1, 1]


def make_storage() -> tuple[Pool, VolumeType, HostAggregate]:
    pool, aggregate = make_pool(), HostAggregate.objects.create(pk=1, name="fast")
    volume_type = VolumeType.objects.create(name="ssd")
    pool.storage_node.volume_types.add(volume_type)
    return pool, volume_type, aggregate


def count_storage() -> list[int]:
    return [model.objects.count() for model in (StorageNode, VolumeType, HostAggregate)]


def test_deleted_storage_nodes_volume_types_and_host_aggregates_are_removed() -> None:
    pool, volume_type, aggregate = make_storage()
    aggregate.nodes.add(make_node())
    delete(pool, pool.storage_node, volume_type, aggregate, days=2)
    VolumeType.objects.create(name="hdd")
    assert "4 removed" in purge()
    assert (count_storage(), ComputeNode.objects.count()) == ([0, 1, 0], 1)


def test_deleted_storage_node_and_volume_type_are_kept_while_rows_refer_to_them() -> None:
    pool, volume_type, _ = make_storage()
    Volume.objects.create(name="data", size=1, volume_type=volume_type)
    delete(pool.storage_node, volume_type, days=2)
    purge()
    assert count_storage() == [1, 1, 1]


def test_deleted_storage_node_is_kept_with_a_deleted_pool_of_a_volume() -> None:
    pool, _, _ = make_storage()
    Volume.objects.create(name="data", size=1, pool=pool)
    delete(pool, pool.storage_node, days=2)
    purge()
    assert (StorageNode.objects.count(), Pool.objects.count()) == (1, 1)


def test_storage_node_volume_type_and_host_aggregate_that_were_just_deleted_are_kept() -> None:
    pool, volume_type, aggregate = make_storage()
    delete(pool, pool.storage_node, volume_type, aggregate)
    purge()
    assert count_storage() == [1, 1, 1]


def test_compute_node_flavor_and_pool_that_were_just_deleted_are_kept() -> None:
    delete(make_node(), make_flavor(), make_pool())
    make_node("compute2")
    purge()
    assert count_infrastructure() == [2, 1, 1]


def test_newest_compute_node_is_kept_so_that_a_deleted_demonstration_is_not_loaded_again() -> None:
    delete(make_node(), make_node("compute2"), days=2)
    purge()
    assert ComputeNode.objects.get().hostname == "compute2"
    assert load_demonstration() is None


def test_deleted_cluster_is_removed_with_its_nodes_policies_and_profile() -> None:
    cluster, policy = make_cluster(size=2), make_policy()
    binding = PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=1)
    Lock.objects.create(cluster=cluster, action=uuid4(), is_exclusive=True)
    delete(cluster, policy, cluster.profile, binding, *cluster.nodes.all())
    purge()
    for model in (Node, Cluster, Policy, PolicyBinding, Profile, Lock):
        assert not model.objects.exists()


def test_deleted_policy_binding_of_a_deleted_cluster_is_counted_as_removed() -> None:
    cluster, policy = make_cluster(size=0), make_policy()
    delete(cluster, PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=1))
    lines = purge().splitlines()
    assert (lines[-2].split(), lines[-1]) == (["Total", "2"], "2 removed")


def test_deleted_profile_and_policy_of_a_cluster_are_kept() -> None:
    cluster, policy = make_cluster(size=1), make_policy()
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=1)
    delete(policy, cluster.profile)
    purge()
    assert (Policy.objects.count(), Profile.objects.count(), Node.objects.count()) == (1, 1, 1)


def test_deleted_cluster_with_a_node_is_kept() -> None:
    cluster = make_cluster(size=1)
    delete(cluster)
    purge()
    assert Cluster.objects.exists()


def test_deleted_stack_is_removed_with_its_nested_stacks_and_resources() -> None:
    kept = Stack.objects.create(name="kept")
    StackResource.objects.create(stack=kept, name="web", type="server")
    root = Stack.objects.create(name="shop")
    group = StackResource.objects.create(stack=root, name="web", type="scaling_group")
    nested = Stack.objects.create(name="shop-web", root=root, parent_resource=group)
    member = StackResource.objects.create(stack=nested, name="one", type="server")
    Lock.objects.create(stack=root, action=uuid4(), is_exclusive=True)
    delete(root, group, nested, member)
    assert "1 removed" in purge("--max-number", "1")
    assert (Stack.objects.count(), StackResource.objects.count()) == (3, 2)
    purge()
    assert list(Stack.objects.all()) == [kept]
    assert StackResource.objects.get().stack == kept
