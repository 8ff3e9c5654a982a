"""``manage.py sync_cluster`` writes the contents of a cloud to the tables."""

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from cluster.models import ComputeNode, Flavor, HostAggregate, Pool, Server, StorageNode, Synchronization, Volume
from tests.builders import make_aggregate
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.placement import inventory
from tests.cluster.emulator.server import PASSWORD, PROJECT, SERVICES, USER, Emulator

pytestmark = pytest.mark.django_db
VOLUME, OTHER_VOLUME = "21111111-1111-1111-1111-111111111111", "22222222-1111-1111-1111-111111111111"
FAST, ANY = "11111111-1111-1111-1111-111111111111", "12222222-1111-1111-1111-111111111111"


def sync() -> str:
    out = io.StringIO()
    call_command("sync_cluster", stdout=out)
    return out.getvalue()


def columns(row: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


def fill_storage(emulator: Emulator) -> None:
    emulator.cinder.add_type(FAST, "fast", "lvm")
    emulator.cinder.add_type(ANY, "any")
    emulator.cinder.add_pool("a@lvm#one", "lvm", 100, provisioned_capacity_gb=30, free_capacity_gb=70)
    emulator.cinder.add_pool("b@ceph#two", "ceph", "infinite")
    emulator.cinder.add_volume(VOLUME, "data", "a@lvm#one", volume_type="fast", size=30)


def test_output_counts_new_changed_unchanged_and_deleted_rows(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1")
    assert sync().splitlines() == ["4 new, 0 changed, 0 as they were, 0 gone"]


def test_second_synchronization_changes_nothing(emulator: Emulator) -> None:
    fill_storage(emulator)
    emulator.nova.add_aggregate(1, "ssd", "compute1", ssd="true")
    server = emulator.nova.add_server("web", "compute1")
    emulator.cinder.volumes[VOLUME]["attachments"] = [{"attachment_id": make_uuid("attachment"), "server_id": server}]
    sync()
    assert sync() == "0 new, 0 changed, 13 as they were, 0 gone\n"


def test_compute_node_has_the_capacity_reported_by_placement(emulator: Emulator) -> None:
    sync()
    node = ComputeNode.objects.get(hostname="compute1")
    assert columns(node, "vcpus", "vcpu_reserved", "vcpu_ratio") == (16, 1, 4.0)
    assert columns(node, "memory", "memory_mb_reserved", "memory_ratio") == (32768, 512, 1.5)
    assert columns(node, "disk", "disk_gb_reserved", "disk_ratio") == (500, 10, 1.0)


def test_compute_node_has_the_sizes_of_one_server_that_placement_permits(emulator: Emulator) -> None:
    rules = {"min_unit": 2, "max_unit": 8, "step_size": 2}
    emulator.placement.inventories[make_uuid("compute1")]["VCPU"] = inventory(16, **rules)
    sync()
    assert ComputeNode.objects.get(hostname="compute1").allocation_units["vcpus"] == rules


def test_compute_node_has_the_uuid_of_its_hypervisor(emulator: Emulator) -> None:
    sync()
    assert str(ComputeNode.objects.get(hostname="compute1").uuid) == make_uuid("compute1")


def test_compute_node_has_the_state_and_zone_of_its_service(emulator: Emulator) -> None:
    emulator.nova.add_host("compute3", status="disabled", disabled_reason="broken", state="down", zone="east")
    sync()
    node = ComputeNode.objects.get(hostname="compute3")
    assert columns(node, "status", "disabled_reason", "state", "zone") == ("disabled", "broken", "down", "east")


def test_server_has_its_node_size_state_and_metadata(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1", locked=True, pinned_availability_zone="east", metadata={"tier": "1"})
    sync()
    server = Server.objects.select_related("node").get(name="web")
    assert server.node.hostname == "compute1"
    assert columns(server, "vcpus", "memory", "disk", "flavor") == (2, 2048, 20, "m1.small")
    assert columns(server, "state", "locked", "pinned_az", "metadata") == ("active", True, "east", {"tier": "1"})
    assert (server.project_id, server.created_at.isoformat()) == ("a project", "2026-03-01T10:00:00+00:00")


def test_server_that_boots_from_a_volume_uses_no_disk_of_its_node(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1", image="")
    sync()
    assert Server.objects.get(name="web").disk == 0


def test_ironic_hypervisors_are_ignored(emulator: Emulator) -> None:
    emulator.nova.add_host("metal", hypervisor_type="ironic")
    sync()
    assert not ComputeNode.objects.filter(hostname="metal").exists()


def test_second_hypervisor_of_a_host_is_reported(emulator: Emulator) -> None:
    second = emulator.nova.add_host("compute3")
    emulator.nova.hypervisors[second]["service"]["host"] = "compute1"
    assert "Host compute1 has several hypervisors: only the first is looked at." in sync()


def test_aggregate_has_its_metadata_and_nodes(emulator: Emulator) -> None:
    emulator.nova.add_aggregate(7, "ssd", "compute2", "a host without a hypervisor", ssd="true")
    sync()
    aggregate = HostAggregate.objects.get(id=7)
    assert (aggregate.metadata, [node.hostname for node in aggregate.nodes.all()]) == ({"ssd": "true"}, ["compute2"])


def test_flavor_has_its_size(emulator: Emulator) -> None:
    sync()
    assert columns(Flavor.objects.get(flavor_id="f1"), "name", "vcpus", "memory", "disk") == ("m1.small", 2, 2048, 20)


def test_private_flavor_is_read(emulator: Emulator) -> None:
    emulator.nova.flavors["f1"]["os-flavor-access:is_public"] = False
    sync()
    assert Flavor.objects.filter(flavor_id="f1").exists()


def test_pool_has_its_capacities(emulator: Emulator) -> None:
    fill_storage(emulator)
    sync()
    pool = Pool.objects.get(name="a@lvm#one")
    assert columns(pool, "total_capacity_gb", "free_capacity_gb", "provisioned_capacity_gb") == (100, 70, 30)
    assert columns(pool, "max_over_subscription_ratio", "virtual_free", "total_volumes") == (1.5, 120, 1)


@pytest.mark.parametrize("capacity", ["infinite", "unknown"])
def test_infinite_or_unknown_pool_capacity_is_stored_as_zero(emulator: Emulator, capacity: str) -> None:
    fill_storage(emulator)
    emulator.cinder.add_pool("b@ceph#two", "ceph", capacity)
    sync()
    assert Pool.objects.get(name="b@ceph#two").total_capacity_gb == 0


def test_storage_node_serves_the_volume_types_of_its_backend_and_of_any_backend(emulator: Emulator) -> None:
    fill_storage(emulator)
    sync()
    served = StorageNode.objects.get(host="b@ceph").volume_types.values_list("name", flat=True)
    assert list(served) == ["any"]


def test_volume_has_its_pool_type_and_servers(emulator: Emulator) -> None:
    fill_storage(emulator)
    server = emulator.nova.add_server("web", "compute1")
    attached = {"attachment_id": make_uuid("attachment"), "server_id": server}
    emulator.cinder.volumes[VOLUME] |= {"attachments": [attached], "status": "in-use", "bootable": "true"}
    emulator.cinder.snapshots["s"] = {"id": "s", "volume_id": VOLUME}
    sync()
    volume = Volume.objects.select_related("pool", "volume_type").get(uuid=VOLUME)
    assert (volume.pool.name, volume.volume_type.name, volume.status) == ("a@lvm#one", "fast", "in-use")
    assert columns(volume, "size", "bootable", "has_snapshots") == (30, True, True)
    assert [str(found.uuid) for found in volume.servers.all()] == [server]


def test_object_missing_from_the_cloud_is_marked_deleted(emulator: Emulator) -> None:
    gone = emulator.nova.add_server("web", "compute1")
    sync()
    del emulator.nova.servers[gone]
    assert sync().endswith("1 gone\n")
    assert Server.objects.get(uuid=gone).deleted_at


def test_object_found_again_restores_its_row(emulator: Emulator) -> None:
    server = emulator.nova.add_server("web", "compute1")
    sync()
    Server.objects.filter(uuid=server).soft_delete()
    sync()
    assert [row.deleted_at for row in Server.objects.filter(uuid=server)] == [None]


def test_migrated_server_is_on_its_new_node(emulator: Emulator) -> None:
    server = emulator.nova.add_server("web", "compute1")
    sync()
    emulator.nova.servers[server]["OS-EXT-SRV-ATTR:host"] = "compute2"
    assert sync() == "0 new, 1 changed, 3 as they were, 0 gone\n"
    assert Server.objects.get(uuid=server).node.hostname == "compute2"


def test_aggregates_have_the_uuids_of_nova(emulator: Emulator) -> None:
    """An aggregate that is in the table already gets the UUID of Nova too."""
    make_aggregate(1, "ssd")
    emulator.nova.add_aggregate(1, "ssd")
    emulator.nova.add_aggregate(2, "gpu")
    sync()
    uuids = {str(uuid) for uuid in HostAggregate.objects.values_list("uuid", flat=True)}
    assert uuids == {make_uuid("ssd"), make_uuid("gpu")}


def test_two_aggregates_can_exchange_names(emulator: Emulator) -> None:
    emulator.nova.add_aggregate(1, "ssd")
    emulator.nova.add_aggregate(2, "gpu")
    sync()
    emulator.nova.aggregates[0]["name"], emulator.nova.aggregates[1]["name"] = "gpu", "ssd"
    sync()
    assert list(HostAggregate.objects.present().order_by("id").values_list("name", flat=True)) == ["gpu", "ssd"]


def test_new_hypervisor_of_a_host_replaces_the_old_one(emulator: Emulator) -> None:
    sync()
    old = emulator.nova.hypervisors.pop(make_uuid("compute1"))
    new = make_uuid("compute1 again")
    emulator.nova.hypervisors[new] = old | {"id": new}
    sync()
    assert str(ComputeNode.objects.present().get(hostname="compute1").uuid) == new


def test_lists_are_read_in_pages(emulator: Emulator) -> None:
    emulator.page_size = 2
    for number in range(5):
        emulator.nova.add_server(f"web-{number}", "compute1")
    sync()
    assert (emulator.count("servers/detail"), Server.objects.count()) == (3, 5)


def test_each_list_is_requested_once_and_inventories_once_per_node(emulator: Emulator) -> None:
    fill_storage(emulator)
    emulator.nova.add_server("web", "compute1")
    sync()
    emulator.requests.clear()
    sync()
    assert Counter(re.sub(r"[0-9a-f-]{32,36}", "…", request) for request in emulator.requests) == {
        "GET /compute/v2.1/os-services": 1,
        "GET /compute/v2.1/os-hypervisors/detail": 1,
        "GET /compute/v2.1/os-aggregates": 1,
        "GET /compute/v2.1/flavors/detail": 1,
        "GET /compute/v2.1/servers/detail": 1,
        "GET /placement/resource_providers": 1,
        "GET /placement/resource_providers/…/inventories": 2,
        "GET /volume/v3/…/os-services": 1,
        "GET /volume/v3/…/scheduler-stats/get_pools": 1,
        "GET /volume/v3/…/types": 1,
        "GET /volume/v3/…/volumes/detail": 1,
        "GET /volume/v3/…/snapshots/detail": 1,
        "GET /baremetal/v1/nodes/detail": 1,
    }


def test_query_count_does_not_depend_on_the_number_of_servers(emulator: Emulator) -> None:
    fill_storage(emulator)
    counts = []
    for begin, end in ((0, 1), (1, 60)):
        for number in range(begin, end):
            emulator.nova.add_server(f"web-{number}", "compute1")
            emulator.cinder.add_volume(make_uuid(f"volume {number}"), "data", "a@lvm#one")
        with CaptureQueriesContext(connection) as queries:
            sync()
        counts.append(len(queries))
    with CaptureQueriesContext(connection) as queries:
        sync()
    assert counts[1] <= counts[0]
    assert len(queries) <= counts[1]


def test_missing_placement_is_reported_and_the_synchronization_continues(emulator: Emulator) -> None:
    emulator.offered.remove("placement")
    assert "Placement is not there: reserved amounts and allocation ratios keep their values." in sync()
    assert columns(ComputeNode.objects.get(hostname="compute1"), "vcpus", "vcpu_ratio") == (16, 1.0)


def withdraw(emulator: Emulator, service_type: str) -> None:
    """Remove a service from the catalog of new tokens, and invalidate the others."""
    emulator.offered.remove(service_type)
    emulator.tokens.clear()


def test_compute_node_keeps_its_reserved_amounts_and_ratios_without_placement(emulator: Emulator) -> None:
    sync()
    withdraw(emulator, "placement")
    sync()
    node = ComputeNode.objects.get(hostname="compute1")
    assert columns(node, "vcpu_reserved", "vcpu_ratio", "memory_mb_reserved") == (1, 4.0, 512)


def test_hypervisor_without_a_resource_provider_is_reported(emulator: Emulator) -> None:
    emulator.nova.add_host("compute3")
    assert "Placement has no resource provider of compute3." in sync()


def test_resource_provider_deleted_during_the_synchronization_is_reported(emulator: Emulator) -> None:
    emulator.fail("inventories", 404, times=3)
    assert "Placement has no resource provider of compute1." in sync()
    assert ComputeNode.objects.count() == 2


def test_missing_cinder_is_reported_and_the_synchronization_continues(emulator: Emulator) -> None:
    emulator.offered.remove("block-storage")
    assert "Cinder is not there: volumes and pools stay as they are." in sync()
    assert ComputeNode.objects.count() == 2


def test_storage_is_kept_without_cinder(emulator: Emulator) -> None:
    fill_storage(emulator)
    sync()
    withdraw(emulator, "block-storage")
    sync()
    assert (Pool.objects.present().count(), Volume.objects.present().count()) == (2, 1)


def test_power_states_are_read_from_ironic(emulator: Emulator) -> None:
    emulator.ironic.add("m1", "rack-1", "power off", compute_node_id=make_uuid("compute1"))
    emulator.ironic.add("m2", "compute2")
    sync()
    states = dict(ComputeNode.objects.values_list("hostname", "power_state"))
    assert states == {"compute1": "off", "compute2": "on"}


def test_time_of_success_is_recorded(emulator: Emulator) -> None:
    sync()
    row = Synchronization.current()
    assert (bool(row.succeeded_at), row.problem, row.holder) == (True, "", None)


def test_variables_of_a_login_select_the_cloud_without_os_cloud(
    emulator: Emulator, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OPENSTACK_CLOUD = ""
    login = {
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "no clouds.yaml"),
        "OS_AUTH_URL": f"{emulator.url}{SERVICES['identity']}",
        "OS_USERNAME": USER,
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_ID": PROJECT,
        "OS_USER_DOMAIN_ID": "default",
    }
    for name, value in login.items():
        monkeypatch.setenv(name, value)
    assert sync().endswith("0 gone\n")
    assert Synchronization.current().project == PROJECT
