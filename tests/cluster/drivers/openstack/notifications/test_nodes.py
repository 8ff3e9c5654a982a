"""Nova's notifications about compute services and host aggregates update compute nodes and aggregates."""

import pytest

from cluster.models import ComputeNode, HostAggregate, Synchronization
from tests.cluster.drivers.openstack.notifications.conftest import read_cloud
from tests.cluster.drivers.openstack.notifications.samples import aggregate, ago, handle, service
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db


def node(host: str = "compute1") -> ComputeNode:
    found: ComputeNode = ComputeNode.objects.get(hostname=host)
    return found


def members(number: int = 1) -> list[str]:
    return [found.hostname for found in HostAggregate.objects.get(pk=number).nodes.order_by("hostname")]


def test_disabled_service_disables_its_node_with_the_reason(synced: Emulator) -> None:
    handle("service.update", service(disabled=True, disabled_reason="maintenance"))
    assert (node().status, node().disabled_reason) == ("disabled", "maintenance")
    assert node("compute2").status == "enabled"


@pytest.mark.parametrize(
    ("before", "is_forced", "seen", "state"),
    [
        ("up", True, 10, "down"),
        ("down", False, 10, "up"),
        ("down", False, 10_000, "down"),
        ("up", False, 10_000, "up"),
    ],
)
def test_node_state_follows_forced_down_and_last_seen_up(
    synced: Emulator, before: str, is_forced: bool, seen: float, state: str
) -> None:
    ComputeNode.objects.update(state=before)
    handle("service.update", service(forced_down=is_forced, last_seen_up=ago(seen).isoformat()))
    assert (node().state, node().forced_down) == (state, is_forced)


def test_node_of_a_service_never_seen_up_keeps_its_state(synced: Emulator) -> None:
    ComputeNode.objects.update(state="down")
    handle("service.update", service(last_seen_up=None))
    assert node().state == "down"


def test_services_other_than_nova_compute_are_ignored(synced: Emulator) -> None:
    assert not handle("service.update", service(binary="nova-conductor", disabled=True))
    assert not handle("service.delete", service(binary="nova-conductor"))
    assert (node().status, node().deleted_at) == ("enabled", None)


def test_service_of_an_unknown_node_is_ignored(synced: Emulator) -> None:
    assert not handle("service.create", service("compute9"))
    assert ComputeNode.objects.count() == 2


def test_deleted_service_deletes_its_node(synced: Emulator) -> None:
    assert handle("service.delete", service())
    assert node().deleted_at


def test_older_service_notification_is_ignored(synced: Emulator) -> None:
    handle("service.update", service(disabled=True), ago(1))
    assert not handle("service.update", service(), ago(2))
    assert not handle("service.delete", service(), ago(2))
    assert (node().status, node().deleted_at) == ("disabled", None)


def test_service_notification_before_the_last_synchronization_is_ignored(synced: Emulator) -> None:
    Synchronization.objects.update(succeeded_at=ago(5))
    assert not handle("service.update", service(disabled=True), ago(6))


def test_created_aggregate_has_the_id_and_uuid_of_nova(synced: Emulator) -> None:
    handle("aggregate.create.end", aggregate(number=7, power="low"))
    found = HostAggregate.objects.get(pk=7)
    assert (found.name, str(found.uuid), found.metadata) == ("racks", make_uuid("racks"), {"power": "low"})


def test_hosts_are_added_to_and_removed_from_an_aggregate(synced: Emulator) -> None:
    handle("aggregate.add_host.end", aggregate("compute1", "compute2", "compute9"), ago(2))
    assert members() == ["compute1", "compute2"]
    handle("aggregate.remove_host.end", aggregate("compute2"), ago(1))
    assert members() == ["compute2"]


def test_notification_updates_the_row_of_a_synchronized_aggregate(synced: Emulator) -> None:
    synced.nova.add_aggregate(1, "racks", "compute1")
    read_cloud()
    handle("aggregate.update_prop.end", aggregate("compute1", name="cabinets"))
    assert [found.name for found in HostAggregate.objects.all()] == ["cabinets"]


def test_changed_metadata_of_an_aggregate_is_updated(synced: Emulator) -> None:
    handle("aggregate.create.end", aggregate(power="low"), ago(1))
    handle("aggregate.update_metadata.end", aggregate(power="high"))
    assert HostAggregate.objects.get().metadata == {"power": "high"}


def test_deleted_aggregate_stays_deleted_after_an_older_notification(synced: Emulator) -> None:
    handle("aggregate.create.end", aggregate(), ago(3))
    handle("aggregate.delete.end", aggregate(), ago(1))
    assert not handle("aggregate.add_host.end", aggregate("compute1"), ago(2))
    assert HostAggregate.objects.get().deleted_at


def test_older_notification_does_not_add_a_removed_host(synced: Emulator) -> None:
    handle("aggregate.remove_host.end", aggregate(), ago(1))
    assert not handle("aggregate.add_host.end", aggregate("compute1"), ago(2))
    assert members() == []
