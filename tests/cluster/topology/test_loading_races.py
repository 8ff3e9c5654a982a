"""A topology that is loaded while the embedded cloud is at work: one waits for the other, and not both."""

import pytest

from cluster.drivers.base import cloud
from cluster.drivers.embedded import cloud as embedded
from cluster.drivers.embedded import storage
from cluster.models import Server, Volume
from cluster.topology.loading import load_topology
from tests.builders import make_node, make_pool, make_server, make_volume
from tests.interleaving import Rival, interrupt_before

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def test_a_topology_is_loaded_while_a_server_is_being_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node("source"))
    target = make_node("target")
    larger = {"hostname": "target", "vcpus": 32, "memory": 65536, "disk": 1000}
    loading = Rival(lambda: load_topology({"compute_nodes": [larger]}))
    interrupt_before(monkeypatch, embedded, "choose_destination", loading)
    cloud().live_migrate(str(server.uuid), "target")
    assert (Server.objects.get().node, loading.result().changed) == (target, 1)


def test_a_topology_is_loaded_while_a_volume_is_being_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    volume = make_volume("data", make_pool("a@lvm#one"))
    target = make_pool("b@lvm#one")
    larger = {"name": "b@lvm#one", "total_capacity_gb": 500}
    loading = Rival(lambda: load_topology({"pools": [larger]}))
    interrupt_before(monkeypatch, storage, "lock_pools", loading)
    cloud().migrate_volume(str(volume.uuid), "b@lvm#one")
    assert (Volume.objects.get().pool, loading.result().changed) == (target, 1)
