"""Loading a topology during operations of the embedded cloud: one waits for the other without a deadlock."""

import pytest

from cluster.drivers.base import cloud
from cluster.drivers.embedded import cloud as embedded
from cluster.drivers.embedded import storage
from cluster.models import Server, Volume
from cluster.topology.loading import load_topology
from tests.builders import make_node, make_pool, make_server, make_volume
from tests.interleaving import Rival, interrupt_before

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def test_topology_load_and_server_migration_at_the_same_time_both_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node("source"))
    target = make_node("target")
    larger = {"hostname": "target", "vcpus": 32, "memory": 65536, "disk": 1000}
    loading = Rival(lambda: load_topology({"compute_nodes": [larger]}))
    interrupt_before(monkeypatch, embedded, "choose_destination", loading)
    cloud().live_migrate(str(server.uuid), "target")
    assert (Server.objects.get().node, loading.result().changed) == (target, 1)


def test_topology_load_and_volume_migration_at_the_same_time_both_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    volume = make_volume("data", make_pool("a@lvm#one"))
    target = make_pool("b@lvm#one")
    larger = {"name": "b@lvm#one", "total_capacity_gb": 500}
    loading = Rival(lambda: load_topology({"pools": [larger]}))
    interrupt_before(monkeypatch, storage, "lock_pools", loading)
    cloud().migrate_volume(str(volume.uuid), "b@lvm#one")
    assert (Volume.objects.get().pool, loading.result().changed) == (target, 1)
