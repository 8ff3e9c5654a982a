"""Synchronization with a real Cinder, and operations on its volumes."""

from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from pytest_django import Settings

from actions.models import Action
from cluster.drivers.base import cloud
from cluster.models import Pool, StorageNode, Volume, VolumeType
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.openstack.configuration import BACKENDS, CAPACITY
from tests.openstack.control_plane import INTERVAL, PATIENCE, ControlPlane
from tests.plans.inline import run_waiting
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack
FIRST, SECOND = (f"volumes@{name}#{name}" for name in BACKENDS)


@pytest.fixture
def cinder(control_plane: ControlPlane, settings: Settings, db: None) -> Iterator[Any]:
    """A Cinder with two pools, a volume type for each, and no volumes, which the site uses."""
    storage = openstack.connect(cloud="service").block_storage
    wait_for(
        lambda: [found.state for found in storage.services(binary="cinder-volume")] == ["up", "up"], PATIENCE, INTERVAL
    )
    wait_for(lambda: {found.name for found in storage.backend_pools()} == {FIRST, SECOND}, PATIENCE, INTERVAL)
    known = {found.name for found in storage.types()}
    for name in set(BACKENDS) - known:
        storage.create_type(name=name, extra_specs={"volume_backend_name": name})
    clear(storage)
    settings.CLOUD = "cluster.drivers.openstack.OpenStackCloud"
    settings.OPENSTACK_CLOUD = "service"
    settings.OPENSTACK_POLL_INTERVAL = 0.5
    settings.OPENSTACK_OPERATION_TIMEOUT = PATIENCE
    yield storage
    clear(storage)


def clear(storage: Any) -> None:
    for snapshot in storage.snapshots(all_projects=True):
        storage.delete_snapshot(snapshot)
    wait_for(lambda: not list(storage.snapshots(all_projects=True)), PATIENCE, INTERVAL)
    for volume in storage.volumes(all_projects=True):
        storage.delete_volume(volume)
    wait_for(lambda: not list(storage.volumes(all_projects=True)), PATIENCE, INTERVAL)


def create(storage: Any, name: str, volume_type: str) -> str:
    """Return the UUID of a new volume."""
    made = storage.create_volume(name=name, size=1, volume_type=volume_type)
    wait_for(lambda: storage.get_volume(made.id).status == "available", PATIENCE, INTERVAL)
    return str(made.id)


def test_backends_pools_types_and_volumes_are_synchronized(cinder: Any) -> None:
    volume = create(cinder, "data", "first")
    snapshot = cinder.create_snapshot(volume_id=volume, name="yesterday")
    wait_for(lambda: cinder.get_snapshot(snapshot.id).status == "available", PATIENCE, INTERVAL)
    synchronize()
    row = Volume.objects.get(uuid=volume)
    assert (row.name, row.size, row.status, row.pool.name, row.has_snapshots) == ("data", 1, "available", FIRST, True)
    assert {kind.name for kind in VolumeType.objects.present()} >= set(BACKENDS)
    pools = Pool.objects.present().order_by("name").values_list("name", "total_capacity_gb", "total_volumes")
    assert list(pools) == [(FIRST, CAPACITY, 1), (SECOND, CAPACITY, 0)]
    nodes = StorageNode.objects.present().order_by("host").values_list("host", "status", "state")
    assert list(nodes) == [(f"volumes@{name}", "enabled", "up") for name in BACKENDS]


def test_volume_is_migrated_to_another_pool(cinder: Any) -> None:
    volume = create(cinder, "data", "__DEFAULT__")
    [source] = {FIRST, SECOND} & {cinder.get_volume(volume).host}
    [destination] = {FIRST, SECOND} - {source}
    synchronize()
    plan = make_plan(state="PENDING")
    moved = {"resource_id": volume, "migration_type": "migrate", "destination_node": destination}
    Action.objects.create(action_plan=plan, action_type="volume_migrate", input_parameters=moved)
    run_waiting()
    assert ActionPlan.objects.get().state == "SUCCEEDED", Action.objects.get().status_message
    assert (cinder.get_volume(volume).host, Volume.objects.get(uuid=volume).pool.name) == (destination, destination)


def test_retyped_volume_is_migrated_if_its_pool_does_not_support_the_type(cinder: Any) -> None:
    volume = create(cinder, "data", "first")
    synchronize()
    cloud().retype_volume(volume, "second")
    found = cinder.get_volume(volume)
    assert (found.volume_type, found.host, found.status) == ("second", SECOND, "available")
    row = Volume.objects.get(uuid=volume)
    assert (row.volume_type.name, row.pool.name) == ("second", SECOND)
