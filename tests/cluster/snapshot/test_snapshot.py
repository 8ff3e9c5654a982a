"""The snapshot of the cloud that strategies read."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cluster.models import Server, StorageNode
from cluster.snapshot import AggregateSnapshot, ClusterSnapshot
from tests.builders import make_aggregate, make_node, make_pool, make_server, make_volume, make_volume_type

pytestmark = pytest.mark.django_db


def test_node_has_its_servers() -> None:
    make_server("web-1", make_node("compute1"))
    [server] = ClusterSnapshot.load().nodes["compute1"].servers
    assert (server.name, server.is_active, server.watcher_exclude) == ("web-1", True, False)


def test_pending_servers_are_listed_by_age() -> None:
    now = timezone.now()
    for name, age in (("young", 1), ("old", 9), ("older", 10)):
        make_server(name, state="pending", created_at=now - timedelta(minutes=age))
    make_server("in error", state="error")
    Server.objects.filter(pk=make_server("deleted", state="pending").pk).soft_delete()
    cluster = ClusterSnapshot.load()
    assert [server.name for server in cluster.waiting] == ["older", "old", "young"]
    assert cluster.servers == []


def test_free_capacity_is_the_total_capacity_minus_used_capacity() -> None:
    node = make_node(vcpus=10, vcpu_reserved=2, vcpu_ratio=2.0)
    make_server("web-1", node, vcpus=3)
    assert ClusterSnapshot.load().nodes["compute1"].free_vcpus == 13


def test_migrating_server_uses_capacity_on_its_destination() -> None:
    make_server("web-1", make_node("compute1"), destination=make_node("compute2", memory=4096), memory=1024)
    assert ClusterSnapshot.load().nodes["compute2"].free_memory == 3072


def test_deleted_servers_and_nodes_are_omitted() -> None:
    node, gone = make_node("compute1"), make_node("compute2")
    make_server("web-1", gone)
    deleted = make_server("web-2", node)
    type(node).objects.filter(pk=gone.pk).soft_delete()
    type(deleted).objects.filter(pk=deleted.pk).soft_delete()
    cluster = ClusterSnapshot.load()
    assert (list(cluster.nodes), cluster.servers) == (["compute1"], [])


def test_node_has_its_zone_power_state_and_aggregates() -> None:
    node = make_node("compute1", zone="az2", power_state="off")
    ssd = make_aggregate(7, "ssd", node, metadata={"ssd": "true"})
    make_aggregate(8, "empty")
    loaded = ClusterSnapshot.load().nodes["compute1"]
    assert (loaded.zone, loaded.power_state) == ("az2", "off")
    assert loaded.aggregates == [AggregateSnapshot(7, "ssd", {"ssd": "true"}, ssd.uuid)]


def test_pool_has_its_volumes_and_their_attachments() -> None:
    server = make_server("web-1", make_node())
    volume = make_volume("data", make_pool("a@lvm#one"), size=5, attached_to=[server])
    [loaded] = ClusterSnapshot.load().storage.pools["a@lvm#one"].volumes
    [attachment] = volume.attachments.all()
    assert (loaded.host, loaded.size, loaded.status) == ("a@lvm#one", 5, "in-use")
    assert loaded.attachments == [{"server_id": str(server.uuid), "attachment_id": str(attachment.uuid)}]


def test_attachments_to_deleted_servers_are_omitted() -> None:
    server = make_server("web-1", make_node())
    make_volume("data", make_pool(), attached_to=[server])
    Server.objects.soft_delete()
    assert [volume.attachments for volume in ClusterSnapshot.load().storage.volumes] == [[]]


def test_pool_serves_volume_types_of_its_storage_node_and_volumes_without_type() -> None:
    make_pool("a@lvm#one", volume_types=[make_volume_type("fast"), make_volume_type("big")])
    storage = ClusterSnapshot.load().storage
    [pool] = storage.pools.values()
    assert storage.nodes["a@lvm"].volume_type == ["big", "fast"]
    assert [storage.serves(pool, kind) for kind in ("fast", None, "slow")] == [True, True, False]


def test_deleted_storage_is_omitted() -> None:
    make_volume("kept", make_pool("a@lvm#one"))
    make_volume("gone", make_pool("b@lvm#one"))
    StorageNode.objects.filter(host="b@lvm").soft_delete()
    assert [volume.name for volume in ClusterSnapshot.load().storage.volumes] == ["kept"]


@pytest.mark.parametrize("size", [1, 10])
def test_cloud_is_read_in_ten_queries(django_assert_num_queries: Any, size: int) -> None:
    for number in range(size):
        node = make_node(f"compute{number}")
        make_aggregate(number, f"aggregate-{number}", node)
        pool = make_pool(f"a@lvm-{number}#one", volume_types=[make_volume_type(f"type-{number}")])
        make_volume(f"volume-{number}", pool, attached_to=[make_server(f"web-{number}", node)])
        make_server(f"waits-{number}", state="pending")
    with django_assert_num_queries(10):
        cluster = ClusterSnapshot.load()
    assert sum(node.used_vcpus for node in cluster.nodes.values()) == 2 * size
    assert len(cluster.storage.volumes) == len(cluster.waiting) == size
