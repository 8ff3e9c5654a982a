"""Synchronization with a real Nova, and operations on its servers."""

import pytest

from cluster.drivers.base import cloud
from cluster.models import ComputeNode, Server
from cluster.operations.synchronization import synchronize
from tests.openstack.configuration import COMPUTE_NODES, MEMORY, VCPUS
from tests.openstack.conftest import Nova

pytestmark = pytest.mark.openstack


def test_nodes_are_synchronized_with_capacities_and_zones(nova: Nova) -> None:
    rows = ComputeNode.objects.present().values_list(
        "hostname", "zone", "vcpus", "vcpu_ratio", "memory", "memory_mb_reserved", "memory_ratio"
    )
    zones = {host: zone or "nova" for host, zone in COMPUTE_NODES.items()}
    assert set(rows) == {(host, zone, VCPUS, 4.0, MEMORY, 512, 1.5) for host, zone in zones.items()}


def test_server_is_synchronized_with_its_node_and_size(nova: Nova) -> None:
    server = nova.boot("web", "cmp1", "small")
    synchronize()
    row = Server.objects.get(uuid=server)
    assert (row.name, row.node.hostname, row.state, row.vcpus, row.memory) == ("web", "cmp1", "active", 1, 2048)


def test_server_is_live_migrated(nova: Nova) -> None:
    server = nova.boot("web", "cmp1")
    cloud().live_migrate(server, "cmp2")
    assert (nova.show(server).compute_host, Server.objects.get(uuid=server).node.hostname) == ("cmp2", "cmp2")


def test_server_is_cold_migrated_and_the_migration_is_confirmed(nova: Nova) -> None:
    server = nova.boot("web", "cmp1")
    cloud().cold_migrate(server, "cmp2")
    assert (nova.show(server).compute_host, nova.show(server).status) == ("cmp2", "ACTIVE")
    assert [found.status for found in nova.migrations(server)] == ["confirmed"]


def test_server_is_resized_and_the_resize_is_confirmed(nova: Nova) -> None:
    server = nova.boot("web", "cmp1")
    cloud().resize(server, "small")
    assert (nova.show(server).flavor.original_name, nova.show(server).status) == ("small", "ACTIVE")
    assert (Server.objects.get(uuid=server).memory, Server.objects.get(uuid=server).state) == (2048, "active")
    assert [found.status for found in nova.migrations(server)] == ["confirmed"]


def test_server_is_stopped_and_started(nova: Nova) -> None:
    server = nova.boot("web", "cmp1")
    cloud().stop(server)
    assert (nova.show(server).status, Server.objects.get(uuid=server).state) == ("SHUTOFF", "stopped")
    cloud().start(server)
    assert (nova.show(server).status, Server.objects.get(uuid=server).state) == ("ACTIVE", "active")


def test_server_is_rebuilt_on_its_node(nova: Nova) -> None:
    server = nova.boot("web", "cmp1")
    cloud().rebuild_server(server)
    assert (nova.show(server).status, nova.show(server).compute_host) == ("ACTIVE", "cmp1")
    assert {found.action for found in nova.compute.server_actions(server)} == {"create", "rebuild"}


def test_compute_service_is_disabled_with_a_reason_and_enabled(nova: Nova) -> None:
    cloud().disable_compute_service("cmp1", "maintenance")
    [service] = nova.compute.services(binary="nova-compute", host="cmp1")
    node = ComputeNode.objects.get(hostname="cmp1")
    assert (service.status, service.disabled_reason) == ("disabled", "maintenance")
    assert (node.status, node.disabled_reason) == ("disabled", "maintenance")
    cloud().enable_compute_service("cmp1")
    assert nova.states()["cmp1"] == ("enabled", "up")
    assert ComputeNode.objects.get(hostname="cmp1").status == "enabled"
